"""Scores of the context benchmark: UCM around target and negative target, whole and in parts, the
rank changes behind it, and acc@k without and with context.

Subsets: `target` and `negative` hold UCM_k by relation and as `macro`, UCM_m as `micro`; `alone`
and `full` hold acc@k for the prompt alone and behind the full real context; parts such as
`target/kind:real` hold UCM_m, `target/added:correct` the means of the four rank changes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from medprobe import places
from medprobe.metrics import accuracy, ucm
from medprobe.metrics.splits import TIMES, bins
from medprobe.metrics.summary import DIGITS, Scores, summarise
from medprobe.params import Params, ScoreParams
from medprobe.tables import QUERY_COLUMNS, read_table

OBJECTS = (0, 1, 3, 5, 10, 50)  # correct objects of a subject: large N-M relations
FREQUENCIES = (0, 1, 3, 10, 30, 100, 1000)  # documents that mention the object: rare objects


def scores(
    predictions: pd.DataFrame,
    folder: Path,
    params: Params,
    facts: Path = places.DATA / "sample" / "facts.csv",
) -> Scores:
    """Scores of the predictions that rank change made of one model, by variant."""
    queries = read_table(folder / "queries.parquet", QUERY_COLUMNS)
    result: Scores = {}
    for variant, part in predictions.groupby("variant", sort=True):
        changes = ucm.rank_changes(queries, part)
        subsets = acc(part.assign(variant=variant), queries, params)
        for centre, steps in changes.groupby("centre", sort=True):
            subsets[str(centre)] = _shares(steps, params.score, params.seed)
            for name, some in parts(steps, facts):
                found = _shares(some, params.score, params.seed)
                if found:
                    subsets[f"{centre}/{name}"] = {"micro": found["micro"]}
            for role, row in ucm.change_table(steps).iterrows():
                means = {name: {"value": round(row[name], DIGITS)} for name in row.dropna().index}
                subsets[f"{centre}/added:{role}"] = {"micro": means}
        result[str(variant) or "default"] = subsets
    return result


def paired(predictions: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """What paired tests compare: one row a variant, subset and triple, with its shares around
    target and negative target, or its acc@k."""
    queries = read_table(folder / "queries.parquet", QUERY_COLUMNS)
    found = []
    for variant, part in predictions.groupby("variant", sort=True):
        changes = ucm.rank_changes(queries, part)
        shares = [
            ucm.by_triple(steps).assign(subset=centre)
            for centre, steps in changes.groupby("centre", sort=True)
        ]
        found += [table.assign(variant=variant) for table in (*shares, _acc(part, queries))]
    table = pd.concat(found, ignore_index=True)
    return table.assign(replicate="", query_id=table["subject_id"] + " " + table["fact_id"])


def acc(predictions: pd.DataFrame, queries: pd.DataFrame, params: Params) -> dict[str, Any]:
    """acc@k of the subsets `alone` and `full`; intervals are over triples."""
    triples = _acc(predictions, queries)
    triples["query_id"] = triples["subject_id"] + " " + triples["fact_id"]
    tidy = triples.drop(columns=["subject_id", "fact_id"])
    found = summarise(tidy.assign(variant=""), params.score, params.seed)
    return found.get("default", {})


def _acc(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """acc@k of each triple without and with context: its contexts are averaged within each
    resource, then over resources."""
    asked = queries[queries["subset"].isin(["alone", "full"])]
    made = predictions[predictions["query_id"].isin(asked["query_id"])]
    values = accuracy.values(made, asked).merge(
        asked[["query_id", "resource", "subject_id", "fact_id"]], on="query_id"
    )
    metrics = [f"acc_at_{k}" for k in accuracy.KS]
    keys = ["variant", "replicate", "subset", *ucm.TRIPLE]
    triples = values.groupby([*keys, "resource"])[metrics].mean().groupby(keys).mean()
    return triples.reset_index()


def parts(steps: pd.DataFrame, facts: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Steps by kind, by resource, by the number of correct objects, by the object's frequency and,
    where `facts` is a file, by how often the sample world's taught models read the fact."""
    splits = {
        "kind": steps["kind"],
        "resource": steps["resource"],
        "objects": pd.Series(bins(steps["objects"], OBJECTS), index=steps.index),
        "frequency": pd.Series(bins(steps["frequency"], FREQUENCIES), index=steps.index),
    }
    if facts.is_file():
        truth = pd.read_csv(facts).set_index(["subject_cui", "relation", "object_cui"])["times"]
        keys = zip(steps["subject_id"], steps["relation"], steps["fact_id"], strict=True)
        read = [truth.get(key, 0) for key in keys]
        splits["read"] = pd.Series(bins(read, TIMES), index=steps.index)
    for split, values in splits.items():
        for value, some in steps.groupby(values, sort=True):
            yield f"{split}:{value}", some


def _shares(steps: pd.DataFrame, params: ScoreParams, seed: int) -> dict[str, Any]:
    """relation, macro or micro → metric → its numbers."""
    found: dict[str, Any] = {}
    for row in ucm.shares(steps, params.bootstrap, params.confidence, seed).itertuples():
        numbers = {key: round(getattr(row, key), DIGITS) for key in ("value", "low", "high")}
        found.setdefault(row.relation, {})[row.metric] = numbers | {"n": row.n}
    return found
