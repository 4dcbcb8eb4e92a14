"""From one value a query to the numbers of a comparison: by relation, macro and micro.

macro is the mean of the relations' means, micro the mean over all queries. Replicates (seeds,
sentence sets) are averaged, intervals draw them too, and their sample standard deviation is kept as
`std`.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core.tables import QUERY_COLUMNS, read_table
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.intervals import interval, replicate_weights, resampled_sums

MEANS: Final = ("macro", "micro", "weighted")  # what stands where a relation does; weighted: of F1
KEYS: Final = ["variant", "replicate", "query_id"]
DIGITS: Final = 6


def read_queries(benchmark: Path, cluster: str) -> pd.DataFrame:
    """The query table of the benchmark in this folder with a column `cluster`: what is equal in the
    column named so, the first entry of a list, is drawn together. A query without an entry is a
    cluster of its own. Raises BadInput where there is no such column."""
    queries = read_table(benchmark / "queries.parquet", [*QUERY_COLUMNS, cluster])
    names = queries[cluster].map(lambda one: one if isinstance(one, str) else next(iter(one), ""))
    return queries.assign(cluster=names.where(names != "", queries["query_id"]))


def weighted(values: pd.DataFrame) -> pd.DataFrame:
    """The table with a column `weight`, by which its mean is the macro mean: each relation of a
    variant, replicate and subset counts alike."""
    keys = ["variant", "replicate", "subset", "relation"]
    return values.assign(weight=1 / values.groupby(keys)["query_id"].transform("size"))


def summarise(values: pd.DataFrame, scoring: Scoring) -> Scores:
    """Scores of a table with the columns `variant, replicate, query_id, subset, relation, cluster`
    and one column of numbers for each metric. The same table and seed give the same scores.

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
    metrics = [c for c in rows if c not in (*KEYS, "subset", "relation", "cluster", "weight")]
    rows = rows.sort_values(["relation", "query_id", "cluster", "replicate"], kind="stable")
    relation, names = pd.factorize(rows["relation"])
    cluster, clusters = pd.factorize(rows["cluster"])
    replicate, replicates = pd.factorize(rows["replicate"], sort=True)
    counted = np.column_stack([rows[metrics].to_numpy(float), np.ones(len(rows))])
    sums = np.zeros((len(clusters), len(replicates), len(names), counted.shape[1]))
    np.add.at(sums, (cluster, replicate, relation), counted)
    first = ~rows.duplicated(["relation", "query_id", "cluster"]).to_numpy()
    sizes = np.bincount(relation[first])  # queries of each relation
    flat = sums.reshape(len(clusters), -1)
    resamples = scoring.params.bootstrap
    drawn = resampled_sums(flat, resamples, scoring.seed)
    each = np.vstack([flat.sum(axis=0), drawn]).reshape(-1, *sums.shape[1:])  # itself comes first
    weights = replicate_weights(len(replicates), resamples, scoring.seed)
    totals = np.einsum("dsrm,ds->drm", each, weights)

    def numbers(means: np.ndarray, among: int, n: int, deviation: np.ndarray) -> dict[str, Any]:
        value = means[0]
        low, high = interval(value, means[1:], scoring.params.confidence, among)
        return _numbers(metrics, n, value=value, low=low, high=high, std=deviation)

    deviation = _deviation(rows, ["replicate"], metrics)
    micro = numbers(_divided(totals.sum(axis=1)), len(clusters), first.sum(), deviation)
    if not by_relation:
        return {"micro": micro}
    means, among = _divided(totals), (sums[..., -1].sum(axis=1) > 0).sum(axis=0)
    result = {}
    for place, name in enumerate(names):
        deviation = _deviation(rows[rows["relation"] == name], ["replicate"], metrics)
        result[str(name)] = numbers(means[:, place], among[place], sizes[place], deviation)
    deviation = _deviation(rows, ["replicate", "relation"], metrics)
    macro = numbers(np.nanmean(means, axis=1), len(clusters), first.sum(), deviation)
    return {**result, "macro": macro, "micro": micro}


def _divided(totals: np.ndarray) -> np.ndarray:
    """Means, from sums whose last column is the number summed; NaN where that is 0."""
    sums, whole = totals[..., :-1], totals[..., -1:]
    return np.divide(sums, whole, out=np.full_like(sums, np.nan), where=whole > 0)


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
        | {"n": int(n)}
        for index, metric in enumerate(metrics)
    }
