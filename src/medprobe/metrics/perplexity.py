"""Perplexity of filled prompts: how strange a model finds the sentences that it is probed with.

exp of the negative mean log-probability of a sentence's tokens. Each token is predicted from what
stands before it by causal models (Jurafsky and Martin, ch. 3), from all the rest by masked ones
(pseudo-perplexity: Salazar et al. 2020, section 2). A data set's value is the mean over its
prompts (Shaier et al., section 5.5).
"""

from pathlib import Path

import pandas as pd

from medprobe.metrics import Metric, Scorer, Scores, Scoring
from medprobe.metrics.splits import with_parts
from medprobe.metrics.summary import KEYS, read_queries, summarise, weighted


class Perplexity(Scorer):
    """The mean over queries of a column `perplexity`."""

    METRICS = (
        Metric(
            "perplexity",
            "perplexity",
            "lower",
            1.0,
            float("inf"),
            "Salazar et al. 2020 for masked models",
            tested=True,
            within_kind=True,
        ),
    )

    def score(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> Scores:
        queries = read_queries(benchmark, scoring.cluster)
        by_query = with_parts(values(predictions, queries), queries, scoring.facts)
        return summarise(by_query, scoring)

    def paired(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> pd.DataFrame:
        return weighted(values(predictions, read_queries(benchmark, scoring.cluster)))


def values(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """One row a variant, replicate and query: `variant, replicate, query_id, subset, relation,
    cluster` and `perplexity`, as accuracy's table."""
    asked = queries[["query_id", "subset", "relation", "cluster"]]
    table = predictions[[*KEYS, "perplexity"]].merge(asked, on="query_id", validate="many_to_one")
    return table[[*KEYS, "subset", "relation", "cluster", "perplexity"]]


SCORER = Perplexity()
