"""What each model makes of each query of a data set, and means over resamples of queries."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.params import Params
from medprobe.core.tables import whole_table
from medprobe.metrics.accuracy import values
from medprobe.metrics.intervals import means_of_sums, resampled_sums
from medprobe.metrics.results import prediction_tables
from medprobe.metrics.summary import read_queries
from medprobe.papers.template_free.analyses.data_sets import METHOD, DataSet

METRIC: Final = "acc_at_1"
COLUMNS: Final = ["variant", "replicate", "query_id", "rank", "prediction", "score", "hit"]


@dataclass
class QueryScores:
    """The queries of a data set.

    Attributes:
        data: the data set.
        cluster: by query, a number from 0: what is drawn together.
        accuracy: acc@1 of each model, by query.
        perplexity: perplexity of each model, by query; NaN where a prompt has none.
    """

    data: DataSet
    cluster: pd.Series
    accuracy: dict[str, np.ndarray] = field(default_factory=dict)
    perplexity: dict[str, np.ndarray] = field(default_factory=dict)

    def sums(self, columns: list[np.ndarray]) -> np.ndarray:
        """Sums of values by cluster, and last the number of queries: [clusters, columns + 1]."""
        codes = self.cluster.to_numpy()
        ones = np.ones(len(codes))
        return np.column_stack([np.bincount(codes, column) for column in [*columns, ones]])

    def draw_means(self, columns: list[np.ndarray], params: Params) -> np.ndarray:
        """Means over the queries, and over resamples of their clusters: [1 + resamples, columns].

        Data sets of the same clusters, as parallel ones are, draw the same ones.
        """
        sums = self.sums(columns)
        draws = resampled_sums(sums, params.score.bootstrap, params.seed)
        return means_of_sums(np.concatenate([sums.sum(axis=0, keepdims=True), draws]))


def read_scores(
    predictions: Path, benchmarks: Path, sets: list[DataSet], params: Params
) -> list[QueryScores]:
    """Read accuracy and perplexity of every query of each data set that was probed.

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
                    item = scores.setdefault(data, QueryScores(data, _number_clusters(rows)))
                    item.accuracy[model] = _by_query(accuracy, METRIC, rows)
        columns = ["variant", "query_id", "perplexity"]
        measured = [data for data in queries if data in scores]
        for model, table in read_tables(predictions, benchmark, params, "perplexity", columns):
            for data in measured:
                rows = queries[data]
                if table["query_id"].isin(rows["query_id"]).any():
                    scores[data].perplexity[model] = _by_query(table, "perplexity", rows)
    return [scores[data] for data in sets if data in scores]


def _read_queries(folder: Path, sets: list[DataSet]) -> dict[DataSet, pd.DataFrame]:
    """The queries of each data set of a benchmark."""
    queries = {}
    for data in sets:
        every = read_queries(folder, data.cluster)
        queries[data] = every[every["subset"] == data.subset]
    return queries


def _number_clusters(queries: pd.DataFrame) -> pd.Series:
    """A number from 0 for the cluster of each query; equal for data sets of the same clusters."""
    codes, _ = pd.factorize(queries["cluster"], sort=True)
    return pd.Series(codes, index=queries["query_id"])


def _by_query(rows: pd.DataFrame, column: str, queries: pd.DataFrame) -> np.ndarray:
    """A column in the order of the queries."""
    return rows.set_index("query_id")[column].reindex(queries["query_id"]).to_numpy(float)


def read_tables(
    predictions: Path,
    benchmark: str,
    params: Params,
    method: str = METHOD,
    columns: list[str] = COLUMNS,
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each model with its predictions on a benchmark, of the main variant of a method."""
    for path in prediction_tables(predictions, params):
        if (path.parent.name, path.stem) == (method, benchmark):
            with whole_table(path):
                table = pd.read_parquet(path, columns=columns, filters=[("variant", "==", "")])
            yield path.parent.parent.name, table
