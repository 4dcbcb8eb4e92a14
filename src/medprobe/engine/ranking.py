"""From scores to ranks: higher is better, and equal scores go by name, so order never matters."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

TIES: Final = 5  # what equals the last name of a list is listed too, so many at most


def best(scores: np.ndarray, k: int, ties: int = 0) -> np.ndarray:
    """The indices of the k highest scores, best first, equal ones by index: sort names beforehand.
    Behind them stand those that equal the k-th, `ties` at most.

    >>> best(np.array([0.1, 0.7, 0.9, 0.7]), 3), best(np.array([0.1, 0.7, 0.9, 0.7]), 2, ties=5)
    (array([2, 1, 3]), array([2, 1, 3]))
    """
    if k < len(scores):
        pool = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    else:
        pool = np.arange(len(scores))
    order = pool[np.argsort(-scores[pool], kind="stable")]
    return order[: k + ties]  # the pool holds no more than the k best and what equals the last


def rows(
    query_id: str, predictions: Iterable[tuple[str, float]], variant: str = "", replicate: str = ""
) -> list[dict[str, Any]]:
    """The predictions of one query, best first, as rows of the prediction table.

    >>> rows("q1", [("Nausea", -0.5)])[0]["rank"]
    1
    """
    return [
        {
            "variant": variant,
            "replicate": replicate,
            "query_id": query_id,
            "rank": rank,
            "prediction": name,
            "score": float(score),
        }
        for rank, (name, score) in enumerate(predictions, start=1)
    ]


class Remembered:
    """The scores of the prompts last seen. A prompt that stands in several subsets, the smaller
    with fewer names, is scored once: a relation's subsets are ranked one after another.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.of: dict[str, np.ndarray] = {}  # prompt -> scores, the names along the last axis

    def scores(
        self,
        prompts: Sequence[str],
        names: Sequence[str],
        compute: Callable[[], Iterable[np.ndarray]],
    ) -> list[np.ndarray]:
        """The scores of each prompt for these names, from `compute` where any is not known.

        >>> known, letters = Remembered(), ["a", "b", "c"]
        >>> _ = known.scores(["q"], letters, lambda: [np.array([1.0, 2.0, 3.0])])
        >>> known.scores(["q"], ["a", "c"], lambda: [])
        [array([1., 3.])]
        """
        index = {name: i for i, name in enumerate(self.names)}
        if not all(prompt in self.of for prompt in prompts) or not set(names) <= set(index):
            self.names, self.of = list(names), {}  # let go of the old before the new are made
            computed = list(compute())
            self.of = dict(zip(prompts, computed, strict=True))
            return computed
        chosen = [index[name] for name in names]
        return [self.of[prompt][..., chosen] for prompt in prompts]
