"""Encoder-decoder models: how a prompt with a slot is put to each family, and what it answers.

T5's family reads a sentinel in the slot and writes the sentinels with what they stand for; BART's
reads a mask there and writes the whole text again.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

import torch

from medprobe.core.errors import BadInput
from medprobe.core.tables import SLOT
from medprobe.engine.batching import compute_in_batches, pad_rows
from medprobe.engine.heads import split_by_logits
from medprobe.engine.load import Model
from medprobe.engine.slots import Slot, split_prompt, text_slots, too_long_error

OPENING: Final = "<extra_id_0>"
CLOSING: Final = "<extra_id_1>"
STEPS_KEPT: Final = 4  # beam search keeps the scores of all its steps: let four fit at a time


@dataclass(frozen=True)
class Frame:
    """One prompt as token ids: what the encoder reads, and what the decoder writes.

    The decoder's text has an answer in its slot; its start token comes first.
    """

    source: tuple[int, ...]
    target: Slot


def writes_sentinels(model: Model) -> bool:
    """Is it of T5's family? Raises BadInput where it is neither of T5's nor of BART's."""
    tokenizer = model.tokenizer
    if tokenizer.convert_tokens_to_ids(CLOSING) not in (None, tokenizer.unk_token_id):
        return True
    if tokenizer.mask_token is None:
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
        target = Slot((*start, opening), (closing,), " ", forced=2)
        return [Frame(tuple(source), target) for source in sources]
    start += [tokenizer.bos_token_id] * _bos(model)
    slots = text_slots(tokenizer, prompts, where, start)
    end = tokenizer.eos_token_id
    return [
        Frame(tuple(source), replace(slot, after=(*slot.after, end)))
        for source, slot in zip(sources, slots, strict=True)
    ]


def _blank(before: str, sentinels: bool) -> str:
    """A blank before T5's sentinel as the text has it; BART's mask takes the blank in."""
    return " " if sentinels and before != before.rstrip() else ""


def generate(
    model: Model,
    frames: Sequence[Frame],
    beams: int,
    cap: int,
    budget: int,
    *,
    checkpoint_settings: bool = False,
) -> list[list[tuple[list[int], float]]]:
    """Write answers by beam search.

    Each frame gets its `beams` best token sequences, best first, with the mean log-probability of
    their tokens. A sequence has at most `cap` tokens.

    T5's family starts behind the opening sentinel and ends with the closing one, BART's starts
    behind the beginning of a text. The checkpoint's `own` generation settings, such as n-grams that
    may not come twice, hold next to these only if asked for. What a frame gets does not depend on
    the others.
    """
    sentinels = writes_sentinels(model)
    start = frames[0].target.before[: 2 if sentinels else 1 + _bos(model)]
    ends = {model.tokenizer.eos_token_id, *(frames[0].target.after if sentinels else ())}
    config = model.generation_config(
        own_settings=checkpoint_settings,
        num_beams=beams,
        num_return_sequences=beams,
        max_new_tokens=cap,
        do_sample=False,
        eos_token_id=sorted(ends),
        decoder_start_token_id=start[0],
    )
    counts = [beams * cap // STEPS_KEPT + 1] * len(frames)

    def compute(batch: list[int]) -> list[list[tuple[list[int], float]]]:
        best = []
        for part in split_by_logits(batch, counts, model.config.vocab_size):
            ids, attention = pad_rows(
                [frames[i].source for i in part], model.tokenizer.pad_token_id, model.device
            )
            begin = torch.tensor([start] * len(part), device=model.device)
            with model.explained_settings(own_settings=checkpoint_settings):
                out = model.model.generate(
                    ids, attention_mask=attention, decoder_input_ids=begin, generation_config=config
                )
            sequences = [row[len(start) :] for row in out.sequences.tolist()]
            pairs = list(zip(sequences, out.sequences_scores.tolist(), strict=True))
            best += [pairs[i : i + beams] for i in range(0, len(pairs), beams)]
        return best

    with torch.inference_mode():
        # what one pass reads: each source once, then a token for each beam at a time
        return compute_in_batches([max(len(f.source), beams) for f in frames], budget, compute)


def _bos(model: Model) -> int:
    return int(model.tokenizer.bos_token_id is not None)


MORE: Final = 80  # tokens that may be written beyond as many as were read
BREAKS: Final = ("<s>", "</s>", "<pad>", ".", OPENING, "<mask>")  # are read apart from their like
DROPPED: Final = BREAKS[:-1]

Written = tuple[str, float]  # a text, and the mean log-probability of its tokens


def texts(
    model: Model, prompts: Iterable[str], where: Sequence[object], beams: int
) -> list[list[Written]]:
    """The `beams` texts that each prompt gives, best first, equal ones too.

    `where` names each prompt in errors. Raises BadInput for a prompt without exactly one slot or
    longer than the model's window.
    """
    prompts = list(prompts)
    sources = []
    for prompt, name in zip(prompts, where, strict=True):
        split_prompt(prompt, name)
        sources.append(source_ids(model, prompt))
        if len(sources[-1]) > model.max_length:
            raise too_long_error(name, "its mark", len(sources[-1]), model.max_length)

    lengths = [len(ids) for ids in sources]
    counts = [beams * (length + MORE) // STEPS_KEPT + 1 for length in lengths]

    def compute(batch: list[int]) -> list[list[Written]]:
        texts = []
        # how much may be written depends on how much is read; a batch begins with the longest
        for _, equally_long in groupby(batch, key=lengths.__getitem__):
            for part in split_by_logits([*equally_long], counts, model.config.vocab_size):
                written = _generated(model, [sources[i] for i in part], beams)
                for i, (rows, scores) in zip(part, written, strict=True):
                    front = prompts_front(prompts[i])
                    read = [text_of(model, row, front) for row in rows]
                    texts.append(list(zip(read, scores, strict=True)))
        return texts

    with torch.inference_mode():
        return compute_in_batches(lengths, model.token_budget, compute)


def source_ids(model: Model, prompt: str) -> list[int]:
    """What the encoder reads."""
    mark = OPENING if writes_sentinels(model) else model.tokenizer.mask_token
    text = " ".join(_bare(prompt).replace(SLOT, f" {mark} ").split())
    ids: list[int] = model.tokenizer(text, verbose=False)["input_ids"]
    return ids


def prompts_front(prompt: str) -> str:
    """The prompt without its slot: what is taken off BART's texts."""
    return _bare(prompt).replace(SLOT, "").strip()


def text_of(model: Model, ids: Sequence[int], front: str) -> str:
    """What a written sequence reads as."""
    tokens = model.tokenizer.convert_ids_to_tokens(list(ids))
    parts: list[str] = []
    run: list[str] = []
    for token in [*tokens, None]:
        if token is None or token in BREAKS:
            parts += [_joined(model, run), token or ""]
            run = []
        else:
            run.append(token)
    text = " ".join(word for word in " ".join(parts).split() if word not in DROPPED)
    if writes_sentinels(model):
        return text
    try:
        return " ".join(re.sub(front, "", text).split())
    except re.error:
        return text


def _generated(
    model: Model, sources: Sequence[list[int]], beams: int
) -> Iterator[tuple[list[list[int]], list[float]]]:
    """Yield each source's sequences and their scores; all sources are of one length."""
    ids = torch.tensor(sources, device=model.device)
    config = model.generation_config(
        own_settings=True,
        num_beams=beams,
        num_return_sequences=beams,
        max_length=ids.shape[1] + MORE,
        do_sample=False,
    )
    with model.explained_settings(own_settings=True):
        out: Any = model.model.generate(
            ids, attention_mask=torch.ones_like(ids), generation_config=config
        )
    for rows, scores in zip(
        out.sequences.split(beams), out.sequences_scores.split(beams), strict=True
    ):
        is_text = (rows != model.tokenizer.pad_token_id).any(0)
        is_text[0] = True  # the start token, which is T5's padding
        length = int(is_text.nonzero().max()) + 1  # another source's sequences can be longer
        yield rows[:, :length].tolist(), scores.tolist()


def _bare(prompt: str) -> str:
    return " ".join(prompt.strip(".").split())


def _joined(model: Model, tokens: list[str]) -> str:
    """The text of some tokens; behind each of T5's sentinels a blank, as slow tokenizers had it."""
    if writes_sentinels(model):
        spaced = [f"{token} " if token.startswith("<extra_id_") else token for token in tokens]
        return "".join(spaced).replace("▁", " ")
    return str(model.tokenizer.convert_tokens_to_string(tokens)) if tokens else ""
