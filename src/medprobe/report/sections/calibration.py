"""Calibration: does a method find what a model was taught, and only that?

The sample world's models come in pairs of one size and training length: one has read the facts,
each a known number of times, the other (`untaught…`) has not. A sound method ranks the first above
the second, and facts that were read above facts that were not.
"""

import pandas as pd

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


def section(results: Results, benchmark: str) -> str:
    """A table of pairs with a verdict for each method, and accuracy by times read."""
    pairs = _pairs(results, benchmark)
    if not pairs:
        return ""
    intro = html.paragraph(
        "These models were trained here, so what they can know is no guess: a taught model has "
        "read the facts, its untaught twin has not. A method that cannot tell the two apart "
        "measures something else."
    )
    times = "".join(_times(results, benchmark, taught) for taught, _ in pairs)
    return html.section(
        "Calibration: against the truth of what was taught",
        intro + _table(results, benchmark, pairs) + times,
    )


def _pairs(results: Results, benchmark: str) -> list[tuple[str, str]]:
    models = set(results.rows(benchmark)["model"])
    found = [(model.replace("untaught", "taught"), model) for model in models]
    return sorted(pair for pair in found if pair[0] != pair[1] and pair[0] in models)


def _table(results: Results, benchmark: str, pairs: list[tuple[str, str]]) -> str:
    metric, subset = results.primary(benchmark), results.subsets(benchmark)[0]
    look = metric_of(metric)
    rows = results.rows(benchmark, subset=subset, relation="macro", metric=metric)
    rows = without_controls(without_sweeps(rows)).set_index(["model", "method"]).sort_index()
    body: list[list[str | Cell]] = []
    apart = 0
    for taught, untaught in pairs:
        for method in (method for model, method in rows.index if model == taught):
            if (untaught, method) not in rows.index:
                continue
            a, b = rows.loc[(taught, method)], rows.loc[(untaught, method)]
            won = (a["value"] < b["value"]) == (look.better == "lower") and a["value"] != b["value"]
            clear = won and not overlap(a, b)
            apart += clear
            verdict = "taught, intervals apart" if clear else "taught, intervals overlap"
            cells = [_cell(metric, one) for one in (a, b)]
            body.append([f"{taught} / {untaught}", method, *cells, verdict if won else "untaught"])
    if not body:
        return ""
    sentence = (
        f"Taught models are above untaught ones, with {100 * results.confidence:.0f} % intervals "
        f"that do not overlap, in {apart} of {len(body)} comparisons."
    )
    heads = ["models", "method", f"taught, {look.title}", f"untaught, {look.title}", "higher"]
    return html.paragraph(sentence) + html.table(heads, body)


def _cell(metric: str, row: pd.Series) -> Cell:
    value, low, high = (shown(metric, row[key]) for key in ("value", "low", "high"))
    shade = row["value"] if metric_of(metric).share else None
    return Cell(f"{value}  [{low}, {high}]".replace(" %", ""), row["value"], shade)


def _times(results: Results, benchmark: str, model: str) -> str:
    """Accuracy by how often a taught model has read the fact, a line a method."""
    metric, subset = results.primary(benchmark), results.subsets(benchmark)[0]
    look = metric_of(metric)
    rows = results.rows(benchmark, relation="micro", metric=metric, model=model)
    rows = without_sweeps(rows[rows["subset"].str.startswith(f"{subset}/read:")])
    rows = rows.assign(times=rows["subset"].str.split(":").str[-1])
    if rows["times"].nunique() < 2:
        return ""
    rows = rows.sort_values("times", key=lambda names: names.map(_first), kind="stable")
    label = look.title + (", per cent" if look.share else "")
    axes = ("times that the fact was read in training", label)
    svg = figures.curves(rows, "times", "method", axes, look.share)
    results.figures[f"{benchmark}-{model}-calibration"] = svg
    return html.figure(svg, f"{look.title} of {model} by how often it has read the fact.")


def _first(name: str) -> int:
    return int(name.removeprefix("over-").partition("-")[0]) + name.startswith("over")
