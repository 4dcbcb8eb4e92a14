"""Names that a model's tokenizer cannot tell apart, or does not know."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from medprobe.engine.slots import ANCHOR, tokenize_inside


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
    """Count the names that a tokenizer cannot tell apart, or not read, inside a sentence.

    Args:
        tokenizer: The model's.
        names: Repeated ones count once.
    """
    rows = [tuple(ids) for ids in tokenize_inside(tokenizer, sorted({*names}), f"{ANCHOR} ")]
    counts = Counter(rows)
    same = sum(count for count in counts.values() if count > 1)
    unknown = sum(tokenizer.unk_token_id in row for row in rows)
    return NameCounts(len(rows), same, unknown, max(map(len, rows), default=0))
