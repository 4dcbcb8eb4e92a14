"""Understand, Confuse, Misunderstand: shares by model, and accuracy with and without context.

Also how ranks move as one context grows, segment by segment.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.tables import QUERY_COLUMNS, metric_of_predictions, read_table, whole_table
from medprobe.papers.context.rank_changes import SHARES
from medprobe.report.blocks import Drawing
from medprobe.report.figures import plots

RANK_COLUMNS: Final = ["model", "step", "added", "entity", "role", "rank"]
CONTEXT: Final = [*("context_id", "kind", "centre", "step"),
                  *("added", "added_id", "added_role", "target")]  # fmt: skip
MOST_ENTITIES: Final = 7  # entities drawn, the target included


def rank_table(systems: Mapping[str, Path], folder: Path, names: bool) -> pd.DataFrame:
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
        return pd.DataFrame(columns=RANK_COLUMNS)
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
    return ranks_of_all.sort_values(["model", "entity", "step"], ignore_index=True)[RANK_COLUMNS]


def _chosen(queries: pd.DataFrame) -> pd.DataFrame:
    """Return the steps of the context to draw, in their order."""
    real = queries[(queries["kind"] == "real") & (queries["centre"] == "target")]
    correct = real["added_role"].eq("correct").groupby(real["context_id"]).sum()
    order = pd.DataFrame({"correct": correct, "steps": real.groupby("context_id")["step"].max()})
    first = order.sort_values(["correct", "steps"], ascending=False, kind="stable").index[0]
    return real[real["context_id"] == first].sort_values("step")


def draw_ranks(ranks: pd.DataFrame, benchmark: str) -> list[Drawing]:
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


DECODING: Final = "decoding"  # the variant that ranks by decoded texts
COPY: Final = "copy"  # the variant that ranks what the context holds first, and asks no model
CONTROL: Final = "copy control"
ACC: Final = "acc@5 with context"
COLUMNS: Final = {  # subset, relation, metric: its label
    ("alone", "macro", "acc_at_1"): "acc@1 alone",
    ("alone", "macro", "acc_at_5"): "acc@5 alone",
    ("full", "macro", "acc_at_1"): "acc@1 with context",
    ("full", "macro", "acc_at_5"): ACC,
    ("target", "macro", "understand"): "Understand",
    ("target", "macro", "confuse"): "Confuse",
    ("target", "macro", "misunderstand"): "Misunderstand",
}
DRAWN: Final = ["acc@5 alone", ACC, "Understand", "Confuse", "Misunderstand"]


def select_variants(rows: pd.DataFrame) -> pd.DataFrame:
    """Select a benchmark's rows of methods that are scored by UCM.

    These are their main variants and those that rank by decoded texts, by model, and the control
    once, as the model `CONTROL`. The column `asked` is the model itself.
    """
    method = rows["method"].str.split(":").str[0]
    variant = rows["method"].str.split(":").str[1].fillna("")
    scored = set(method[rows["metric"].isin(SHARES)])
    chosen = method.isin(scored) & variant.isin(["", DECODING, COPY])
    names = rows["model"] + (" · " + method if len(scored) > 1 else "")
    names = names.mask(variant == DECODING, names + f" · {DECODING}")
    named = rows.assign(model=names.mask(variant == COPY, CONTROL), asked=rows["model"])[chosen]
    return named.drop_duplicates(["subset", "relation", "model", "metric"])


def micro(rows: pd.DataFrame) -> pd.DataFrame:
    """Select UCM_m around target and negative target from the rows of `select_variants`."""
    of_all = (rows["relation"] == "micro") & rows["metric"].isin(SHARES)
    return rows[of_all & rows["subset"].isin(["target", "negative"])]


def label_columns(rows: pd.DataFrame) -> pd.DataFrame:
    """Select acc@k without and with context and UCM_k from the rows of `select_variants`.

    They are in this order, the highest value first, each with its label in the column `what`.
    """
    keys = zip(rows["subset"], rows["relation"], rows["metric"], strict=True)
    named = rows.assign(what=[COLUMNS.get(key, "") for key in keys])
    place = {name: number for number, name in enumerate(COLUMNS.values())}
    named = named[named["what"] != ""].sort_values("value", ascending=False, kind="stable")
    return named.sort_values("what", key=lambda what: what.map(place), kind="stable")


def draw_shares(rows: pd.DataFrame) -> list[Drawing]:
    """Draw UCM_m as a bar for each model and centre (the paper's Table 3)."""
    if (chosen := micro(rows)).empty:
        return []
    wide = chosen.pivot(index=["model", "subset"], columns="metric", values="value")[SHARES]
    wide = wide.sort_index(level=["model", "subset"], ascending=[True, False])
    wide = wide.loc[[*dict.fromkeys(chosen["model"])]]
    bars = wide.set_axis([f"{model} · {subset}" for model, subset in wide.index])
    plot = plots.stacked(bars, "share of steps, per cent")
    caption = "Understand, confuse and misunderstand, by model and centre."
    return [Drawing(f"{chosen['benchmark'].iloc[0]}-ucm", plot, caption)]


def draw_accuracy(rows: pd.DataFrame, models: Sequence[str] = ()) -> list[Drawing]:
    """Draw acc@5 without and with context, and UCM_k (the paper's Table 2).

    `models` are all models.
    """
    chosen = label_columns(rows)
    chosen = chosen[chosen["what"].isin(DRAWN)]
    if chosen.empty:
        return []
    plot = plots.intervals(chosen, "what", "model", "per cent", True, order=models)
    caption = "acc@5 without and with context, and UCM_k, with intervals."
    return [Drawing(f"{chosen['benchmark'].iloc[0]}-accuracy", plot, caption)]
