"""Encoder-decoder models: how a prompt with a slot is put to each family, and what it answers.

T5's family reads a sentinel in the slot and writes the sentinels with what they stand for; BART's
reads a mask there and writes the whole text anew.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from medprobe.engine.load import Model
from medprobe.engine.slots import Slot, split_prompt, text_slots
from medprobe.errors import BadInput

OPENING: Final = "<extra_id_0>"
CLOSING: Final = "<extra_id_1>"


@dataclass(frozen=True)
class Frame:
    """One prompt as token ids: what the encoder reads, and what the decoder writes, an answer in
    its slot; the decoder's start token comes first."""

    source: tuple[int, ...]
    target: Slot


def writes_sentinels(model: Model) -> bool:
    """Is it of T5's family? Raises BadInput where it is neither of T5's nor of BART's."""
    vocabulary = model.tokenizer.get_vocab()
    if OPENING in vocabulary and CLOSING in vocabulary:
        return True
    if model.tokenizer.mask_token is None:
        raise BadInput(model.name, f"its tokenizer has neither {OPENING} nor a mask token")
    return False


def frames(model: Model, prompts: Iterable[str], where: Sequence[object]) -> list[Frame]:
    """Every prompt with its slot marked as this model's family has it.

    `where` names each prompt in errors. Raises BadInput for a prompt without exactly one slot.
    """
    prompts = list(prompts)
    tokenizer = model.tokenizer
    sentinels = writes_sentinels(model)
    mark = OPENING if sentinels else tokenizer.mask_token
    pairs = [split_prompt(prompt, name) for prompt, name in zip(prompts, where, strict=True)]
    sources = tokenizer(
        [before.rstrip() + _blank(before, sentinels) + mark + after for before, after in pairs],
        return_attention_mask=False,
        verbose=False,
    )["input_ids"]
    start = [model.model.config.decoder_start_token_id]
    if sentinels:
        opening, closing = tokenizer.convert_tokens_to_ids([OPENING, CLOSING])
        return [
            Frame(tuple(source), Slot((*start, opening), (closing,), " ")) for source in sources
        ]
    if tokenizer.bos_token_id is not None:
        start.append(tokenizer.bos_token_id)
    slots = text_slots(tokenizer, prompts, where, start)
    end = tokenizer.eos_token_id
    return [
        Frame(tuple(source), replace(slot, after=(*slot.after, end)))
        for source, slot in zip(sources, slots, strict=True)
    ]


def _blank(before: str, sentinels: bool) -> str:
    """A blank before T5's sentinel as the text has it; BART's mask takes the blank in."""
    return " " if sentinels and before != before.rstrip() else ""
