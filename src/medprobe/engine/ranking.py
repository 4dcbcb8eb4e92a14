"""From scores to ranks: higher is better, and equal scores go by name, so order never matters."""

from collections.abc import Iterable
from typing import Any

import numpy as np


def best(scores: np.ndarray, k: int) -> np.ndarray:
    """The indices of the k highest scores, best first, equal ones by index: sort names beforehand.

    >>> best(np.array([0.1, 0.7, 0.9, 0.7]), 3)
    array([2, 1, 3])
    """
    if k < len(scores):
        pool = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    else:
        pool = np.arange(len(scores))
    order = pool[np.argsort(-scores[pool], kind="stable")]
    return order[:k]


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
