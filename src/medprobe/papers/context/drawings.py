"""Understand, Confuse, Misunderstand: shares by model, and accuracy with and without context."""

from collections.abc import Sequence
from typing import Final

import pandas as pd

from medprobe.papers.context.rank_changes import SHARES
from medprobe.report.figures import plots
from medprobe.report.figures.rows import Drawing

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
