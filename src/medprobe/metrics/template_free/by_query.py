"""What each model makes of each query of a data set, and means over resamples of queries."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.params import Params
from medprobe.metrics.accuracy import values
from medprobe.metrics.intervals import means_of_sums, resampled_sums
from medprobe.metrics.results import prediction_tables
from medprobe.metrics.summary import read_queries
from medprobe.metrics.template_free.data_sets import METHOD, DataSet

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
    """Read accuracy and perplexity of every query of each data set that was probed."""
    scores: dict[DataSet, QueryScores] = {}
    for benchmark in dict.fromkeys(data.benchmark for data in sets):
        of_benchmark = [data for data in sets if data.benchmark == benchmark]
        predicted = dict(read_tables(predictions, benchmark, params))
        columns = ["variant", "query_id", "perplexity"]
        measured = dict(read_tables(predictions, benchmark, params, "perplexity", columns))
        for data in of_benchmark if predicted else []:
            every = read_queries(benchmarks / benchmark, data.cluster)
            queries = every[every["subset"] == data.subset]
            ids = queries["query_id"]
            codes, _ = pd.factorize(queries["cluster"], sort=True)
            accuracy = {
                model: _by_query(values(rows, queries, ties=False), METRIC, ids)
                for model, rows in _select(predicted, ids).items()
            }
            perplexity = {
                model: _by_query(rows, "perplexity", ids)
                for model, rows in _select(measured, ids).items()
            }
            if accuracy:
                cluster = pd.Series(codes, index=ids)
                scores[data] = QueryScores(data, cluster, accuracy, perplexity)
    return [scores[data] for data in sets if data in scores]


def _select(tables: dict[str, pd.DataFrame], ids: pd.Series) -> dict[str, pd.DataFrame]:
    """The rows of these queries of each model that has any."""
    rows = {model: table[table["query_id"].isin(ids)] for model, table in tables.items()}
    return {model: table for model, table in rows.items() if len(table)}


def _by_query(rows: pd.DataFrame, column: str, ids: pd.Series) -> np.ndarray:
    """A column in the order of the queries."""
    return rows.set_index("query_id")[column].reindex(ids).to_numpy(float)


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
            table = pd.read_parquet(path, columns=columns, filters=[("variant", "==", "")])
            yield path.parent.parent.name, table
