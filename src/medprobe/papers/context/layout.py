"""Query pages of context variance: the rank of each context's target after each step."""

from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.tables import QUERY_COLUMNS, read_table
from medprobe.report.layouts import Layout

STEPS: Final = ["context_id", "centre", "kind", "resource", "target", "target_id", "step"]


def _ranks(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """The ranks of each context's target; a hit is a better rank than without a context."""
    steps = queries[["query_id", "steps", "target"]].explode("steps")
    steps["place"] = steps.groupby("query_id").cumcount() + 1
    keys = ["query_id", "prediction"]
    ranks = predictions[["replicate", *keys, "rank"]]
    rows = steps.merge(ranks, left_on=["steps", "target"], right_on=keys, suffixes=("", "_"))
    rows = rows.sort_values(["query_id", "replicate", "place"])
    without_context = rows.groupby(["query_id", "replicate"])["rank"].transform("first")
    values = rows["rank"].astype(str)
    rows = rows.assign(prediction=values, prediction_id=values, hit=rows["rank"] < without_context)
    return rows.assign(rank=rows["place"])


def _contexts(folder: Path) -> pd.DataFrame:
    """One row per context, with its queries in `steps` and what each step adds in `heads`."""
    steps = read_table(folder / "queries.parquet", [*QUERY_COLUMNS, *STEPS, "added_role"])
    steps = steps.sort_values(["context_id", "step"], kind="stable")
    steps = steps.drop_duplicates(["context_id", "step"])
    contexts = steps.groupby("context_id", sort=True)
    starts = contexts.first().drop(columns="query_id").reset_index(names="query_id")
    heads = steps["added_role"].map("+ {}".format).where(steps["step"] > 0, "alone")
    return starts.assign(
        subset=starts["centre"] + ", " + starts["kind"] + ", " + starts["resource"],
        answers=[[name] for name in starts["target"]],
        answer_ids=[[name] for name in starts["target_id"]],
        steps=[*contexts["query_id"].agg(list)],
        heads=[*heads.groupby(steps["context_id"]).agg(list)],
    )


LAYOUT: Final = Layout(
    _contexts,
    {"ucm": _ranks},
    (),
    verdict="higher",
    answers="Target",
    note="The target's rank without a context, then after each step that adds to the context. "
    "✓ marks a better rank than without a context. The last step counts.",
)
