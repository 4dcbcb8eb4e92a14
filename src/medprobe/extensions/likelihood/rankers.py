"""What is asked about the names in a slot, and what ranks them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import numpy as np

from medprobe.engine import ranking
from medprobe.engine.slots import WritingPrompt

VARIANTS: Final = ("", "per_token")  # the total of log-probabilities, and their mean


@dataclass(frozen=True)
class Ranking:
    """What is ranked, and how far.

    Attributes:
        names: The names to rank; equal scores go by their order.
        k: How many names are ranked.
        answers: For each prompt the indices of names whose best rank is needed too.
        variants: 1 ranks by the total alone, 2 by the mean per token too.
        ahead: Not the best names are needed, but those up to the best of `answers` if it is among
            the k best. A backend may rank the best all the same.
    """

    names: Sequence[str]
    k: int
    answers: Sequence[Sequence[int]] = ()
    variants: int = len(VARIANTS)
    ahead: bool = False


@dataclass(frozen=True)
class VariantRanking:
    """The ranking of one variant."""

    names: list[tuple[int, float]]  # the k best, and ties (`ranking.best_indices`): index and score
    rank: int | None = None  # of the best answer among all names, if answers were given

    @property
    def up_to_answer(self) -> list[tuple[int, float]]:
        """The names up to the best answer and to what equals it; none if it is not among them.

        >>> VariantRanking([(7, -1.0), (3, -2.0), (4, -2.0), (1, -9.0)], rank=2).up_to_answer
        [(7, -1.0), (3, -2.0), (4, -2.0)]
        """
        if self.rank is None or self.rank > len(self.names):
            return []
        worst = self.names[self.rank - 1][1]
        return [item for item in self.names if item[1] >= worst]


@runtime_checkable
class Ranker(Protocol):
    """What ranks names: a backend from outside, or `likeliest.TrieRanker`."""

    def tokenize(self, prompts: Sequence[str], where: Sequence[str]) -> list[WritingPrompt]:
        """Return the slots of prompts, with all of the text after them."""
        ...

    def find_likeliest(
        self, prompts: Sequence[WritingPrompt], where: Sequence[str], ranking: Ranking
    ) -> list[list[VariantRanking]]:
        """Return for each tokenised prompt the ranking of names by each variant."""
        ...


def rank_by_scores(
    scores: Sequence[float] | np.ndarray, k: int, answers: Sequence[int] = ()
) -> VariantRanking:
    """Rank names by a score for each; ties go by their order.

    >>> rank_by_scores([0.5, 2.0, 1.0], 2, answers=[0]).names
    [(1, 2.0), (2, 1.0)]
    """
    values = np.asarray(scores, float)
    order = [int(i) for i in ranking.best_indices(values, k, ranking.MAX_TIES)]
    rank = None
    if len(answers):
        places = np.flatnonzero(np.isin(ranking.best_indices(values, len(values)), answers))
        rank = int(places.min()) + 1
    return VariantRanking([(i, float(values[i])) for i in order], rank)
