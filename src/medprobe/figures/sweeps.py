"""By rewiring step, layer, mask ratio: whatever a method's numbered variants sweep over."""

from collections.abc import Sequence
from typing import Final

import pandas as pd

from medprobe.core.tables import Metadata
from medprobe.figures import plots
from medprobe.figures.rows import Drawing
from medprobe.metrics import catalog
from medprobe.metrics.results import primary_metric, select, subsets, sweep
from medprobe.metrics.summary import MEANS

HIGHEST: Final = 9  # relations that are drawn, as in the paper
STEP: Final = "step"  # the sweep over steps of rewiring
START: Final = "original"  # the variant of a model that is not rewired: step 0


def draw(rows: pd.DataFrame, metadata: Metadata, models: Sequence[str] = ()) -> list[Drawing]:
    """Draw for each subset and sweep one line per model over the settings.

    `models` are all models.
    """
    drawings = []
    for subset in subsets(rows, metadata):
        chosen = select(
            rows, subset=subset, relation="macro", metric=primary_metric(rows, metadata)
        )
        for method, name in _sweeps(chosen):
            drawings += _sweep(chosen, method, name, models)
    return drawings


def _sweeps(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Methods, and what variants of theirs sweep over."""
    swept = ((method.partition(":")[0], sweep(method)) for method in rows["method"].unique())
    return sorted({(method, at[0]) for method, at in swept if at})


def _sweep(rows: pd.DataFrame, method: str, name: str, models: Sequence[str]) -> list[Drawing]:
    """Lines over the settings `name-<number>` of a method."""
    points = _points(rows, method, name)
    if points["at"].nunique() < 2:
        return []
    first = points.iloc[0]
    metric = catalog()[first["metric"]]
    words = name.replace("-", " ").replace("_", " ")
    axes = (words, plots.label(metric.name))
    plot = plots.curves(points, "at", "model", axes, metric.share, order=models)
    caption = f"{metric.title} by {words} of {method} ({first['benchmark']}, {first['subset']})"
    is_start = name == STEP and 0.0 in set(points["at"])
    note = "; 0 is the model before rewiring." if is_start else "."
    title = f"{first['benchmark']}-{first['subset']}-{method}-{name}"
    return [Drawing(title, plot, caption + note)]


def _points(rows: pd.DataFrame, method: str, name: str) -> pd.DataFrame:
    """Select the rows of a sweep, with the place `at` of each."""
    of_method = [variant for variant in rows["method"].unique() if variant.startswith(f"{method}:")]
    places = {variant: at[1] for variant in of_method if (at := sweep(variant)) and at[0] == name}
    if name == STEP:
        places[f"{method}:{START}"] = 0.0
    return rows.assign(at=rows["method"].map(places)).dropna(subset="at")


def by_relation(rows: pd.DataFrame, metadata: Metadata) -> list[Drawing]:
    """Draw for each sweep and model, on the main subset, one line per relation over the settings.

    These are the relations with the highest values, and the micro mean. Bands are the deviation
    over replicates if there are several (Meng et al., ACL 2022, Figure 4), otherwise intervals.
    """
    if metadata.many_relations or rows.empty:
        return []
    subset = subsets(rows, metadata)[0]
    chosen = select(rows, subset=subset, metric=primary_metric(rows, metadata))
    chosen = chosen[~chosen["relation"].isin({*MEANS} - {"micro"})]
    drawings = []
    for model, of_model in chosen.groupby("model", sort=True):
        for method, name in _sweeps(of_model):
            points = _points(of_model, method, name)
            singles = points[points["relation"] != "micro"]
            best = singles.groupby("relation")["value"].max().nlargest(HIGHEST).index
            if points["at"].nunique() < 2 or len(best) < 2:
                continue
            lines = points[points["relation"].isin({*best, "micro"})]
            lines = lines.sort_values("relation", key=lambda names: names == "micro", kind="stable")
            drawings.append(_by_relation(lines, str(model), method, name))
    return drawings


def _by_relation(points: pd.DataFrame, model: str, method: str, name: str) -> Drawing:
    first = points.iloc[0]
    metric = catalog()[first["metric"]]
    words = name.replace("-", " ").replace("_", " ")
    deviation = points["std"].astype(float)
    points = points.assign(
        low=(points["value"] - deviation).fillna(points["low"]),
        high=(points["value"] + deviation).fillna(points["high"]),
        relation=points["relation"].str.replace("_", " "),
    )
    plot = plots.curves(points, "at", "relation", (words, plots.label(metric.name)), metric.share)
    bands = "deviation over replicates" if deviation.notna().any() else "intervals"
    where_ = f"{first['benchmark']}, {first['subset']}"
    caption = f"{metric.title} of {model} by {words} of {method}, by relation ({where_}); {bands}."
    return Drawing(f"{first['benchmark']}-{model}-{method}-{name}-relations", plot, caption)
