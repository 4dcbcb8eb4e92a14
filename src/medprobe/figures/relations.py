"""By relation: which kind of fact is known to which model."""

from collections.abc import Sequence

import pandas as pd

from medprobe.core.tables import Metadata
from medprobe.figures import plots
from medprobe.figures.rows import Drawing, by_value, comparable, without_sweeps
from medprobe.metrics import catalog
from medprobe.metrics.results import (
    main_variants,
    primary_metric,
    select,
    select_systems,
    subsets,
)
from medprobe.metrics.summary import MEANS


def single(rows: pd.DataFrame, metadata: Metadata) -> pd.DataFrame:
    """Select rows of single relations in the main metric, on the main subset.

    No rows are selected if relations are too many to be read at a glance, or fewer than two.
    """
    rows = _judged(rows, metadata)
    relations = rows[~rows["relation"].isin(MEANS)]
    few = metadata.many_relations or relations["relation"].nunique() < 2
    return relations.head(0) if few else relations


def draw(rows: pd.DataFrame, metadata: Metadata, models: Sequence[str] = ()) -> list[Drawing]:
    """Draw relations by models, under the best method that ranks the benchmark's own names.

    Variants that do not represent their method are left out, as in the tables of the best models.
    `models` are all models.
    """
    macro = select(_judged(rows, metadata), relation="macro")
    macro = comparable(select_systems(macro, main_variants(rows)))
    relations = single(rows, metadata)
    if relations.empty or macro.empty:
        return []
    metric = catalog()[macro["metric"].iloc[0]]
    lower = metric.better == "lower"
    best = macro.sort_values("value", ascending=lower, kind="stable").iloc[0]
    benchmark, subset, method = best["benchmark"], best["subset"], best["method"]
    points = select(relations, method=method).sort_values(["relation", "model"])
    points = by_value(points, "relation", lower=lower)
    points = points.assign(relation=points["relation"].str.replace("_", " "))
    label = plots.label(metric.name)
    plot = plots.intervals(points, "relation", "model", label, metric.share, order=models)
    caption = f"{metric.title} by relation under {method} ({benchmark}, {subset})."
    return [Drawing(f"{benchmark}-relations", plot, caption)]


def _judged(rows: pd.DataFrame, metadata: Metadata) -> pd.DataFrame:
    subset = subsets(rows, metadata)[0]
    return without_sweeps(select(rows, subset=subset, metric=primary_metric(rows, metadata)))
