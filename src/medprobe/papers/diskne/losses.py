"""How classifiers learn: losses by epoch, from the notes of prediction tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.report.figures import plots
from medprobe.report.figures.rows import Drawing

KINDS: Final = ["train", "validation"]
KEYS: Final = ["model", "variant", "loss", "epoch"]


def read_epochs(path: Path) -> pd.DataFrame:
    """Read the note `curves` of a prediction table; no rows if nothing was fine-tuned.

    It has a row for each variant, disease, seed and epoch, with a column for each of KINDS.
    """
    note = path.with_name(f"{path.stem}-curves.csv")
    epochs = pd.read_csv(note, keep_default_na=False) if note.is_file() else pd.DataFrame()
    return epochs if {"variant", "epoch", *KINDS} <= set(epochs) else pd.DataFrame()


def table(systems: Mapping[str, Path]) -> pd.DataFrame:
    """Read losses by epoch.

    The columns are `model, variant, loss` (train or validation), `epoch, value, low, high, n`. If
    nothing was fine-tuned, there are no rows.

    `systems` are prediction tables by model; one of fine-tuning has a note `curves`.
    `value` is the median over diseases and seeds, `low` and `high` the quartiles, `n` how many of
    them trained that long.
    """
    parts = [pd.DataFrame(columns=[*KEYS, "value", "low", "high", "n"])]
    for model, path in systems.items():
        if (epochs := read_epochs(path)).empty:
            continue
        rows = epochs.melt(["variant", "epoch"], KINDS, "loss").assign(model=model)
        by = rows.groupby(KEYS, sort=True)["value"]
        numbers = {"value": by.median(), "low": by.quantile(0.25), "high": by.quantile(0.75)}
        parts.append(pd.DataFrame(numbers | {"n": by.size()}).reset_index())
    return pd.concat(parts[1:], ignore_index=True) if len(parts) > 1 else parts[0]


def draw(losses: pd.DataFrame, benchmark: str) -> list[Drawing]:
    """Draw for each model one line per variant and loss."""
    drawings = []
    for model, rows in losses.groupby("model", sort=True):
        named = rows.assign(name=rows["variant"].replace("", "default") + ", " + rows["loss"])
        plot = plots.curves(named, "epoch", "name", ("epoch", "cross-entropy"), False)
        caption = f"{model}: loss by epoch, median and quartiles over diseases and seeds."
        drawings.append(Drawing(f"{benchmark}-curves-{model}", plot, caption))
    return drawings
