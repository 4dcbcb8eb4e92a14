"""Inside against outside: how often a right statement of a query scores above a wrong one.

For each query K is the share of its pairs of a right and a wrong answer in which the right one
scores higher, ties one half; K* is 1 where all pairs are so (Gekhman et al. 2025).
"""

from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.metrics import Metric, Scorer, Scores, Scoring
from medprobe.metrics.splits import with_parts
from medprobe.metrics.summary import (
    KEYS,
    QUERY_KEYS,
    check_queries,
    read_queries,
    summarise,
    weighted,
)

_K: Final = "K of Gekhman et al. 2025: share of pairs, ties one half"
_K_ALL: Final = "K* of Gekhman et al. 2025: share of queries"


class PairRanking(Scorer):
    """Ranked pairs of a column `score`; `hit` says which statements are right."""

    METRICS = (
        Metric(
            *("pairs_ranked", "pairs ranked right", "higher", 0.0, 1.0, _K),
            tested=True,
            guessing=0.5,
        ),
        Metric("all_pairs_ranked", "all pairs ranked right", "higher", 0.0, 1.0, _K_ALL),
    )

    def score(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> Scores:
        """Score ranked pairs by subset, part of a subset and relation."""
        queries = read_queries(benchmark, scoring.cluster)
        by_query = values(predictions, queries)
        return summarise(with_parts(by_query, queries, scoring.facts), scoring, self.METRICS)

    def paired(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> pd.DataFrame:
        """Return the share of each query's pairs that are ranked right."""
        return weighted(values(predictions, read_queries(benchmark, scoring.cluster)))


def values(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """Compute one row per variant, replicate and query that has a pair.

    Args:
        predictions: a prediction table with right and wrong statements.
        queries: as `read_queries` gives them.

    Returns:
        The columns `variant, replicate, query_id, subset, relation, cluster, answer, pairs_ranked,
        all_pairs_ranked`.

    Raises:
        BadInput: the predictions are of another benchmark.
    """
    check_queries(predictions, queries)
    is_right = predictions["hit"].astype(bool)
    rows = predictions[[*KEYS, "score"]]
    pairs = rows[is_right].merge(rows[~is_right], on=KEYS, suffixes=("_right", "_wrong"))
    right, wrong = pairs["score_right"], pairs["score_wrong"]
    pairs["ranked"] = (right > wrong) + (right == wrong) / 2
    by_query = pairs.groupby(KEYS, as_index=False)["ranked"].agg(["mean", "min"])
    table = by_query.rename(columns={"mean": "pairs_ranked", "min": "all_pairs_ranked"})
    table["all_pairs_ranked"] = (table["all_pairs_ranked"] == 1).astype(float)
    return table.merge(queries[QUERY_KEYS], on="query_id")


SCORER = PairRanking()
