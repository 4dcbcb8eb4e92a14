"""From one value a query to the numbers of a comparison: by relation, macro and micro.

macro is the mean of the relations' means, micro the mean over all queries. Replicates (seeds,
sentence sets) are averaged, and their sample standard deviation is kept as `std`.
"""

from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.metrics import Scores, Scoring
from medprobe.metrics.intervals import interval, resampled_means

MEANS: Final = ("macro", "micro", "weighted")  # what stands where a relation does; weighted: of F1
KEYS: Final = ["variant", "replicate", "query_id"]
DIGITS: Final = 6


def summarise(values: pd.DataFrame, scoring: Scoring) -> Scores:
    """Scores of a table with the columns `variant, replicate, query_id, subset, relation` and one
    column of numbers for each metric. The same table and seed give the same scores.

    Parts of a subset (`full/answer-length:1-10`) have a micro value only.
    """
    scores: Scores = {}
    for (variant, subset), rows in values.groupby(["variant", "subset"], sort=True):
        table = _means(rows, scoring, by_relation="/" not in subset)
        scores.setdefault(variant or "default", {})[subset] = table
    return scores


def _means(
    rows: pd.DataFrame, scoring: Scoring, by_relation: bool
) -> dict[str, dict[str, dict[str, float]]]:
    metrics = [column for column in rows if column not in (*KEYS, "subset", "relation")]
    generator = np.random.default_rng(scoring.seed)
    queries = rows.groupby(["relation", "query_id"], sort=True)[metrics].mean()
    matrix = queries.to_numpy(float)

    def numbers(mean: np.ndarray, draws: np.ndarray, n: int, std: np.ndarray) -> dict[str, Any]:
        low, high = interval(mean, draws, scoring.params.confidence, n)
        return _numbers(metrics, n, value=mean, low=low, high=high, std=std)

    deviation = _deviation(rows, ["replicate"], metrics)
    draws = resampled_means(matrix, scoring.params.bootstrap, generator)
    micro = numbers(matrix.mean(axis=0), draws, len(matrix), deviation)
    if not by_relation:
        return {"micro": micro}
    result, means, all_draws = {}, [], []
    codes, relations = queries.index.codes[0], queries.index.levels[0]
    for code, relation in enumerate(relations):
        part = matrix[codes == code]
        means.append(part.mean(axis=0))
        all_draws.append(resampled_means(part, scoring.params.bootstrap, generator))
        deviation = _deviation(rows[rows["relation"] == relation], ["replicate"], metrics)
        result[str(relation)] = numbers(means[-1], all_draws[-1], len(part), deviation)
    deviation = _deviation(rows, ["replicate", "relation"], metrics)
    macro = numbers(np.mean(means, axis=0), np.mean(all_draws, axis=0), len(matrix), deviation)
    return {**result, "macro": macro, "micro": micro}


def _deviation(rows: pd.DataFrame, keys: list[str], metrics: list[str]) -> np.ndarray:
    """Sample standard deviation over replicates of the mean, or of the mean of relations' means."""
    if rows["replicate"].nunique() < 2:
        return np.full(len(metrics), np.nan)
    means = rows.groupby(keys, sort=True)[metrics].mean()
    return means.groupby(level="replicate").mean().std().to_numpy(float)


def _numbers(metrics: list[str], n: int, **columns: np.ndarray) -> dict[str, dict[str, float]]:
    """`{metric: {value, low, high, std, n}}`, without what is not a number."""
    return {
        metric: {
            key: round(float(numbers[index]), DIGITS)
            for key, numbers in columns.items()
            if not np.isnan(numbers[index])
        }
        | {"n": n}
        for index, metric in enumerate(metrics)
    }
