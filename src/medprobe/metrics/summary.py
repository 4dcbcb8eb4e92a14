"""From one value a query to the numbers of a comparison: by relation, macro and micro.

macro is the mean of the relations' means, micro the mean over all queries. Replicates (seeds,
sentence sets) are averaged, intervals say how far a value would move with other ones, too, and
their sample standard deviation is kept as `std`. Intervals answer for the relation: for other
subjects, and for other answers where the table has not all of them (`cluster_queries`).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from medprobe.core.benchmark_statistics import answer_keys
from medprobe.core.errors import BadInput
from medprobe.core.tables import OWN_TABLE, RELATION_ANSWERS, BenchmarkTables
from medprobe.metrics import Metric, Scores, Scoring
from medprobe.metrics.clusters import name_clusters
from medprobe.metrics.statistics import Clusters, Scale, Spread, interval, jackknife

MEANS: Final = ("macro", "micro", "weighted")  # what stands where a relation does; weighted: of F1
KEYS: Final = ["variant", "replicate", "query_id"]
QUERY_KEYS: Final = ["query_id", "subset", "relation", "cluster", "answer"]  # of `cluster_queries`
ABOUT: Final = {*KEYS, *QUERY_KEYS, "weight"}  # what is no metric
DIGITS: Final = 6
WHOLE: Final = 0.9  # of the source's answers: a table with so many has all of the relation


@lru_cache(maxsize=2)
def cluster_queries(tables: BenchmarkTables, cluster: str) -> pd.DataFrame:
    """The query table of a benchmark with columns that say what belongs together.

    `cluster` holds subjects whose names end alike (`name_clusters`). `first_answer` is the
    relation with the first answer's id, or its name where it has none, and `answer_cluster` the
    relation with the cluster of that name. `cluster` and `answer` are drawn together: `answer` is
    `answer_cluster`. A query without an
    answer is alone, and so is each query of a relation whose answers the table has (`WHOLE`): other
    queries of it have the same answers, so chance draws subjects alone.
    """
    queries = tables.queries.copy()
    keys, ids = answer_keys(queries).map(_first_entry), queries["query_id"]
    subjects = queries[cluster].map(_first_entry)
    queries["first_answer"] = (queries["relation"] + " " + keys).where(keys != "", ids)
    queries["cluster"] = name_clusters(queries.assign(key=subjects.where(subjects != "", ids)))
    names = queries["answers"].map(_first_entry)
    answers = name_clusters(queries.assign(subject=names, key=queries["first_answer"]))
    queries["answer_cluster"] = queries["relation"] + " " + answers
    is_whole = queries["relation"].isin(_whole_relations(tables))
    return queries.assign(answer=queries["answer_cluster"].mask(is_whole, ids))


def _whole_relations(tables: BenchmarkTables) -> set[str]:
    """The relations of which a benchmark has all answers of the source, or nearly all.

    A table of one's own has all its answers; of others a drawn benchmark says what was left out.
    """
    drawn_from = tables.others.get(RELATION_ANSWERS)
    if drawn_from is None:
        return {*tables.queries["relation"]} if tables.builder == OWN_TABLE else set()
    source = drawn_from.groupby("relation")["name"].agg(set)
    present = tables.queries.explode("answers").groupby("relation")["answers"].agg(set)
    return {
        str(relation)
        for relation, names in present.items()
        if relation in source.index
        and len(names & source[relation]) >= WHOLE * len(source[relation])
    }


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
    relation, replicate, cluster = (
        pd.factorize(rows[name])[0] for name in ("relation", "replicate", "cluster")
    )
    # Rows without answers, or that are answers, have one side only.
    answer = pd.factorize(rows["answer"])[0] if "answer" in rows else np.arange(len(rows))
    is_first = (~rows.duplicated(["relation", "query_id", "cluster"])).to_numpy()
    values = rows[metrics].to_numpy(float)
    table = _Rows(values, relation, replicate, cluster, answer, is_first)
    names = pd.unique(rows["relation"])

    def numbers(part: _Rows, *, of_relations: bool) -> dict[str, Any]:
        value, by_replicate = part.means(of_relations=of_relations)
        spread = part.spread(of_relations=of_relations)
        deviation, std = spread.deviation, np.full(len(metrics), np.nan)
        if len(by_replicate) > 1:
            std = by_replicate.std(axis=0, ddof=1)
            deviation = np.sqrt(deviation**2 + std**2 / len(by_replicate))
        low, high = interval(
            value,
            deviation,
            scoring.params.confidence,
            spread.units,
            freedom=spread.freedom,
            scales=[scales.get(metric, "share") for metric in metrics],
        )
        return number_table(
            metrics, int(part.is_first.sum()), value=value, low=low, high=high, std=std
        )

    micro = numbers(table, of_relations=False)
    if not by_relation:
        return {"micro": micro}
    result = {
        str(name): numbers(table.at(table.relation == index), of_relations=False)
        for index, name in enumerate(names)
    }
    return {**result, "macro": numbers(table, of_relations=True), "micro": micro}


class _Rows(NamedTuple):
    """The numbers of a variant on a subset, [rows, metrics], and what belongs together."""

    values: np.ndarray
    relation: np.ndarray
    replicate: np.ndarray
    cluster: np.ndarray
    answer: np.ndarray
    is_first: np.ndarray  # of the rows of one query, which replicates have several of

    def at(self, mask: np.ndarray) -> "_Rows":
        """Some of the rows."""
        values, *codes, is_first = (column[mask] for column in self)
        relation, replicate, cluster, answer = (np.unique(x, return_inverse=True)[1] for x in codes)
        return _Rows(values, relation, replicate, cluster, answer, is_first)

    def means(self, *, of_relations: bool) -> tuple[np.ndarray, np.ndarray]:
        """The means over rows or over relations' means; and the same by replicate."""
        groups = self.relation if of_relations else np.zeros_like(self.relation)
        cells = self.replicate * (groups.max() + 1) + groups
        by_replicate = _group_means(self.values, cells).reshape(
            self.replicate.max() + 1, -1, self.values.shape[1]
        )
        return _mean(_group_means(self.values, groups)), np.stack([_mean(x) for x in by_replicate])

    def spread(self, *, of_relations: bool) -> Spread:
        """How far the means move with other subjects and answers."""
        groups = self.relation if of_relations else np.zeros_like(self.relation)
        around = self.values - _group_means(self.values, groups)[groups]
        shares = np.where(np.isnan(around), 0.0, around) / np.bincount(groups)[groups][:, None]
        shares /= groups.max() + 1
        # A query's replicates are of one subject and one answer.
        return jackknife(shares, groups, self.relation, Clusters.of(self.cluster, self.answer))


def _group_means(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The mean of each group, [groups, metrics]; NaN where a value is, or where it has no row."""
    sums = np.stack([np.bincount(groups, column, groups.max() + 1) for column in values.T], axis=1)
    sizes = np.bincount(groups)[:, None]
    return np.divide(sums, sizes, out=np.full_like(sums, np.nan), where=sizes > 0)


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean of the rows that are numbers; NaN where none is."""
    is_number = ~np.isnan(values)
    count = is_number.sum(axis=0)
    sums = np.where(is_number, values, 0.0).sum(axis=0)
    return np.divide(sums, count, out=np.full(len(count), np.nan), where=count > 0)


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
