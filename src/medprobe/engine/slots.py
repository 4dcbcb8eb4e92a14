"""From a prompt with one slot `[Y]` to token ids: only here does an answer meet a sentence.

An answer is never cut, never padded, and gets the tokens it has *inside the sentence*: byte-level
and sentencepiece tokenizers spell a word differently after a blank than at the start of a text, so
an answer is tokenised behind a short frame that ends as the prompt's text before the slot ends.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from medprobe.core.errors import BadInput, quote
from medprobe.core.tables import SLOT

ANCHOR: Final = "a"  # any word: only what stands between it and the answer matters


@dataclass(frozen=True)
class Slot:
    """A tokenised prompt: the ids before and after its slot, special tokens included."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    left: str  # the character before the slot, "" at the start of the text

    def fill(self, ids: Sequence[int]) -> list[int]:
        """The whole sequence with `ids` in the slot."""
        return [*self.before, *ids, *self.after]

    def positions(self, count: int) -> list[int]:
        """Where `count` tokens in the slot stand in the sequence."""
        return list(range(len(self.before), len(self.before) + count))


def split_prompt(prompt: str, where: object = "prompt") -> tuple[str, str]:
    """The text before and after the slot. Raises BadInput unless there is exactly one.

    >>> split_prompt("Aspirin may treat [Y] .")
    ('Aspirin may treat ', ' .')
    """
    parts = prompt.split(SLOT)
    if len(parts) != 2:
        raise BadInput(where, f"the prompt has {len(parts) - 1} slots {SLOT}, expected 1")
    return parts[0], parts[1]


def masked_slots(tokenizer: Any, prompts: Iterable[str], where: Sequence[object]) -> list[Slot]:
    """Tokenise prompts whose slot a masked model fills; the tokenizer's own mask token marks it.

    A blank before the slot belongs to the answer, as byte-level tokenizers have it. `where` names
    each prompt in errors. Raises BadInput for a prompt without exactly one slot, or one that holds
    a mask token of its own.
    """
    lefts, texts = [], []
    for prompt, name in zip(prompts, where, strict=True):
        before, after = split_prompt(prompt, name)
        lefts.append(before[-1:])
        texts.append(before.rstrip(" ") + tokenizer.mask_token + after)
    mask = tokenizer.mask_token_id
    slots = []
    for ids, left, name in zip(_encode(tokenizer, texts), lefts, where, strict=True):
        if ids.count(mask) != 1:
            problem = f"the prompt itself holds the mask token {tokenizer.mask_token}"
            raise BadInput(name, problem, "remove it from the data")
        at = ids.index(mask)
        slots.append(Slot(tuple(ids[:at]), tuple(ids[at + 1 :]), left))
    return slots


def text_slots(
    tokenizer: Any, prompts: Iterable[str], where: Sequence[object], start: Sequence[int] = ()
) -> list[Slot]:
    """Tokenise prompts whose text is read as it is, left to right, after the ids of `start`.

    A blank before the slot belongs to the answer, a line's end does not. Raises BadInput for a
    prompt without exactly one slot.
    """
    pairs = [split_prompt(prompt, name) for prompt, name in zip(prompts, where, strict=True)]
    heads = _encode(
        tokenizer, [before.rstrip(" ") for before, _ in pairs], add_special_tokens=False
    )
    tails = inside_sentence(tokenizer, [after.rstrip() for _, after in pairs], ANCHOR)
    return [
        Slot((*start, *head), tuple(tail), before[-1:])
        for head, tail, (before, _) in zip(heads, tails, pairs, strict=True)
    ]


def answer_ids(tokenizer: Any, names: Sequence[str], left: str) -> list[list[int]]:
    """The tokens of each answer where the character before the slot is `left` ("" at the start).

    Raises BadInput for the first answer that tokenises to nothing.
    """
    tokens = inside_sentence(tokenizer, names, ANCHOR + left if left else "")
    for name, ids in zip(names, tokens, strict=True):
        if not ids or not name.strip():
            raise no_tokens(name)
    return tokens


def inside_sentence(tokenizer: Any, texts: Sequence[str], frame: str) -> list[list[int]]:
    """The token ids that each text has when it follows `frame`; its leading blank is its own.

    Where a token would straddle the border (`[Y]s`), the text's own tokens are taken.
    """
    if not texts:
        return []
    if not frame:
        return _encode(tokenizer, texts, add_special_tokens=False)
    border = len(frame.rstrip(" "))
    framed = tokenizer(
        [frame + text for text in texts],
        add_special_tokens=False,
        return_offsets_mapping=True,
        return_attention_mask=False,
        verbose=False,
    )
    tokens = []
    for text, ids, spans in zip(texts, framed["input_ids"], framed["offset_mapping"], strict=True):
        if any(start < border < end for start, end in spans):
            tokens += _encode(tokenizer, [text], add_special_tokens=False)
        else:
            tokens.append([i for i, (_, end) in zip(ids, spans, strict=True) if end > border])
    return tokens


def check_window(
    slot: Slot, answers: Sequence[Sequence[int]], window: int, where: object, names: Sequence[str]
) -> None:
    """Raise BadInput where the longest of these answers in this slot exceeds the model's window."""
    longest = max(range(len(answers)), key=lambda i: len(answers[i]))
    length = len(slot.before) + len(answers[longest]) + len(slot.after)
    if length > window:
        raise too_long(where, names[longest], length, window)


def too_long(where: object, name: str, length: int, window: int) -> BadInput:
    """The error for a prompt that its answer makes too long."""
    shown = name if len(name) <= 60 else f"{name[:60]}…"
    problem = f"with {quote(shown)} in its slot it has {length} tokens, the model reads {window}"
    return BadInput(where, problem, "shorten the prompt or remove the candidate")


def no_tokens(name: str) -> BadInput:
    """The error for an answer of which the tokenizer leaves nothing."""
    return BadInput(f"answer {quote(name)}", "tokenises to nothing", "remove it from the data")


def _encode(tokenizer: Any, texts: Sequence[str], add_special_tokens: bool = True) -> list[Any]:
    """Token ids of each text, whole."""
    encoded = tokenizer(
        list(texts),
        add_special_tokens=add_special_tokens,
        return_attention_mask=False,
        verbose=False,
    )
    ids: list[Any] = encoded["input_ids"]
    return ids
