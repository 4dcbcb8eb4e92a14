"""Perplexity of filled prompts: how strange a model finds the sentences that it is probed with.

exp of the negative mean log-probability of a sentence's tokens. Each token is predicted from what
precedes it by causal models (Jurafsky and Martin, ch. 3), from all the rest by masked ones
(pseudo-perplexity: Salazar et al. 2020, section 2). A data set's value is the mean over its
prompts (Shaier et al., section 5.5). A few prompts with names that a model never read can make most
of that mean, so that the geometric mean and the median are given too.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from medprobe.core.tables import BenchmarkTables
from medprobe.metrics import Metric, Scorer, Scores, Scoring
from medprobe.metrics.splits import with_parts
from medprobe.metrics.summary import DIGITS, KEYS, QUERY_KEYS, cluster_queries, summarise, weighted


def _metric(name: str, source: str, *, tested: bool = False, log: bool = False) -> Metric:
    title = name.replace("perplexity_", "perplexity, ").replace("_", " ")
    return Metric(
        *(name, title, "lower", 1.0, float("inf"), source),
        tested=tested,
        within_kind=True,
        logarithmic=log,
    )


class Perplexity(Scorer):
    """The mean over queries of a column `perplexity`."""

    DRAWS_ANSWERS = True
    METRICS = (
        _metric("perplexity", "Salazar et al. 2020 for masked models", tested=True, log=True),
        _metric("perplexity_geometric_mean", "exp of the mean logarithm over prompts", log=True),
        _metric("perplexity_median", "of the prompts of a relation"),
    )

    def score(self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring) -> Scores:
        """Score mean, geometric mean and median by subset, part of a subset and relation."""
        queries = cluster_queries(tables, scoring.cluster)
        by_query = with_parts(values(predictions, queries), queries, scoring.facts)
        logs = by_query.assign(perplexity_geometric_mean=np.log(by_query["perplexity"]))
        plain = [replace(metric, logarithmic=False) for metric in self.METRICS[1:]]
        scores = summarise(logs, scoring, [self.METRICS[0], *plain])
        for variant, subsets in scores.items():
            rows = by_query[by_query["variant"] == ("" if variant == "default" else variant)]
            for subset, relations in subsets.items():
                _complete(relations, rows[rows["subset"] == subset])
        return scores

    def paired(
        self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
    ) -> pd.DataFrame:
        """Return the perplexity of each query."""
        return weighted(values(predictions, cluster_queries(tables, scoring.cluster)))


def _complete(relations: dict[str, dict[str, dict[str, float]]], rows: pd.DataFrame) -> None:
    """Turn mean logarithms into geometric means, and add medians."""
    medians = rows.groupby("relation")["perplexity"].median()
    means = {"micro": rows["perplexity"].median(), "macro": medians.mean()}
    for relation, numbers in relations.items():
        geometric = numbers["perplexity_geometric_mean"]
        for name in ("value", "low", "high"):
            if name in geometric:
                geometric[name] = round(float(np.exp(geometric[name])), DIGITS)
        geometric.pop("std", None)
        median = float(means.get(relation, medians.get(relation)))
        numbers["perplexity_median"] = {"value": round(median, DIGITS), "n": geometric["n"]}


def values(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """One row a variant, replicate and query: `perplexity` and the keys of accuracy's table."""
    rows = predictions[[*KEYS, "perplexity"]]
    return rows.merge(queries[QUERY_KEYS], on="query_id", validate="many_to_one")


SCORER = Perplexity()
