"""Reliability diagrams: how sure a model is that statements are true, and how many are.

Source: Guo et al. 2017, section 2.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.tables import metric_of_predictions, read_predictions
from medprobe.extensions.chat.metrics.judgment import reliability
from medprobe.report.figures import plots
from medprobe.report.figures.rows import Drawing

COLUMNS: Final = ["model", "variant", "said", "true", "n"]


def table(systems: Mapping[str, Path]) -> pd.DataFrame:
    """Bins of P(true): columns COLUMNS; no rows where nothing was judged.

    `systems` are prediction tables by model; those of other metrics are passed over.
    """
    judged = {name: p for name, p in systems.items() if metric_of_predictions(p) == "judgment"}
    parts = [
        reliability(rows).assign(model=name)
        for name, path in judged.items()
        for rows in read_predictions(path)
    ]
    return pd.concat(parts, ignore_index=True)[COLUMNS] if parts else pd.DataFrame(columns=COLUMNS)


def draw(bins: pd.DataFrame, benchmark: str) -> list[Drawing]:
    """Draw for each model one line per variant, and the diagonal of a perfectly calibrated one."""
    drawings = []
    for model, rows in bins.groupby("model", sort=True):
        even = pd.DataFrame({"variant": "as it says", "said": [0.0, 1.0], "true": [0.0, 1.0]})
        lines = pd.concat([rows, even], ignore_index=True)
        lines = lines.assign(**{column: lines["true"] for column in ("value", "low", "high")})
        axes = ("P(true)", "true statements, per cent")
        plot = plots.curves(lines, "said", "variant", axes, True)
        caption = f"{model}: how many statements are true of those that it is so sure of."
        drawings.append(Drawing(f"{benchmark}-reliability-{model}", plot, caption))
    return drawings
