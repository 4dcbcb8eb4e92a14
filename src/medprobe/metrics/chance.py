"""The accuracy that is expected of names in random order: the baselines `chance`, `random_answer`.

A prediction table of this family has no predictions. It has a row for each query and metric, with
the metric's name as `prediction` and its expected value as `score`.
"""

from pathlib import Path

import pandas as pd

from medprobe.metrics import Scorer, Scores, Scoring
from medprobe.metrics.accuracy import Accuracy
from medprobe.metrics.splits import with_parts
from medprobe.metrics.summary import (
    KEYS,
    QUERY_KEYS,
    check_queries,
    read_queries,
    summarise,
    weighted,
)


class Chance(Scorer):
    """Means of expected accuracies."""

    METRICS = tuple(metric for metric in Accuracy.METRICS if metric.name.startswith("acc_at_"))

    def score(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> Scores:
        """Average by subset, part of a subset and relation, as accuracy does."""
        queries = read_queries(benchmark, scoring.cluster)
        parts = with_parts(_values(predictions, queries), queries, scoring.facts)
        return summarise(parts, scoring, self.METRICS)

    def paired(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> pd.DataFrame:
        """Return the expected accuracy of each query."""
        return weighted(_values(predictions, read_queries(benchmark, scoring.cluster)))


def _values(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """One row per query, one column per metric."""
    check_queries(predictions, queries)
    table = predictions.pivot_table(index=KEYS, columns="prediction", values="score")
    return table.reset_index().merge(queries[QUERY_KEYS], on="query_id")


SCORER = Chance()
