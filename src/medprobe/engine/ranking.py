"""From scores to ranks: higher is better, and equal scores go by name."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

MAX_TIES: Final = 5  # what equals the last name of a list is listed too, so many at most


def best_indices(scores: np.ndarray, k: int, ties: int = 0) -> np.ndarray:
    """Return the indices of the k highest scores, best first; equal ones by index.

    Sort the names beforehand, so that equal scores go by name.

    Args:
        scores: [names].
        k: How many.
        ties: At most so many more, of those that equal the k-th.

    >>> scores = np.array([0.1, 0.7, 0.9, 0.7])
    >>> best_indices(scores, 3), best_indices(scores, 2, ties=5)
    (array([2, 1, 3]), array([2, 1, 3]))
    """
    if k < len(scores):
        pool = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    else:
        pool = np.arange(len(scores))
    order = pool[np.argsort(-scores[pool], kind="stable")]
    return order[: k + ties]  # the pool holds no more than the k best and what equals the last


def prediction_rows(
    query_id: str, predictions: Iterable[tuple[str, float]], variant: str = "", replicate: str = ""
) -> list[dict[str, Any]]:
    """Return the predictions of one query as rows of the prediction table.

    >>> prediction_rows("q1", [("Nausea", -0.5)])[0]["rank"]
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


class ScoreCache:
    """The scores of the prompts seen last.

    A prompt that occurs in several subsets, the smaller ones with fewer names, is scored once,
    since a relation's subsets are ranked one after another.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.scores_by_prompt: dict[
            str, np.ndarray
        ] = {}  # prompt -> scores, the names along the last axis

    def scores(
        self,
        prompts: Sequence[str],
        names: Sequence[str],
        compute: Callable[[], Iterable[np.ndarray]],
    ) -> list[np.ndarray]:
        """Return the scores of each prompt for these names; call `compute` where any is missing.

        >>> cache, letters = ScoreCache(), ["a", "b", "c"]
        >>> _ = cache.scores(["q"], letters, lambda: [np.array([1.0, 2.0, 3.0])])
        >>> cache.scores(["q"], ["a", "c"], lambda: [])
        [array([1., 3.])]
        """
        index = {name: i for i, name in enumerate(self.names)}
        if not all(prompt in self.scores_by_prompt for prompt in prompts) or not set(names) <= set(
            index
        ):
            self.names, self.scores_by_prompt = (
                list(names),
                {},
            )  # let go of the old before the new are made
            scores = list(compute())
            self.scores_by_prompt = dict(zip(prompts, scores, strict=True))
            return scores
        columns = [index[name] for name in names]
        return [self.scores_by_prompt[prompt][..., columns] for prompt in prompts]
