"""From a prompt with one slot `[Y]` to token ids: the only place where answers meet sentences.

An answer is never cut and never padded, and has the tokens that it has *inside the sentence*:
byte-level and sentencepiece tokenizers spell a word differently after a blank than at the start of
a text. So an answer is tokenised after a short frame that ends like the prompt before the slot.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from medprobe.core.errors import BadInput, quote
from medprobe.core.tables import SLOT

ANCHORS: Final = ("a", "x", "0", "Q")  # any words: only what is between them and a text matters
ANCHOR: Final = ANCHORS[0]


@dataclass(frozen=True)
class Slot:
    """A tokenised prompt: the ids before and after its slot, special tokens included."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    preceding: str  # the character before the slot, "" at the start of the text
    forced: int = 1  # how many tokens of `before` a model that writes does not write, one at least

    def fill(self, ids: Sequence[int]) -> list[int]:
        """Return the whole sequence with `ids` in the slot."""
        return [*self.before, *ids, *self.after]

    def positions(self, count: int) -> list[int]:
        """Return the positions in the sequence of `count` tokens in the slot."""
        return list(range(len(self.before), len(self.before) + count))


WritingPrompt = tuple[Slot, tuple[int, ...]]  # and what an encoder reads, where there is one


def split_prompt(prompt: str, where: object = "prompt") -> tuple[str, str]:
    """Return the text before and after the slot.

    >>> split_prompt("Aspirin may treat [Y] .")
    ('Aspirin may treat ', ' .')
    """
    parts = prompt.split(SLOT)
    if len(parts) != 2:
        raise BadInput(where, f"the prompt needs exactly one {SLOT}, and has {len(parts) - 1}")
    return parts[0], parts[1]


def is_answer_first(prompt: str) -> bool:
    """Return whether a prompt begins with its slot.

    >>> is_answer_first("[Y] is treated with aspirin .")
    True
    """
    return prompt.lstrip().startswith(SLOT)


def masked_slots(tokenizer: Any, prompts: Iterable[str], where: Sequence[object]) -> list[Slot]:
    """Tokenise prompts whose slot a masked model fills.

    A blank before the slot belongs to the answer, as byte-level tokenizers have it.
    """
    characters, texts = [], []
    for prompt, name in zip(prompts, where, strict=True):
        before, after = split_prompt(prompt, name)
        characters.append(before[-1:])
        texts.append(before.rstrip(" ") + tokenizer.mask_token + after)
    mask = tokenizer.mask_token_id
    slots = []
    for ids, preceding, name in zip(_encode(tokenizer, texts), characters, where, strict=True):
        if ids.count(mask) != 1:
            problem = f"the prompt itself holds the mask token {tokenizer.mask_token}"
            raise BadInput(name, problem, "remove it from the data")
        index = ids.index(mask)
        slots.append(Slot(tuple(ids[:index]), tuple(ids[index + 1 :]), preceding))
    return slots


def text_slots(
    tokenizer: Any, prompts: Iterable[str], where: Sequence[object], start: Sequence[int] = ()
) -> list[Slot]:
    """Tokenise prompts that a model reads from left to right.

    A blank before the slot belongs to the answer, a line's end does not.
    """
    pairs = [split_prompt(prompt, name) for prompt, name in zip(prompts, where, strict=True)]
    heads = _encode(
        tokenizer, [before.rstrip(" ") for before, _ in pairs], add_special_tokens=False
    )
    tails = tokenize_inside(tokenizer, [after.rstrip() for _, after in pairs], ANCHOR)
    return [
        Slot((*start, *head), tuple(tail), before[-1:])
        for head, tail, (before, _) in zip(heads, tails, pairs, strict=True)
    ]


def answer_ids(tokenizer: Any, names: Sequence[str], preceding: str) -> list[list[int]]:
    """Return the token ids of each answer inside a sentence."""
    tokens = tokenize_inside(tokenizer, names, ANCHOR + preceding if preceding else "")
    for name, ids in zip(names, tokens, strict=True):
        if not ids or not name.strip():
            raise no_tokens_error(name)
    return tokens


def tokenize_inside(tokenizer: Any, texts: Sequence[str], frame: str) -> list[list[int]]:
    """Return the token ids that each text has after `frame`; a leading blank belongs to the text.

    Where a token would straddle the border, as "a," could, another anchor begins the frame. Where
    one does after all anchors, the text is tokenised alone.
    """
    tokens: dict[str, list[int]] = {}
    for anchor in ANCHORS if frame else ():
        remaining = [text for text in dict.fromkeys(texts) if text not in tokens]
        tokens |= _tokenize_after(tokenizer, remaining, anchor + frame[len(ANCHOR) :])
    alone = [text for text in dict.fromkeys(texts) if text not in tokens]
    tokens |= zip(alone, _encode(tokenizer, alone, add_special_tokens=False), strict=True)
    return [tokens[text] for text in texts]


def _tokenize_after(tokenizer: Any, texts: Sequence[str], frame: str) -> dict[str, list[int]]:
    """Return the token ids of each text after `frame`, without texts that share a token with it."""
    if not texts:
        return {}
    border = len(frame.rstrip(" "))
    framed = tokenizer(
        [frame + text for text in texts],
        add_special_tokens=False,
        return_offsets_mapping=True,
        return_attention_mask=False,
        verbose=False,
    )
    return {
        text: [i for i, (_, end) in zip(ids, spans, strict=True) if end > border]
        for text, ids, spans in zip(
            texts, framed["input_ids"], framed["offset_mapping"], strict=True
        )
        if not any(start < border < end for start, end in spans)
    }


def check_window(
    slot: Slot, answers: Sequence[Sequence[int]], window: int, where: object, names: Sequence[str]
) -> None:
    """Check that the longest of these answers fits into the model's window."""
    longest = max(range(len(answers)), key=lambda i: len(answers[i]))
    length = len(slot.before) + len(answers[longest]) + len(slot.after)
    if length > window:
        raise too_long_error(where, names[longest], length, window)


def too_long_error(where: object, name: str, length: int, window: int) -> BadInput:
    """Return the error for a prompt that its answer makes too long."""
    text = name if len(name) <= 60 else f"{name[:60]}…"
    problem = f"with {quote(text)} in its slot it has {length} tokens, the model reads {window}"
    return BadInput(where, problem, "shorten the prompt or remove the candidate")


def no_tokens_error(name: str) -> BadInput:
    """Return the error for an answer of which the tokenizer leaves nothing."""
    return BadInput(f"answer {quote(name)}", "tokenises to nothing", "remove it from the data")


def _encode(tokenizer: Any, texts: Sequence[str], add_special_tokens: bool = True) -> list[Any]:
    """Token ids of each text, whole."""
    if not texts:
        return []
    encoded = tokenizer(
        list(texts),
        add_special_tokens=add_special_tokens,
        return_attention_mask=False,
        verbose=False,
    )
    ids: list[Any] = encoded["input_ids"]
    return ids


@dataclass(frozen=True)
class NameCounts:
    """How many names a tokenizer reads as something other than themselves.

    Attributes:
        names: Distinct names.
        same: Those whose tokens are also the tokens of another name, as of "Gout" and "gout" for an
            uncased model. The model gives them one score, so that their order is alphabetical.
        unknown: Those with a token that stands for anything the tokenizer does not know.
        longest: Tokens of the longest name.
    """

    names: int
    same: int
    unknown: int
    longest: int = 0

    def __str__(self) -> str:
        """The counts that are not 0, as part of a sentence.

        >>> str(NameCounts(names=257, same=12, unknown=0))
        'of 257 names 12 are the same text as another one'
        """
        facts = {
            "are the same text as another one": self.same,
            "have characters that it does not know": self.unknown,
        }
        parts = [f"{count:,} {fact}" for fact, count in facts.items() if count]
        return f"of {self.names:,} names {' and '.join(parts)}" if parts else ""


def count_names(tokenizer: Any, names: Iterable[str]) -> NameCounts:
    """Count the names that a tokenizer cannot tell apart, or not read, inside a sentence."""
    rows = [tuple(ids) for ids in tokenize_inside(tokenizer, sorted({*names}), f"{ANCHOR} ")]
    counts = Counter(rows)
    same = sum(count for count in counts.values() if count > 1)
    unknown = sum(tokenizer.unk_token_id in row for row in rows)
    return NameCounts(len(rows), same, unknown, max(map(len, rows), default=0))
