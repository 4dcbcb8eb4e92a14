"""By relation: which kind of fact is known to which model."""

from collections.abc import Sequence

import pandas as pd

from medprobe.core.tables import Metadata
from medprobe.metrics import catalog
from medprobe.metrics.results import main_variants, primary_metric, select, select_systems, subsets
from medprobe.metrics.summary import MEANS
from medprobe.report.figures import plots
from medprobe.report.figures.rows import Drawing, by_value, comparable, without_sweeps


def draw(rows: pd.DataFrame, metadata: Metadata, models: Sequence[str] = ()) -> list[Drawing]:
    """Draw relations by models, under the best method that ranks the benchmark's own names.

    It is in the main metric, on the main subset. Variants that do not represent their method are
    left out, as in the tables of the best models. `models` are all models. Nothing is drawn if
    relations are too many to be read at a glance, or fewer than two.
    """
    subset, name = subsets(rows, metadata)[0], primary_metric(rows, metadata)
    judged = without_sweeps(select(rows, subset=subset, metric=name))
    relations = judged[~judged["relation"].isin(MEANS)]
    macro = comparable(select_systems(select(judged, relation="macro"), main_variants(rows)))
    if metadata.many_relations or relations["relation"].nunique() < 2 or macro.empty:
        return []
    metric = catalog()[name]
    lower = metric.better == "lower"
    best = macro.sort_values("value", ascending=lower, kind="stable").iloc[0]
    benchmark, method = best["benchmark"], best["method"]
    points = select(relations, method=method).sort_values(["relation", "model"])
    points = by_value(points, "relation", lower=lower)
    points = points.assign(relation=points["relation"].str.replace("_", " "))
    label = plots.label(name)
    plot = plots.intervals(points, "relation", "model", label, metric.share, order=models)
    caption = f"{metric.title} by relation under {method} ({benchmark}, {subset})."
    return [Drawing(f"{benchmark}-relations", plot, caption)]
