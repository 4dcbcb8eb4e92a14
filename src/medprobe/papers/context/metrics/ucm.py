"""Understand–Confuse–Misunderstand in total and in parts, rank changes, and acc@k with context.

Subsets: `target` and `negative` hold UCM_k by relation and as `macro`, UCM_m as `micro`; `alone`
and `full` hold acc@k for the prompt alone and behind the full real context. Parts of `target` and
`negative` such as `target/kind:real` hold UCM_k and UCM_m, `target/added:correct` the means of the
four rank changes; parts of `alone` and `full` hold acc@k by resource, by the number of correct
objects and by the frequency of the object. Where there are several draws of random contexts, `std`
is the deviation over them.

Source: the paper on context variance, Results; `rank_changes` defines the metrics.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.metrics import Metric, Scorer, Scores, Scoring, accuracy
from medprobe.metrics.splits import TIMES, bins, times_read
from medprobe.metrics.summary import DIGITS, read_queries, summarise, weighted
from medprobe.papers.context.rank_changes import (
    TRIPLE,
    by_triple,
    change_table,
    rank_changes,
    shares,
)

BINS: Final = {  # columns of the queries
    "objects": (0, 1, 3, 5, 10, 50),  # correct objects of a subject: large N-M relations
    "frequency": (0, 1, 3, 10, 30, 100, 1000),  # documents that mention the object
}
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

    def score(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> Scores:
        """Score UCM, its parts, the rank changes behind it, and acc@k without and with context."""
        queries = read_queries(benchmark, scoring.cluster)
        scores: Scores = {}
        for variant, part in predictions.groupby("variant", sort=True):
            acc = pd.concat([*_acc(part.assign(variant=""), queries).values()])
            subsets = summarise(acc, scoring).get("default", {})
            changes = rank_changes(queries, part)
            for centre, steps in changes.groupby("centre", sort=True):
                subsets[str(centre)] = _shares(steps, scoring)
                for name, part_steps in split_steps(steps, scoring.facts):
                    if table := _shares(part_steps, scoring):
                        means = {mean: table[mean] for mean in ("macro", "micro")}
                        subsets[f"{centre}/{name}"] = means
                for role, row in change_table(steps).iterrows():
                    means = {
                        name: {"value": round(row[name], DIGITS)} for name in row.dropna().index
                    }
                    subsets[f"{centre}/added:{role}"] = {"micro": means}
            scores[str(variant) or "default"] = subsets
        return scores

    def paired(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> pd.DataFrame:
        """Return the values that paired tests compare: one row per triple, in each resource.

        The subsets `target` and `negative` have the three shares around the target and the negative
        target, `alone` and `full` have acc@k without and with context.
        """
        queries = read_queries(benchmark, scoring.cluster)
        tables = []
        for variant, variant_predictions in predictions.groupby("variant", sort=True):
            changes = rank_changes(queries, variant_predictions)
            for centre, steps in changes.groupby("centre", sort=True):
                shares_by_triple = by_triple(steps)
                # A triple counts once per resource, so the resource becomes part of its name.
                shares_by_triple["fact_id"] += " in " + shares_by_triple.pop("resource")
                rows = shares_by_triple.assign(variant=variant, subset=centre)
                tables.append(_name_triples(rows))
            tables.append(weighted(_acc(variant_predictions, queries)["whole"]))
        return pd.concat(tables, ignore_index=True).assign(replicate="")


def _acc(predictions: pd.DataFrame, queries: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """acc@k of each triple without and with context: `whole`, and by part.

    Its contexts are averaged within each resource, then over resources. The parts are resources,
    and bins of the number of correct objects and of the object's frequency.
    """
    acc_queries = queries[queries["subset"].isin(["alone", "full"])]
    acc_predictions = predictions[predictions["query_id"].isin(acc_queries["query_id"])]
    values = accuracy.values(acc_predictions, acc_queries).merge(
        acc_queries[["query_id", "resource", "subject_id", "fact_id", *BINS]], on="query_id"
    )
    metrics = [f"acc_at_{k}" for k in accuracy.KS]
    keys = ["variant", "replicate", "subset", *TRIPLE, "cluster", *BINS]
    by_resource = values.groupby([*keys, "resource"])[metrics].mean()
    whole = by_resource.groupby(keys).mean().reset_index()
    by_resource = by_resource.reset_index()
    parts = {name: (whole, pd.Series(bins(whole[name], BINS[name]))) for name in BINS}
    parts["resource"] = by_resource, by_resource["resource"]
    tables = {"whole": whole} | {
        name: table.assign(subset=table["subset"] + f"/{name}:" + part)
        for name, (table, part) in parts.items()
    }
    return {
        name: _name_triples(table.drop(columns=[*BINS, "resource"], errors="ignore"))
        for name, table in tables.items()
    }


def _name_triples(triples: pd.DataFrame) -> pd.DataFrame:
    """The triples by one name each, `query_id`."""
    name = triples["subject_id"] + " " + triples["fact_id"]
    return triples.drop(columns=["subject_id", "fact_id"]).assign(query_id=name)


def split_steps(steps: pd.DataFrame, facts: Path | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Split steps by kind, resource, number of correct objects and frequency of the object.

    With `facts` also by how often the sample world's models were taught the fact.
    """
    splits = {"kind": steps["kind"], "resource": steps["resource"]} | {
        name: pd.Series(bins(steps[name], limits), index=steps.index)
        for name, limits in BINS.items()
    }
    if facts:
        times = times_read(facts, steps[["subject_id", "relation", "fact_id"]]).fillna(0)
        splits["read"] = pd.Series(bins(times, TIMES), index=steps.index)
    for split, values in splits.items():
        for value, part_steps in steps.groupby(values, sort=True):
            yield f"{split}:{value}", part_steps


def _shares(steps: pd.DataFrame, scoring: Scoring) -> dict[str, Any]:
    """The three shares, as the scores of a subset: by relation and mean, then by metric."""
    params = scoring.params
    rows = shares(steps, params.bootstrap, params.confidence, scoring.seed)
    rows["std"] = _deviations(steps, rows)
    scores: dict[str, Any] = {}
    for row in rows.to_dict("records"):
        relation, metric, n = row.pop("relation"), row.pop("metric"), row.pop("n")
        # What is left are the value, its interval and `std`, which is NaN for a single draw.
        numbers = {key: round(number, DIGITS) for key, number in row.items() if pd.notna(number)}
        scores.setdefault(relation, {})[metric] = numbers | {"n": n}
    return scores


def _deviations(steps: pd.DataFrame, rows: pd.DataFrame) -> pd.Series:
    """The sample standard deviation over draws of each share of `rows`; NaN for a single draw.

    Steps of contexts that are not drawn count in each.
    """
    draws = steps.groupby("kind")["draw"].transform("nunique")
    values = [
        shares(steps[(steps["draw"] == draw) | (draws == 1)].assign(weight=1.0), resamples=1)
        for draw in range(draws.max())
    ]
    if len(values) < 2:
        return pd.Series(float("nan"), rows.index)
    by_draw = pd.concat(
        [table.set_index(["relation", "metric"])["value"] for table in values], axis=1
    )
    return (
        by_draw.std(axis=1)
        .reindex(pd.MultiIndex.from_frame(rows[["relation", "metric"]]))
        .set_axis(rows.index)
    )


SCORER = Ucm()
