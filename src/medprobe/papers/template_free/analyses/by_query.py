"""What each model makes of each query of a data set, and means over resamples of queries."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.params import Params
from medprobe.core.tables import BenchmarkTables, whole_table
from medprobe.metrics.accuracy import values
from medprobe.metrics.resampling import means_of_sums, resampled_sums
from medprobe.metrics.results import prediction_tables
from medprobe.metrics.statistics import Clusters, holm, paired_test
from medprobe.metrics.summary import cluster_queries
from medprobe.papers.template_free.analyses.data_sets import METHOD, DataSet

COLUMNS: Final = ["variant", "replicate", "query_id", "rank", "prediction", "score", "hit"]


@dataclass
class QueryScores:
    """The queries of a data set.

    Attributes:
        data: the data set.
        cluster: by query, a number from 0: what is drawn together.
        accuracy: acc@1 of each model, by query.
    """

    data: DataSet
    cluster: pd.Series
    accuracy: dict[str, np.ndarray] = field(default_factory=dict)

    def draw_means(self, columns: list[np.ndarray], params: Params) -> np.ndarray:
        """Means over the queries, and over resamples of their clusters: [1 + resamples, columns].

        Data sets of the same clusters, as parallel ones are, draw the same ones.
        """
        codes, ones = self.cluster.to_numpy(), np.ones(len(self.cluster))
        sums = np.column_stack([np.bincount(codes, column) for column in [*columns, ones]])
        draws = resampled_sums(sums, params.score.bootstrap, params.seed)
        return means_of_sums(np.concatenate([sums.sum(axis=0, keepdims=True), draws]))


def read_scores(
    predictions: Path, benchmarks: Path, sets: list[DataSet], params: Params
) -> list[QueryScores]:
    """Read the accuracy of every query of each data set that was probed.

    One model's predictions are in memory at a time.
    """
    scores: dict[DataSet, QueryScores] = {}
    for benchmark in dict.fromkeys(data.benchmark for data in sets):
        of_benchmark = [data for data in sets if data.benchmark == benchmark]
        queries: dict[DataSet, pd.DataFrame] = {}
        for model, table in read_tables(predictions, benchmark, params):
            queries = queries or _read_queries(benchmarks / benchmark, of_benchmark)
            for data, rows in queries.items():
                of_set = table[table["query_id"].isin(rows["query_id"])]
                if len(of_set):
                    accuracy = values(of_set, rows, ties=False)
                    codes = pd.factorize(rows["cluster"], sort=True)[0]  # equal in parallel sets
                    cluster = pd.Series(codes, index=rows["query_id"])
                    item = scores.setdefault(data, QueryScores(data, cluster))
                    by_query = accuracy.set_index("query_id")["acc_at_1"]
                    ordered = by_query.reindex(rows["query_id"])
                    item.accuracy[model] = ordered.to_numpy(float)
    return [scores[data] for data in sets if data in scores]


def _read_queries(folder: Path, sets: list[DataSet]) -> dict[DataSet, pd.DataFrame]:
    queries, tables = {}, BenchmarkTables.read(folder)
    for data in sets:
        every = cluster_queries(tables, data.cluster)
        queries[data] = every[every["subset"] == data.subset]
    return queries


def read_tables(
    predictions: Path, benchmark: str, params: Params
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each model with its predictions on a benchmark, of the main variant of METHOD."""
    for path in prediction_tables(predictions, params):
        if (path.parent.name, path.stem) == (METHOD, benchmark):
            with whole_table(path):
                table = pd.read_parquet(path, columns=COLUMNS, filters=[("variant", "==", "")])
            yield path.parent.parent.name, table


def paired(difference: np.ndarray, cluster: np.ndarray, params: Params) -> dict[str, float]:
    """A mean difference over queries, its interval and its p; clusters are drawn whole."""
    test = paired_test(
        difference,
        np.ones(len(difference)),
        Clusters.of(cluster),
        confidence=params.score.confidence,
    ).of_shares()
    return {"difference": test.difference, "low": test.low, "high": test.high, "p": test.p}


def corrected(rows: list[dict[str, object]], by: list[str] | None = None) -> pd.DataFrame:
    """A table of tests with `p_holm`, corrected over all, or over those with equal values `by`."""
    table = pd.DataFrame(rows)
    if table.empty:
        return table
    tests = table.groupby(by or np.zeros(len(table)))["p"]
    return table.assign(p_holm=tests.transform(lambda p: holm(p.to_numpy(float))))
