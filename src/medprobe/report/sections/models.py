"""Models and methods side by side, with intervals."""

import pandas as pd

from medprobe.figures import plots
from medprobe.figures.rows import Drawing, without_sweeps
from medprobe.metrics import catalog
from medprobe.report.blocks import Block, Cell, Part, Table, Tag, paragraph, part
from medprobe.report.numbers import MISSING, cell, count, metric, shown
from medprobe.report.results import Results, overlap, without_controls


def section(results: Results, benchmark: str) -> list[Part]:
    """For each subset: a drawing, a sentence on the best two, and the table of all metrics."""
    subsets = results.subsets(benchmark)
    blocks = (_subset(results, benchmark, subset) for subset in subsets)
    return part("Models side by side", *blocks)


def _subset(results: Results, benchmark: str, subset: str) -> list[Block]:
    rows = without_sweeps(results.rows(benchmark, subset=subset, relation="macro"))
    primary, names = results.primary(benchmark), _names(rows)
    if not names:
        return []
    name = primary if primary in set(rows["metric"]) else names[0]
    first = rows[rows["metric"] == name]
    axis = plots.label(name, "macro")
    svg = plots.intervals(first, "method", "model", axis, metric(name).share)
    caption = (
        f"{metric(name).title} on {benchmark} ({subset}); bars are "
        f"{100 * results.confidence:.0f} % bootstrap intervals over queries."
    )
    return [
        Tag(subset),
        Drawing(f"{benchmark}-{subset}-models", svg, caption),
        *paragraph(_best(without_controls(first), name)),
        _table(rows, names),
    ]


def _names(rows: pd.DataFrame) -> list[str]:
    """The metrics that are shown, in the order of their families; ties shared are a check of
    accuracy and stay in comparison.csv."""
    there = set(rows["metric"])
    return [name for name in catalog() if name in there and not name.endswith("_tied")]


def _best(rows: pd.DataFrame, name: str) -> str:
    """Which model leads, and whether its interval is apart from the next one's."""
    order = rows.sort_values("value", ascending=metric(name).better == "lower", kind="stable")
    if order["model"].nunique() < 2:
        return ""
    best = order.iloc[0]
    rival = order[(order["model"] != best["model"]) & (order["method"] == best["method"])]
    if rival.empty:
        return ""
    other = rival.iloc[0]
    verdict = (
        "their intervals overlap, see the paired test below"
        if overlap(best, other)
        else "their intervals do not overlap"
    )
    return (
        f"The best {metric(name).title} is {best['model']}'s under {best['method']}, "
        f"{shown(name, best['value'])}; under the same method {other['model']} follows with "
        f"{shown(name, other['value'])}: {verdict}."
    )


def _table(rows: pd.DataFrame, names: list[str]) -> Table:
    body = []
    for (model, method), some in rows.groupby(["model", "method"], sort=True):
        numbers = some.set_index("metric")[["value", "low", "high"]]
        cells: list[str | Cell] = [
            cell(name, *numbers.loc[name]) if name in numbers.index else MISSING for name in names
        ]
        body.append([str(model), str(method), *cells, count(some["n"].max())])
    heads = [metric(name).title + (", %" if metric(name).share else "") for name in names]
    return Table(["model", "method", *heads, "queries"], body)
