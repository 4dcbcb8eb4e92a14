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
        folder = benchmarks / benchmark
        tables = [
            (model, "accuracy", table)
            for model, table in read_tables(predictions, benchmark, params)
        ]
        columns = ["variant", "query_id", "perplexity"]
        tables += [
            (model, "perplexity", table)
            for model, table in read_tables(predictions, benchmark, params, "perplexity", columns)
        ]
        for data in (data for data in sets if tables and data.benchmark == benchmark):
            every = read_queries(folder, data.cluster)
            queries = every[every["subset"] == data.subset]
            codes, _ = pd.factorize(queries["cluster"], sort=True)
            found = QueryScores(data, pd.Series(codes, index=queries["query_id"]))
            for model, what, table in tables:
                rows = table[table["query_id"].isin(found.cluster.index)]
                if len(rows):
                    getattr(found, what)[model] = _by_query(rows, what, queries)
            if found.accuracy:
                scores[data] = found
    return [scores[data] for data in sets if data in scores]


def _by_query(rows: pd.DataFrame, what: str, queries: pd.DataFrame) -> np.ndarray:
    """The values of one model in the order of the queries."""
    column = METRIC if what == "accuracy" else what
    table = values(rows, queries, ties=False) if what == "accuracy" else rows
    return table.set_index("query_id")[column].reindex(queries["query_id"]).to_numpy(float)


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
