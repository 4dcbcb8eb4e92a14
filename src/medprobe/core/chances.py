"""What a guess reaches: names in random order, of which some are right."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.tables import DISTRACTOR, BenchmarkTables

KS: Final = (1, 5, 10)  # of acc@k


def chance_of_hit(right: np.ndarray, size: np.ndarray, k: int) -> np.ndarray:
    """Return the chance that one of the first k names in random order is right.

    Args:
        right: How many of the names are right, for each query.
        size: How many names there are, for each query.
        k: How many names are looked at.

    Returns:
        A share for each query; NaN where there are no names.

    >>> chance_of_hit(np.array([1, 2, 1, 0]), np.array([4, 4, 1, 0]), 2)
    array([0.5       , 0.83333333, 1.        ,        nan])
    """
    right, size = np.asarray(right, float), np.asarray(size, float)
    missed = np.ones(len(size))
    for drawn in range(k):
        remaining = np.where(size > drawn, size - drawn, 1.0)
        missed *= np.where(size > drawn, (size - right - drawn).clip(0) / remaining, 1.0)
    return np.where(size > 0, 1 - missed, np.nan)


def ranked_names(
    tables: BenchmarkTables, queries: pd.DataFrame, candidates: pd.DataFrame
) -> Mapping[str, set[str]]:
    """Return the names that are ranked for each relation.

    They are those of its answer space and its type, or all if none has it, without distractors.

    Args:
        tables: The benchmark.
        queries: Those of a subset.
        candidates: Those of the same subset.
    """
    ranked = candidates[candidates["type"] != DISTRACTOR]
    names = {}
    for relation in queries["relation"].unique():
        space = tables.restrict(ranked, str(relation))
        typed = space[space["type"] == relation]
        names[str(relation)] = set((typed if len(typed) else space)["name"])
    return names
