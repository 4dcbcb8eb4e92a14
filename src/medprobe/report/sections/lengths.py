"""By answer length in characters."""

from typing import Final

from medprobe.figures import plots
from medprobe.figures.rows import Drawing, without_sweeps
from medprobe.metrics.splits import first_number
from medprobe.report.numbers import metric
from medprobe.report.results import Results

BY: Final = "answer length"  # what these drawings, and a table of `breakdowns`, are by
FEWEST: Final = 5  # queries: a bin with fewer says nothing and is not drawn


def drawn(results: Results, benchmark: str) -> list[Drawing]:
    """For each method a drawing of its models over the bins of answer length."""
    name, subset = results.primary(benchmark), results.main_subset(benchmark)
    rows = without_sweeps(results.rows(benchmark, relation="micro", metric=name))
    inside = rows["subset"].str.startswith(f"{subset}/answer-length:")
    rows = rows[inside & (rows["n"] >= FEWEST)]
    rows = rows.assign(length=rows["subset"].str.split(":").str[-1])
    rows = rows.sort_values("length", key=lambda names: names.map(first_number), kind="stable")
    drawings = []
    for method, group in rows.groupby("method", sort=True):
        if group["length"].nunique() < 2:
            continue
        axes = ("characters of the answer", plots.label(name))
        share = metric(name).share
        plot = plots.curves(group, "length", "model", axes, share, order=results.models)
        caption = f"{metric(name).title} by answer length, {method} ({benchmark})."
        drawings.append(Drawing(f"{benchmark}-{method}-lengths", plot, caption))
    return drawings
