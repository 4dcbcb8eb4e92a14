"""How ranks move in one context: the trajectory that the page draws, from prediction tables."""

from pathlib import Path

import pandas as pd

from medprobe.tables import QUERY_COLUMNS, read_table

BENCHMARK = "context"
METHOD = "rank_change"
COLUMNS = ["variant", "query_id", "prediction", "prediction_id", "rank", "hit"]
SHOWN = 7  # entities drawn, the target included


def trajectory(predictions: Path, benchmarks: Path, names: bool = False) -> pd.DataFrame:
    """The ranks of a context's entities from step to step, for every model.

    Columns `model, step, added, entity, role, rank`; no rows where nothing was predicted. Entities
    go by their ids or, where `names` says so, by their preferred names, which may be licensed; no
    text of a document is in it. The context is the real one around
    a target with the most correct objects, then the most steps, then the first by its id.
    """
    columns = ["model", "step", "added", "entity", "role", "rank"]
    files = sorted(predictions.glob(f"*/{METHOD}/{BENCHMARK}.parquet"))
    if not files:
        return pd.DataFrame(columns=columns)
    queries = read_table(benchmarks / BENCHMARK / "queries.parquet", QUERY_COLUMNS)
    steps = _chosen(queries)
    target = steps["target"].iloc[0]
    added = list(dict.fromkeys([target, *steps["added"].iloc[1:]]))[:SHOWN]
    parts = []
    for file in files:
        table = read_table(file, COLUMNS)
        own = table[(table["variant"] == "") & table["prediction"].isin(added)]
        part = own.merge(steps[["query_id", "step", "added", "added_id"]], on="query_id")
        role = part["hit"].map({True: "correct", False: "incorrect"})
        role = role.mask(part["prediction"] == target, "target")
        parts.append(part.assign(model=file.parent.parent.name, role=role))
    found = pd.concat(parts).rename(columns={"prediction": "entity"})
    if not names:
        found = found.assign(entity=found["prediction_id"], added=found["added_id"])
    return found.sort_values(["model", "entity", "step"], ignore_index=True)[columns]


def _chosen(queries: pd.DataFrame) -> pd.DataFrame:
    """The steps of the context to draw, in their order."""
    real = queries[(queries["kind"] == "real") & (queries["centre"] == "target")]
    correct = real["added_role"].eq("correct").groupby(real["context_id"]).sum()
    order = pd.DataFrame({"correct": correct, "steps": real.groupby("context_id")["step"].max()})
    first = order.sort_values(["correct", "steps"], ascending=False, kind="stable").index[0]
    return real[real["context_id"] == first].sort_values("step")
