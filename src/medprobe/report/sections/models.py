"""Models and methods side by side, with intervals."""

import pandas as pd

from medprobe.metrics.catalog import METRICS
from medprobe.report import figures, html
from medprobe.report.html import Cell
from medprobe.report.results import (
    Results,
    metric_of,
    overlap,
    shown,
    without_controls,
    without_sweeps,
)

SHOWN = [metric for metric in METRICS if not metric.endswith("_tied")]


def section(results: Results, benchmark: str) -> str:
    """For each subset: a drawing, a sentence on the best two, and the table of all metrics."""
    parts = [_subset(results, benchmark, subset) for subset in results.subsets(benchmark)]
    return html.section("Models side by side", "".join(parts))


def _subset(results: Results, benchmark: str, subset: str) -> str:
    rows = without_sweeps(results.rows(benchmark, subset=subset, relation="macro"))
    there = [name for name in [results.primary(benchmark), *SHOWN] if name in set(rows["metric"])]
    if not there:
        return ""
    metric = there[0]
    first = rows[rows["metric"] == metric]
    look = metric_of(metric)
    label = f"{look.title}, macro" + (", per cent" if look.share else "")
    svg = figures.intervals(first, "method", "model", label, look.share)
    results.figures[f"{benchmark}-{subset}-models"] = svg
    caption = (
        f"{look.title} on {benchmark} ({subset}); bars are "
        f"{100 * results.confidence:.0f} % bootstrap intervals over queries."
    )
    return (
        f'<h4><span class="tag">{subset}</span></h4>'
        + html.figure(svg, caption)
        + html.paragraph(_best(results, benchmark, without_controls(first), metric))
        + _table(rows)
    )


def _best(results: Results, benchmark: str, rows: pd.DataFrame, metric: str) -> str:
    """Which model leads, and whether its interval is apart from the next one's."""
    look = metric_of(metric)
    order = rows.sort_values("value", ascending=look.better == "lower", kind="stable")
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
        f"The best {look.title} is {best['model']}'s under {best['method']}, "
        f"{shown(metric, best['value'])}; under the same method {other['model']} follows with "
        f"{shown(metric, other['value'])}: {verdict}."
    )


def _table(rows: pd.DataFrame) -> str:
    metrics = [metric for metric in SHOWN if metric in set(rows["metric"])]
    body = []
    for (model, method), part in rows.groupby(["model", "method"], sort=True):
        numbers = part.set_index("metric")
        cells: list[str | Cell] = [str(model), str(method)]
        for metric in metrics:
            if metric not in numbers.index:
                cells.append("–")
                continue
            one = numbers.loc[metric]
            text = shown(metric, one["value"])
            if pd.notna(one["low"]):
                text += f"  [{shown(metric, one['low'])}, {shown(metric, one['high'])}]"
            shade = one["value"] if metric_of(metric).share else None
            cells.append(Cell(text.replace(" %", ""), one["value"], shade))
        n = part["n"].max()
        body.append([*cells, Cell(f"{n:,.0f}", n) if n > 0 else "–"])
    heads = [metric_of(m).title + (", %" if metric_of(m).share else "") for m in metrics]
    return html.table(["model", "method", *heads, "queries"], body)
