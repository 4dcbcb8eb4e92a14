"""How ranks move as one context grows, segment by segment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.tables import QUERY_COLUMNS, metric_of_predictions, read_table, whole_table
from medprobe.report.figures import plots
from medprobe.report.figures.rows import Drawing

COLUMNS: Final = ["model", "step", "added", "entity", "role", "rank"]
CONTEXT: Final = [*("context_id", "kind", "centre", "step"),
                  *("added", "added_id", "added_role", "target")]  # fmt: skip
MOST_ENTITIES: Final = 7  # entities drawn, the target included


def table(systems: Mapping[str, Path], folder: Path, names: bool) -> pd.DataFrame:
    """Read the ranks of a context's entities from step to step, for every model.

    `systems` are prediction tables of the benchmark in `folder`, by model; those of other metrics
    than UCM are passed over. Columns `model, step, added, entity, role, rank`; no rows where
    nothing was predicted. Entities go by their identifiers or, where `names` says so, by their
    preferred names, which may be licensed; no text of a document is in it. The context is the real
    one around a target with the most correct objects, then the most steps, then the first by its
    identifier.
    """
    used = {model: path for model, path in systems.items() if metric_of_predictions(path) == "ucm"}
    if not used:
        return pd.DataFrame(columns=COLUMNS)
    steps = _chosen(read_table(folder / "queries.parquet", [*QUERY_COLUMNS, *CONTEXT]))
    target = steps["target"].iloc[0]
    added = list(dict.fromkeys([target, *steps["added"].iloc[1:]]))[:MOST_ENTITIES]
    parts = []
    for model, path in used.items():
        filters = [("variant", "==", ""), ("query_id", "in", [*steps["query_id"]])]
        with whole_table(path):
            ranks = pd.read_parquet(path, filters=[*filters, ("prediction", "in", added)])
        part = ranks.merge(steps[["query_id", "step", "added", "added_id"]], on="query_id")
        role = part["hit"].map({True: "correct", False: "incorrect"})
        role = role.mask(part["prediction"] == target, "target")
        parts.append(part.assign(model=model, role=role))
    ranks_of_all = pd.concat(parts).rename(columns={"prediction": "entity"})
    if not names:
        ranks_of_all = ranks_of_all.assign(
            entity=ranks_of_all["prediction_id"], added=ranks_of_all["added_id"]
        )
    return ranks_of_all.sort_values(["model", "entity", "step"], ignore_index=True)[COLUMNS]


def _chosen(queries: pd.DataFrame) -> pd.DataFrame:
    """Return the steps of the context to draw, in their order."""
    real = queries[(queries["kind"] == "real") & (queries["centre"] == "target")]
    correct = real["added_role"].eq("correct").groupby(real["context_id"]).sum()
    order = pd.DataFrame({"correct": correct, "steps": real.groupby("context_id")["step"].max()})
    first = order.sort_values(["correct", "steps"], ascending=False, kind="stable").index[0]
    return real[real["context_id"] == first].sort_values("step")


def draw(ranks: pd.DataFrame, benchmark: str) -> list[Drawing]:
    """Draw for each model the rank of each entity by step."""
    drawings = []
    for model, part in ranks.groupby("model", sort=True):
        lines = part.assign(
            name=part["entity"] + " (" + part["role"] + ")",
            **{column: part["rank"] for column in ("value", "low", "high")},
        )
        axes = ("segments in the context", "rank, 1 is the best")
        plot = plots.curves(lines, "step", "name", axes, False)
        caption = f"{model}: ranks as one context grows, segment by segment."
        drawings.append(Drawing(f"{benchmark}-trajectory-{model}", plot, caption))
    return drawings
