"""By rewiring step, layer, mask ratio: whatever a method's numbered variants sweep over."""

from typing import Final

import pandas as pd

from medprobe.core.tables import Metadata
from medprobe.figures import plots
from medprobe.figures.rows import Drawing
from medprobe.metrics import catalog
from medprobe.metrics.results import primary, subsets, sweep, where

START: Final = "original"  # the variant of a model that is not rewired: step 0


def drawn(rows: pd.DataFrame, metadata: Metadata) -> list[Drawing]:
    """For each subset, each sweep: lines over its settings, a model each."""
    drawings = []
    for subset in subsets(rows, metadata):
        chosen = where(rows, subset=subset, relation="macro", metric=primary(rows, metadata))
        kinds = {
            (method.partition(":")[0], at[0])
            for method in chosen["method"]
            if (at := sweep(method))
        }
        for method, name in sorted(kinds):
            drawings += _sweep(chosen, method, name)
    return drawings


def _sweep(rows: pd.DataFrame, method: str, name: str) -> list[Drawing]:
    """Lines over the settings `name-<number>` of a method."""
    of_method = [one for one in rows["method"].unique() if one.startswith(f"{method}:")]
    places = {one: at[1] for one in of_method if (at := sweep(one)) and at[0] == name}
    if name == "step":
        places[f"{method}:{START}"] = 0.0
    points = rows.assign(at=rows["method"].map(places)).dropna(subset="at")
    if points["at"].nunique() < 2:
        return []
    one = points.iloc[0]
    metric = catalog()[one["metric"]]
    words = name.replace("-", " ").replace("_", " ")
    axes = (words, plots.label(metric.name))
    svg = plots.curves(points, "at", "model", axes, metric.share)
    caption = f"{metric.title} by {words} of {method} ({one['benchmark']}, {one['subset']})"
    note = "; 0 is the model before rewiring." if 0.0 in set(points["at"]) else "."
    title = f"{one['benchmark']}-{one['subset']}-{method}-{name}"
    return [Drawing(title, svg, caption + note)]
