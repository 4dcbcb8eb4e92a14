"""Models and methods side by side, with intervals."""

from typing import Final

import pandas as pd

from medprobe.figures import plots
from medprobe.figures.rows import Drawing, without_sweeps
from medprobe.metrics import catalog
from medprobe.report.blocks import Block, Cell, Part, Table, Tag, paragraph, part
from medprobe.report.numbers import MISSING, cell, count, metric, shown
from medprobe.report.results import Results, without_controls
from medprobe.report.verdicts import SLIGHT, chance, chance_told, listed, units, verdict

TIED: Final = "_tied"  # ends the names of accuracies with ties shared


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
    by_chance = chance(results, benchmark, subset, name)
    svg = plots.intervals(first, "method", "model", axis, metric(name).share, chance=by_chance)
    caption = (
        f"{metric(name).title} on {benchmark} ({subset}); bars are "
        f"{100 * results.confidence:.0f} % bootstrap intervals over {units(results, benchmark)}"
        + ("" if by_chance is None else "; the dotted line is chance")
        + "."
    )
    best = _best(results, without_controls(first), name)
    return [
        Tag(subset),
        Drawing(f"{benchmark}-{subset}-models", svg, caption),
        *paragraph(best, chance_told(results, benchmark, subset, name)),
        _table(rows, names),
        *paragraph(_ties(rows)),
    ]


def _names(rows: pd.DataFrame) -> list[str]:
    """The metrics that are shown, in the order of their families; ties shared are a check of
    accuracy, which a sentence tells of, and stay in comparison.csv."""
    there = set(rows["metric"])
    return [name for name in catalog() if name in there and not name.endswith(TIED)]


def _ties(rows: pd.DataFrame) -> str:
    """How ties fall, where they matter: the accuracy that most depends on them."""
    values = rows.pivot_table(index=["model", "method"], columns="metric", values="value")
    plain = [name for name in values if f"{name}{TIED}" in values]
    gaps = pd.DataFrame({name: values[f"{name}{TIED}"] - values[name] for name in plain}).stack()
    if gaps.empty or (largest := gaps.abs().max()) < SLIGHT:
        return ""
    model, method, name = gaps.abs().idxmax()
    fair, ours = (shown(name, values.loc[(model, method), one]) for one in (f"{name}{TIED}", name))
    return (
        f"Names of equal score stand in the order of the alphabet, upper case first. In random "
        f"order {model} would have {fair} {metric(name).title} under {method}, not {ours}; "
        f"no other value here depends on ties by more than {100 * largest:.1f} points."
    )


def _best(results: Results, rows: pd.DataFrame, name: str) -> str:
    """Which model leads, and what the paired test with the next one under its method says; nothing
    where there is no such test."""
    if rows.empty:
        return ""
    benchmark, subset = rows[["benchmark", "subset"]].iloc[0]
    better = metric(name).better_on(subset)
    if better == "neither":
        return ""
    order = rows.sort_values("value", ascending=better == "lower", kind="stable")
    best, order = order.iloc[0], order[order["method"] == order["method"].iloc[0]]
    method, models = best["method"], order["model"].tolist()
    if len(models) < 2:
        return ""
    tests = results.tests(benchmark, subset, name)
    test = verdict(tests, (models[0], method), (models[1], method))
    if test is None:
        return ""
    first, second = (shown(name, value) for value in order["value"].head(2))
    if test.difference == 0 or order["value"].iloc[0] == order["value"].iloc[1]:
        tied = order[order["value"] == best["value"]]["model"]
        return f"{listed(tied)} have the same {metric(name).title} under {method}, {first}."
    word = {"higher": "highest", "lower": "lowest"}[better]
    turned = ", where low is good," if subset in metric(name).turned_on else ""
    note = "" if test.clear else f" Neither of {listed(models[:2])} is shown to be better."
    return (
        f"The {word} {metric(name).title}{turned} is {models[0]}'s under {method}, {first}; "
        f"{models[1]} follows under the same method with {second}, a difference that is "
        f"{test.words}.{note}"
    )


def _table(rows: pd.DataFrame, names: list[str]) -> Table:
    body = []
    for (model, method), some in rows.groupby(["model", "method"], sort=True):
        numbers = some.set_index("metric")[["value", "low", "high", "std"]]
        cells: list[str | Cell] = [
            cell(name, *numbers.loc[name]) if name in numbers.index else MISSING for name in names
        ]
        body.append([str(model), str(method), *cells, count(some["n"].max())])
    heads = [metric(name).title + (", %" if metric(name).share else "") for name in names]
    return Table(["model", "method", *heads, "queries"], body)
