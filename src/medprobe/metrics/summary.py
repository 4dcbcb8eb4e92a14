"""From one value a query to the numbers of a comparison: by relation, macro and micro.

macro is the mean of the relations' means, micro the mean over all queries. Replicates (seeds,
sentence sets) are averaged, intervals draw them too, and their sample standard deviation is kept as
`std`. Intervals answer for the relation: they draw clusters of subjects and of answers
(`two_way`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core.benchmark_statistics import answer_keys
from medprobe.core.errors import BadInput
from medprobe.core.shuffling import name_clusters
from medprobe.core.tables import QUERY_COLUMNS, read_table
from medprobe.metrics import Metric, Scores, Scoring
from medprobe.metrics.comparisons import Jackknife, jackknife
from medprobe.metrics.intervals import (
    Scale,
    counts_of_clusters,
    interval,
    means_of_sums,
    replicate_weights,
)

MEANS: Final = ("macro", "micro", "weighted")  # what stands where a relation does; weighted: of F1
KEYS: Final = ["variant", "replicate", "query_id"]
QUERY_KEYS: Final = ["query_id", "subset", "relation", "cluster", "answer"]  # of `read_queries`
ABOUT: Final = {*KEYS, *QUERY_KEYS, "weight"}  # what is no metric
DIGITS: Final = 6


def read_queries(benchmark: Path, cluster: str) -> pd.DataFrame:
    """The query table of a benchmark with three columns that say what belongs together.

    `cluster` holds subjects whose names end alike (`name_clusters`). `first_answer` is the
    relation with the first answer's id, or its name where it has none, and `answer` the relation
    with the cluster of that name. `cluster` and `answer` are drawn together. A query without an
    answer is alone.

    Args:
        benchmark: the benchmark's folder.
        cluster: the column whose equal values are one subject; of a list, its first entry. A query
            without an entry has a subject of its own.

    Raises:
        BadInput: there is no such column.
    """
    queries = read_table(benchmark / "queries.parquet", [*QUERY_COLUMNS, cluster])
    keys, ids = answer_keys(queries).map(_first_entry), queries["query_id"]
    subjects = queries[cluster].map(_first_entry)
    queries["first_answer"] = (queries["relation"] + " " + keys).where(keys != "", ids)
    queries["cluster"] = name_clusters(queries.assign(key=subjects.where(subjects != "", ids)))
    names = queries["answers"].map(_first_entry)
    answers = name_clusters(queries.assign(subject=names, key=queries["first_answer"]))
    return queries.assign(answer=queries["relation"] + " " + answers)


def _first_entry(entry: object) -> str:
    """A text, or the first of a list of them; empty where there is none."""
    return entry if isinstance(entry, str) else next(iter(entry), "")  # type: ignore[call-overload]


def check_queries(predictions: pd.DataFrame, queries: pd.DataFrame) -> None:
    """Raise BadInput for the first prediction whose query is not in the benchmark."""
    is_foreign = ~predictions["query_id"].isin(queries["query_id"])
    for query in predictions.loc[is_foreign, "query_id"].head(1):
        problem = "a prediction's query is not in the benchmark"
        raise BadInput(f"query {query}", problem, "run `dvc repro` to probe the benchmark again")


def weighted(values: pd.DataFrame) -> pd.DataFrame:
    """The table with a column `weight`, by which its mean is the macro mean.

    Each relation of a variant, replicate and subset counts alike.
    """
    keys = ["variant", "replicate", "subset", "relation"]
    return values.assign(weight=1 / values.groupby(keys)["query_id"].transform("size"))


def summarise(values: pd.DataFrame, scoring: Scoring, metrics: Sequence[Metric] = ()) -> Scores:
    """Scores with their intervals, from one value a query.

    Parts of a subset (`full/answer-length:1-10`) have a micro value only. The same table and seed
    give the same scores.

    Args:
        values: the columns `variant, replicate, query_id, subset, relation, cluster`, `answer`
            where answers are drawn too, and one column of numbers for each metric.
        scoring: resamples, confidence and seed.
        metrics: what is known of the metrics; one that is not among them is a share.
    """
    scales = {metric.name: metric.scale for metric in metrics}
    scores: Scores = {}
    groups = values.groupby(["variant", "subset"]).indices  # iterating would copy all rows at once
    for (variant, subset), places in sorted(groups.items()):
        rows = values.iloc[places]
        table = _means(rows, scoring, scales, by_relation="/" not in subset)
        scores.setdefault(variant or "default", {})[subset] = table
    return scores


def _means(
    rows: pd.DataFrame, scoring: Scoring, scales: dict[str, Scale], by_relation: bool
) -> dict[str, dict[str, dict[str, float]]]:
    metrics = [column for column in rows if column not in ABOUT]
    rows = rows.sort_values(["relation", "query_id", "cluster", "replicate"], kind="stable")
    relation, names = pd.factorize(rows["relation"])
    replicates = rows["replicate"].nunique()
    is_first = ~rows.duplicated(["relation", "query_id", "cluster"]).to_numpy()
    sizes = np.bincount(relation[is_first])  # queries of each relation
    resamples = scoring.params.bootstrap
    draws = _draws(rows, metrics, relation, resamples, scoring.seed)
    weights = replicate_weights(replicates, resamples, scoring.seed)
    # Sums over replicates s, each as often as it was drawn: of draws d, relations r and metrics m.
    totals = np.einsum("dsrm,ds->drm", draws, weights)

    def numbers(means: np.ndarray, part: pd.DataFrame, n: int, *keys: str) -> dict[str, Any]:
        """The numbers of a mean over the rows of `part`, of the means over `keys` if given."""
        value, deviation = means[0], _deviation(part, ["replicate", *keys], metrics)
        spread = _jackknife(part, value, metrics, keys)
        low, high = interval(
            value,
            means[1:],
            scoring.params.confidence,
            spread.units,
            scales=[scales.get(metric, "share") for metric in metrics],
            widening=spread.widening,
            freedom=spread.freedom,
        )
        return number_table(metrics, n, value=value, low=low, high=high, std=deviation)

    micro = numbers(means_of_sums(totals.sum(axis=1)), rows, is_first.sum())
    if not by_relation:
        return {"micro": micro}
    means = means_of_sums(totals)
    result = {
        str(name): numbers(means[:, index], rows[relation == index], sizes[index])
        for index, name in enumerate(names)
    }
    macro = numbers(np.nanmean(means, axis=1), rows, is_first.sum(), "relation")
    return {**result, "macro": macro, "micro": micro}


def _draws(
    rows: pd.DataFrame, metrics: list[str], relation: np.ndarray, resamples: int, seed: int
) -> np.ndarray:
    """Sums of each replicate, relation and metric, and last how many rows were summed.

    Sums of a cluster are made only for the relations that it occurs in, since most occur in few.

    Returns:
        [1 + resamples, replicates, relations, metrics + 1]; the rows themselves come first.
    """
    cluster, clusters = pd.factorize(rows["cluster"])
    replicate, replicates = pd.factorize(rows["replicate"], sort=True)
    values = np.column_stack([rows[metrics].to_numpy(float), np.ones(len(rows))])
    by_relation = []
    for index in range(relation.max() + 1):
        of_relation = np.flatnonzero(relation == index)
        members, places = np.unique(cluster[of_relation], return_inverse=True)
        sums = np.zeros((len(members), len(replicates), values.shape[1]))
        np.add.at(sums, (places, replicate[of_relation]), values[of_relation])
        by_relation.append((members, sums))
    itself = np.stack([sums.sum(axis=0) for _, sums in by_relation], axis=1)[None]
    blocks = [
        np.stack([np.tensordot(counts[:, members], sums, 1) for members, sums in by_relation], 2)
        for counts in counts_of_clusters(len(clusters), resamples, seed)
    ]
    return np.concatenate([itself, *blocks])


def _jackknife(
    rows: pd.DataFrame, value: np.ndarray, metrics: list[str], keys: tuple[str, ...]
) -> Jackknife:
    """By how much each metric's deviation over subjects is too small (`two_way.jackknife`).

    Rows without answers, or that are answers, have one side only.
    """
    subjects = pd.factorize(rows["cluster"])[0]
    answers = pd.factorize(rows["answer"])[0] if "answer" in rows else subjects
    numbers = rows[metrics].to_numpy(float)
    groups, centre = np.zeros(len(rows), dtype=int), value
    if keys:
        by_keys = rows.groupby([*keys])
        groups = by_keys.ngroup().to_numpy()
        centre = by_keys[metrics].transform("mean").to_numpy(float)
    size = np.bincount(groups)[groups][:, None]
    shares = np.where(np.isnan(numbers), 0.0, numbers - centre) / size
    relations = pd.factorize(rows["relation"])[0]
    return jackknife(shares, groups, relations, subjects, answers)


def _deviation(rows: pd.DataFrame, keys: list[str], metrics: list[str]) -> np.ndarray:
    """Sample standard deviation over replicates of the mean, or of the mean of relations' means."""
    if rows["replicate"].nunique() < 2:
        return np.full(len(metrics), np.nan)
    means = rows.groupby(keys, sort=True)[metrics].mean()
    return means.groupby(level="replicate").mean().std().to_numpy(float)


def add_scores(scores: Scores, further: Scores) -> None:
    """Add the numbers of further metrics, or of further parts, to scores."""
    for variant, subsets in further.items():
        for subset, relations in subsets.items():
            table = scores.setdefault(variant, {}).setdefault(subset, {})
            for relation, numbers in relations.items():
                table.setdefault(relation, {}).update(numbers)


def number_table(
    metrics: Sequence[str], n: int, **columns: np.ndarray
) -> dict[str, dict[str, Any]]:
    """Round the numbers of each metric, without those that are not a number.

    Args:
        metrics: the names, in the order of the columns.
        n: how many queries, or other units.
        **columns: `value`, `low`, `high` and `std`, [metrics] each.

    Returns:
        Metric -> its numbers and `n`.

    Example:
        >>> number_table(["f1"], 9, value=np.array([0.25]), low=np.array([np.nan]))
        {'f1': {'value': 0.25, 'n': 9}}
    """
    return {
        metric: {
            key: round(float(numbers[index]), DIGITS)
            for key, numbers in columns.items()
            if not np.isnan(numbers[index])
        }
        | {"n": int(n)}
        for index, metric in enumerate(metrics)
    }
