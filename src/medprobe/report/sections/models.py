"""Models and methods side by side, with intervals."""

import pandas as pd

from medprobe.figures import plots, relations
from medprobe.figures.rows import Drawing, without_sweeps
from medprobe.metrics import catalog
from medprobe.report import explore
from medprobe.report.blocks import Block, Cell, Explorer, Part, Table, folded, paragraph, part
from medprobe.report.numbers import MISSING, cell, count, metric, shown
from medprobe.report.results import Results, comparable
from medprobe.report.sections import lengths
from medprobe.report.verdicts import SLIGHT, chance, chance_told, listed, units, verdict


def section(results: Results, benchmark: str) -> list[Part]:
    """The explorer, and for each subset sentences on the best two and the table of all metrics."""
    every = results.rows(benchmark)
    about, subsets = results.benchmarks[benchmark], results.subsets(benchmark)
    drawings = [one for subset in subsets for one in _drawn(results, benchmark, subset)]
    drawings += [*relations.drawn(every, about), *lengths.drawn(results, benchmark)]
    said = {subset: _said(results, benchmark, subset) for subset in subsets}
    numbers = {**explore.numbers(results, benchmark), "sentences": said}
    blocks: list[Block] = [Explorer(numbers, drawings)] if drawings else []
    for subset in subsets:
        blocks += folded(f"All metrics, {subset}", _all_metrics(results, benchmark, subset))
    return part("Models side by side", blocks)


def _rows(results: Results, benchmark: str, subset: str) -> pd.DataFrame:
    return without_sweeps(results.rows(benchmark, subset=subset, relation="macro"))


def _main(results: Results, benchmark: str, rows: pd.DataFrame) -> str:
    """The benchmark's main metric, or where these rows have it not, their first."""
    primary = results.primary(benchmark)
    return primary if primary in set(rows["metric"]) else next(iter(_names(rows)), "")


def _drawn(results: Results, benchmark: str, subset: str) -> list[Drawing]:
    rows = _rows(results, benchmark, subset)
    if not (name := _main(results, benchmark, rows)):
        return []
    by_chance = chance(results, benchmark, subset, name)
    plot = plots.intervals(
        rows[rows["metric"] == name],
        "method",
        "model",
        plots.label(name, "macro"),
        metric(name).share,
        chance=by_chance,
    )
    caption = (
        f"{metric(name).title} on {benchmark} ({subset}); bars are "
        f"{100 * results.confidence:.0f} % bootstrap intervals over {units(results, benchmark)}"
        + ("" if by_chance is None else "; the dotted line is chance")
        + "."
    )
    return [Drawing(f"{benchmark}-{subset}-models", plot, caption)]


def _said(results: Results, benchmark: str, subset: str) -> dict[str, str]:
    """For each metric: who leads, whether significantly, and what chance reaches."""
    rows = comparable(_rows(results, benchmark, subset))
    said = {
        name: [
            _best(results, rows[rows["metric"] == name], name),
            chance_told(results, benchmark, subset, name),
        ]
        for name in _names(rows)
    }
    return {name: " ".join(filter(None, both)) for name, both in said.items() if any(both)}


def _all_metrics(results: Results, benchmark: str, subset: str) -> list[Block]:
    rows = _rows(results, benchmark, subset)
    if not (names := _names(rows)):
        return []
    name = _main(results, benchmark, rows)
    said = _said(results, benchmark, subset).get(name, "")
    return [*paragraph(said), _table(rows, names, subset), *paragraph(_ties(rows))]


def _names(rows: pd.DataFrame) -> list[str]:
    """The metrics that are shown, in the order of their families; ties shared are a check of
    accuracy, which a sentence tells of, and stay in comparison.csv."""
    there = set(rows["metric"])
    return [name for name in catalog() if name in there and not name.endswith(explore.TIED)]


def _ties(rows: pd.DataFrame) -> str:
    """How ties fall, where they matter: the accuracy that most depends on them."""
    values = rows.pivot_table(index=["model", "method"], columns="metric", values="value")
    plain = [name for name in values if name + explore.TIED in values]
    gaps = pd.DataFrame({name: values[name + explore.TIED] - values[name] for name in plain})
    if gaps.empty or (largest := gaps.stack().abs().max()) < SLIGHT:
        return ""
    model, method, name = gaps.stack().abs().idxmax()
    both = values.loc[(model, method)]
    fair, ours = (shown(name, both[one]) for one in (name + explore.TIED, name))
    return (
        f"Names of equal score stand in the order of the alphabet, upper case first. In random "
        f"order {model} would have {fair} {metric(name).title} under {method}, not {ours}; "
        f"no other value here depends on ties by more than {100 * largest:.1f} points."
    )


def _best(results: Results, rows: pd.DataFrame, name: str) -> str:
    """Which model leads, and what the paired test with the next one under its method says; nothing
    where there is no such test."""
    subset = "" if rows.empty else str(rows["subset"].iloc[0])
    better = metric(name).better_on(subset)
    if rows.empty or better == "neither":
        return ""
    order = rows.sort_values("value", ascending=better == "lower", kind="stable")
    best = order.iloc[0]
    word = {"higher": "highest", "lower": "lowest"}[better]
    level = order[order["value"] == best["value"]]
    if level["method"].nunique() > 1 and level["model"].nunique() > 1:
        both = listed(f"{row.model} under {row.method}" for row in level.itertuples())
        return f"The {word} {metric(name).title}, {shown(name, best['value'])}, is that of {both}."
    method = best["method"]
    order = order[order["method"] == method]
    models = order["model"].tolist()
    tests = results.tests(best["benchmark"], subset, name)
    test = verdict(tests, (models[0], method), (models[1], method)) if len(models) > 1 else None
    if test is None:
        return ""
    first, second = (shown(name, value) for value in order["value"].head(2))
    if test.difference == 0 or order["value"].iloc[0] == order["value"].iloc[1]:
        tied = order[order["value"] == best["value"]]["model"]
        return f"Under {method} {listed(tied)} have the same {metric(name).title}, {first}."
    good = "low" if better == "lower" else "high"
    turned = f", where {good} is good," if subset in metric(name).turned_on else ""
    note = "" if test.clear else f" Neither of {listed(models[:2])} is shown to be better."
    return (
        f"The {word} {metric(name).title}{turned} is {models[0]}'s under {method}, {first}; "
        f"{models[1]} follows under the same method with {second}, a difference that is "
        f"{test.words}.{note}"
    )


def _table(rows: pd.DataFrame, names: list[str], subset: str) -> Table:
    """A row a system, the best first by the first of the metrics."""
    better = metric(names[0]).better_on(subset)
    first = rows[rows["metric"] == names[0]].sort_values("value", ascending=better == "lower")
    others = rows.sort_values(["model", "method"])
    body = []
    for model, method in dict.fromkeys(
        zip(*(pd.concat([first, others])[key] for key in ("model", "method")), strict=True)
    ):
        some = rows[(rows["model"] == model) & (rows["method"] == method)]
        numbers = some.set_index("metric")[["value", "low", "high", "std"]]
        cells: list[str | Cell] = [
            cell(name, *numbers.loc[name]) if name in numbers.index else MISSING for name in names
        ]
        body.append([str(model), str(method), *cells, count(some["n"].max())])
    heads = [metric(name).title + (", %" if metric(name).share else "") for name in names]
    return Table(["model", "method", *heads, "queries"], body)
