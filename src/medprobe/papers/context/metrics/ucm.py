"""Understand–Confuse–Misunderstand in total and in parts, rank changes, and acc@k with context.

Subsets: `target` and `negative` hold UCM_k by relation and as `macro`, UCM_m as `micro`; `alone`
and `full` hold acc@k for the prompt alone and behind the full real context. Their parts, such as
`target/kind:real`, hold the means; `target/added:correct` those of the four rank changes;
`target/draw:2` those of the second draw of random contexts, of which the first counts. All are
means within a resource first, then over resources.

Source: the paper on context variance, Results; `rank_changes` defines the metrics.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.core.tables import BenchmarkTables
from medprobe.metrics import Metric, Scorer, Scores, Scoring, accuracy
from medprobe.metrics.splits import TIMES, bins, times_read
from medprobe.metrics.summary import DIGITS, cluster_queries
from medprobe.papers.context.rank_changes import (
    TRIPLE,
    by_triple,
    change_table,
    over_resources,
    rank_changes,
    shares,
    weigh,
)
from medprobe.papers.context.texts import RANDOM

BINS: Final = {  # columns of the queries
    "objects": (0, 1, 3, 5, 10, 50),  # correct objects of a subject: large N-M relations
    "frequency": (0, 1, 3, 10, 30, 100, 1000),  # documents that mention the object
}
ACCURACIES: Final = [f"acc_at_{k}" for k in accuracy.KS]
_UCM: Final = "Understand-Confuse-Misunderstand: the context-variance paper's share of rank changes"
_RC: Final = "the context-variance paper's Table 1: ranks after a step less those before it"
_TURNED: Final = ("negative",)  # evidence for correct objects should make a wrong one fall
_ANY: Final = (float("-inf"), float("inf"))


class Ucm(Scorer):
    """UCM of predictions that hold a rank of every entity after every step of a context."""

    METRICS = (
        Metric("understand", "Understand", "higher", 0.0, 1.0, _UCM, True, turned_on=_TURNED),
        Metric("confuse", "Confuse", "lower", 0.0, 1.0, _UCM, True),
        Metric("misunderstand", "Misunderstand", "lower", 0.0, 1.0, _UCM, True, turned_on=_TURNED),
        Metric("rc_target", "rank change of the target", "neither", *_ANY, _RC),
        Metric("rc_added", "rank change of the added entity", "neither", *_ANY, _RC),
        Metric("rc_correct", "rank change of other correct objects", "neither", *_ANY, _RC),
        Metric("rc_incorrect", "rank change of incorrect entities", "neither", *_ANY, _RC),
    )

    def score(self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring) -> Scores:
        """Score UCM, its parts, the rank changes behind it, and acc@k without and with context."""
        queries = cluster_queries(tables, scoring.cluster)
        scores: Scores = {}
        for variant, part in predictions.groupby("variant", sort=True):
            subsets: dict[str, Any] = {}
            for subset, triples in _accuracy(part, queries):
                subsets |= _with_parts(subset, triples, partial(_accuracies, scoring), None)
            changes = rank_changes(queries, part)
            for centre, draws in changes.groupby("centre", sort=True):
                steps = draws[draws["draw"] == 0]
                for draw, drawn in draws[draws["kind"] == RANDOM].groupby("draw"):
                    if (draws["draw"] > 0).any() and (means := _shares(scoring, drawn)):
                        subsets[f"{centre}/draw:{draw + 1}"] = {"micro": means["micro"]}
                subsets |= _with_parts(str(centre), steps, partial(_shares, scoring), scoring.facts)
                for role, row in change_table(steps).iterrows():
                    means = {
                        name: {"value": round(row[name], DIGITS)} for name in row.dropna().index
                    }
                    subsets[f"{centre}/added:{role}"] = {"micro": means}
            scores[str(variant) or "default"] = subsets
        return scores

    def paired(
        self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
    ) -> pd.DataFrame:
        """Return the values that paired tests compare: one row per triple, in each resource.

        The subsets `target` and `negative` have the three shares around the target and the negative
        target, `alone` and `full` have acc@k without and with context.
        """
        queries = cluster_queries(tables, scoring.cluster)
        parts = []
        for variant, variant_predictions in predictions.groupby("variant", sort=True):
            changes = rank_changes(queries, variant_predictions)
            changes = changes[changes["draw"] == 0]
            by_subset = {
                **{str(centre): by_triple(steps) for centre, steps in changes.groupby("centre")},
                **{name: weigh(rows) for name, rows in _accuracy(variant_predictions, queries)},
            }
            parts += [rows.assign(variant=variant, subset=name) for name, rows in by_subset.items()]
        table = pd.concat(parts, ignore_index=True)
        # A triple counts once per resource, so the resource is part of its name.
        names = (
            table.pop("subject_id") + " " + table.pop("fact_id") + " in " + table.pop("resource")
        )
        return table.drop(columns=["size", *BINS]).assign(query_id=names, replicate="")


def _accuracy(
    predictions: pd.DataFrame, queries: pd.DataFrame
) -> Iterator[tuple[str, pd.DataFrame]]:
    """acc@k of each triple in each resource, the mean over its contexts: `alone` and `full`."""
    queries = queries[queries["subset"].isin(["alone", "full"])]
    asked = predictions[predictions["query_id"].isin(queries["query_id"])]
    values = accuracy.values(asked, queries).merge(
        queries[["query_id", "resource", "subject_id", "fact_id", *BINS]], on="query_id"
    )
    keys = [*TRIPLE, "resource", "cluster", *BINS]
    for subset, rows in values.groupby("subset", sort=True):
        yield str(subset), rows.groupby(keys)[ACCURACIES].mean().reset_index().assign(size=1.0)


def _with_parts(
    name: str,
    rows: pd.DataFrame,
    score: Callable[[pd.DataFrame], dict[str, Any]],
    facts: Path | None,
) -> dict[str, Any]:
    """The scores of a subset, and the means of its parts."""
    subsets = {name: score(rows)}
    for part, part_rows in split_rows(rows, facts):
        if table := score(part_rows):
            subsets[f"{name}/{part}"] = {mean: table[mean] for mean in ("macro", "micro")}
    return subsets


def split_rows(rows: pd.DataFrame, facts: Path | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Split steps or triples by kind, resource, number of correct objects, frequency of the object.

    With `facts` also by how often the sample world's models were taught the fact.
    """
    splits = {name: rows[name] for name in ("kind", "resource") if name in rows} | {
        name: pd.Series(bins(rows[name], limits), index=rows.index) for name, limits in BINS.items()
    }
    if facts:
        times = times_read(facts, rows[["subject_id", "relation", "fact_id"]]).fillna(0)
        splits["read"] = pd.Series(bins(times, TIMES), index=rows.index)
    for split, values in splits.items():
        for value, part in rows.groupby(values, sort=True):
            yield f"{split}:{value}", part


def _accuracies(scoring: Scoring, triples: pd.DataFrame) -> dict[str, Any]:
    """acc@k, as the scores of a subset."""
    params = scoring.params
    return _numbers(
        over_resources(triples, ACCURACIES, params.bootstrap, params.confidence, scoring.seed)
    )


def _shares(scoring: Scoring, steps: pd.DataFrame) -> dict[str, Any]:
    """The three shares, as the scores of a subset."""
    params = scoring.params
    return _numbers(shares(steps, params.bootstrap, params.confidence, scoring.seed))


def _numbers(rows: pd.DataFrame) -> dict[str, Any]:
    """Rows as the scores of a subset: by relation and mean, then by metric."""
    scores: dict[str, Any] = {}
    for row in rows.to_dict("records"):
        relation, metric, n = row.pop("relation"), row.pop("metric"), row.pop("n")
        # What is left are the value and its interval.
        numbers = {key: round(number, DIGITS) for key, number in row.items() if pd.notna(number)}
        scores.setdefault(relation, {})[metric] = numbers | {"n": n}
    return scores


SCORER = Ucm()
