"""By answer length in characters."""

from collections.abc import Sequence
from typing import Final

import pandas as pd

from medprobe.metrics.splits import first_number
from medprobe.report.figures import plots
from medprobe.report.figures.rows import Drawing, comparable, without_sweeps
from medprobe.report.numbers import metric
from medprobe.report.results import Results

BY: Final = "answer length"  # what these drawings, and a table of `breakdowns`, are by
FEWEST: Final = 5  # queries: a bin with fewer says nothing and is not drawn


def drawn(results: Results, benchmark: str) -> list[Drawing]:
    """For each method a drawing of its models over the bins of answer length.

    And for each model one of its methods, side by side as in Figure 3 of Meng et al., ACL 2022.
    """
    name, subset = results.primary(benchmark), results.main_subset(benchmark)
    rows = without_sweeps(results.rows(benchmark, relation="micro", metric=name))
    inside = rows["subset"].str.startswith(f"{subset}/answer-length:")
    rows = rows[inside & (rows["n"] >= FEWEST)]
    rows = rows.assign(length=rows["subset"].str.split(":").str[-1])
    rows = rows.sort_values("length", key=lambda names: names.map(first_number), kind="stable")
    drawings = []
    for method, group in rows.groupby("method", sort=True):
        drawings += _draw(group, str(method), "model", results.models)
    methods = comparable(rows)
    for model, group in methods.groupby("model", sort=True):
        if group["method"].nunique() > 1:
            drawings += _draw(group, str(model), "method", sorted(methods["method"].unique()))
    return drawings


def _draw(rows: pd.DataFrame, system: str, series: str, order: Sequence[str]) -> list[Drawing]:
    """Draw a method's models, or a model's methods; nothing of one bin."""
    if rows["length"].nunique() < 2:
        return []
    benchmark, definition = rows["benchmark"].iloc[0], metric(rows["metric"].iloc[0])
    axes = ("characters of the answer", plots.label(definition.name))
    plot = plots.curves(rows, "length", series, axes, definition.share, order=order)
    caption = f"{definition.title} by answer length, {system} ({benchmark})."
    return [Drawing(f"{benchmark}-{system}-lengths", plot, caption)]
