"""`medprobe export`: results as a table for a paper, with the numbers of the page.

A row is a model, and a column a method or, in the leaderboard, a benchmark. A column compares
models under one method, as the paired tests do. The best value of each column is bold. One mark
shows which models are significantly worse, and another which are not shown to beat a baseline.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from medprobe.core.errors import BadInput, nearest
from medprobe.core.spreadsheets import csv_text
from medprobe.core.tables import BASELINE
from medprobe.library.project import Results
from medprobe.metrics import catalog
from medprobe.metrics.baselines import LETTERS, MAJORITY, SHOWN
from medprobe.metrics.results import (
    comparable,
    is_control,
    main_variants,
    primary_metric,
    select,
    select_systems,
    subsets,
    without_sweeps,
)
from medprobe.pipeline.outputs import to_json
from medprobe.report.numbers import format_interval, format_value, format_without_unit
from medprobe.report.numbers import metric as about
from medprobe.report.page_data import PageData
from medprobe.report.verdicts import control, verdict

LEADERBOARD: Final = "leaderboard"
MAIN: Final = "Each model is shown by its main result, whose method follows from the model's kind."
SECOND: Final = "A benchmark's second column has all models under one method."
BEST: Final = "The best value of each column is bold; intervals are in brackets."
TESTED: Final = "‡: significantly worse than the best (paired test, corrected)."
UNBEATEN: Final = (
    "†: not significantly above its control, such as the model's own answers to other subjects."
)
HEAD: Final = re.compile(r", | by |(?<=:)")  # line breaks in a column's head
NARROW: Final = 4  # columns that fit into the width of the text
LATEX: Final = {
    **{character: f"\\{character}" for character in "_%&#${}"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "–": "--",
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
}
PARTLY_TESTED: Final = " Not every model is tested against the best."
NAMES: Final = {MAJORITY: "majority baseline", LETTERS: "letters of the names"}
UNTESTED: Final = "There are no paired tests of these results."


@dataclass(frozen=True)
class Column:
    """The models under one method, by one metric on one subset of a benchmark."""

    head: str
    rows: pd.DataFrame  # of the comparison, one a model, with `best`, `worse` and `unbeaten`
    untested: bool  # whether a model has no test against the best one


def export(
    results: Results, view: str, form: str, metric: str | None = None, *, every: bool = False
) -> str:
    """Format results as a table, of the variant that represents each method."""
    if view == LEADERBOARD:
        columns = list(_leaderboard(results, metric, every))
        title = f"The models by benchmark. {MAIN}{f' {SECOND}' if every else ''}"
    else:
        metric = {known.title: name for name, known in catalog().items()}.get(metric or "", metric)
        columns = list(_benchmark(results, *view.partition("/")[::2], metric, every))
        row = columns[0].rows.iloc[0]
        title = f"{about(row['metric']).title} on {row['benchmark']} ({row['subset']})."
        same = {name: row[name] for name in ("benchmark", "subset", "metric")}
        rows = select(results.comparison, **same, relation="macro", model=BASELINE)
        beside = dict(zip(rows["method"], rows["value"], strict=True))
        named = [
            f"{NAMES[name]} {format_value(row['metric'], beside[name])}"
            for name in SHOWN
            if name in beside
        ]
        title += f" Without a model: {', '.join(named)}." if named and not every else ""
    marks = UNTESTED if results.significance.empty else TESTED
    if marks == TESTED and any(column.untested for column in columns):
        marks += PARTLY_TESTED
    if any(column.rows["unbeaten"].any() for column in columns):
        marks = f"{marks} {UNBEATEN}".strip()
    return FORMS[form](columns, f"{title} {BEST} {marks}")


def _benchmark(
    results: Results, benchmark: str, subset: str, metric: str | None, every: bool
) -> Iterator[Column]:
    metadata = results.benchmark(benchmark)
    rows = select(results.comparison, benchmark=benchmark, relation="macro")
    name, subset = metric or primary_metric(rows, metadata), subset or subsets(rows, metadata)[0]
    means = without_sweeps(select(rows, subset=subset, metric=name))
    if means.empty:
        pairs = sorted({*(rows["subset"] + ", " + rows["metric"])})
        problem = f"no means of {name} on {subset}{nearest(f'{subset}, {name}', pairs)}"
        raise BadInput(benchmark, problem, "reports/comparison.csv lists subsets and metrics")
    if not every:
        own = select(results.comparison, benchmark=benchmark)
        means = select_systems(means, main_variants(own[own["model"] != BASELINE]))
    for method, part in means.groupby("method", sort=True):
        yield _column(results, str(method), part)


def _leaderboard(results: Results, metric: str | None, every: bool) -> Iterator[Column]:
    """Each benchmark's first subset: main results, and those under the method of most models."""
    if metric is not None:
        problem = "the leaderboard always shows the main metric of each benchmark"
        raise BadInput("export", problem, "remove --metric")
    for benchmark in sorted(results.comparison["benchmark"].unique()):
        metadata = results.benchmark(benchmark)
        own = select(results.comparison, benchmark=benchmark)
        own = own[(own["model"] != BASELINE) | own["method"].isin(SHOWN)]
        rows = select(own, relation="macro")
        subset = subsets(rows, metadata)[0]
        name = primary_metric(rows, metadata)
        means = select(rows, subset=subset, metric=name)
        chosen = {
            (model, main["method"]) for model, main in results.main.get(benchmark, {}).items()
        } | {(BASELINE, name) for name in SHOWN}
        means = comparable(select_systems(means, main_variants(own) | chosen))
        lower = about(name).better_on(subset) == "lower"
        order = means.sort_values("value", ascending=lower, kind="stable")
        method = str(order.groupby("method", sort=False)["model"].nunique().idxmax())
        head = f"{benchmark} ({subset}), {about(name).title}"
        yield _column(results, head, select_systems(order, chosen))
        if every:
            yield _column(results, f"{head} by {method}", order[order["method"] == method])


def _column(results: Results, head: str, rows: pd.DataFrame) -> Column:
    """Mark models as the `best`, significantly `worse`, or with an `unbeaten` control."""
    benchmark, subset, metric = rows.iloc[0][["benchmark", "subset", "metric"]]
    keys = {"benchmark": benchmark, "subset": subset, "metric": metric, "relation": "macro"}
    tests = select(results.significance, **keys).dropna(subset="p_holm")
    ranked = rows[(rows["model"] != BASELINE) & ~rows["method"].map(is_control)]
    best = _best(ranked, about(metric).better_on(subset))
    method_of = dict(zip(ranked["model"], ranked["method"], strict=True))
    verdicts = {
        model: [
            verdict(tests, (model, method_of[model]), (other, method_of[other])) for other in best
        ]
        for model in method_of.keys() - best
    }
    worse = [
        model
        for model, against_best in verdicts.items()
        if any(test is not None and test.clear for test in against_best)
    ]
    untested = any(None in against_best for against_best in verdicts.values())
    marks = {
        "best": rows["model"].isin(best) & (rows["model"].nunique() > 1),
        "worse": rows["model"].isin(worse),
        "unbeaten": _unbeaten(results, rows),
    }
    return Column(head, rows.assign(**marks), untested)


def _unbeaten(results: Results, rows: pd.DataFrame) -> pd.Series:
    """Whether each model is not significantly above its control, as on the page; [models]."""
    names = rows.iloc[0][["benchmark", "subset", "metric"]]
    means = select(results.comparison, relation="macro", **names)
    tables = PageData(means[means["model"] != BASELINE], results.significance)
    unbeaten = []
    for _, row in rows.iterrows():
        is_system = row["model"] != BASELINE and not is_control(row["method"])
        own = control(tables, row) if is_system else None
        unbeaten.append(own is not None and own.state in ("not", "below"))
    return pd.Series(unbeaten, index=rows.index)


def _best(rows: pd.DataFrame, better: str) -> set[str]:
    """The models with the best value; none if no direction of the metric is better."""
    if better == "neither" or rows.empty:
        return set()
    top = rows["value"].min() if better == "lower" else rows["value"].max()
    return set(rows.loc[rows["value"] == top, "model"])


def _cells(columns: list[Column], cell: Callable[[Column, dict[str, Any]], str]) -> pd.DataFrame:
    """Build a table with one row per model; `cell` formats a row of the comparison."""
    table = {
        _head(column): {_row_name(row): cell(column, row) for row in column.rows.to_dict("records")}
        for column in columns
    }
    models = sorted({model for column in table.values() for model in column})
    frame = pd.DataFrame(table, index=models).fillna("–")
    return frame.rename_axis("model").reset_index()


def _row_name(row: dict[str, Any]) -> str:
    is_named = row["model"] == BASELINE and row["method"] in NAMES
    return NAMES[row["method"]] if is_named else str(row["model"])


def _head(column: Column) -> str:
    return column.head + (", %" if about(column.rows["metric"].iloc[0]).share else "")


def _numbers(row: dict[str, Any]) -> tuple[str, str]:
    """A value and its interval."""
    value = format_without_unit(row["metric"], row["value"])
    return value, format_interval(row["metric"], row["low"], row["high"])


def _marks(row: dict[str, Any]) -> str:
    return ("†" if row["unbeaten"] else "") + ("‡" if row["worse"] else "")


def _escaped(text: str) -> str:
    """Escape text for LaTeX.

    >>> _escaped("mask_average, 5 %")
    'mask\\\\_average, 5 \\\\%'
    >>> print(_escaped(r"\\input{x}^~"))
    \\textbackslash{}input\\{x\\}\\textasciicircum{}\\textasciitilde{}
    """
    return "".join(LATEX.get(character, character) for character in text)


def _latex(columns: list[Column], note: str) -> str:
    """Format a table for booktabs.

    Heads and intervals have lines of their own, which saves width; a table with many columns is
    scaled to the width of the text (graphicx).
    """

    def cell(column: Column, row: dict[str, Any]) -> str:
        value, interval = _numbers(row)
        number = f"\\textbf{{{value}}}" if row["best"] else value
        small = f"{{\\scriptsize {interval}}}" if interval else ""
        return _lines([f"{number}{_escaped(_marks(row))}", small])

    frame = _cells(columns, cell)
    frame["model"] = frame["model"].map(_escaped)
    frame.columns = pd.Index([_lines(HEAD.split(_escaped(name))) for name in frame])
    caption = _escaped(note)
    form = "l" + "r" * len(columns)
    text = frame.replace("–", "--").to_latex(index=False, column_format=form, caption=caption)
    text = text.replace("\\caption", "\\centering\n\\caption", 1)
    if len(columns) > NARROW:
        start, end = "\\begin{tabular}", "\\end{tabular}"
        text = text.replace(start, f"\\resizebox{{\\linewidth}}{{!}}{{%\n{start}")
        text = text.replace(end, f"{end}}}")
    return str(text)


def _lines(texts: Sequence[str]) -> str:
    """Stack texts in a cell, aligned to the right; empty texts are left out.

    >>> print(_lines(["5.0", "(1.0 to 9.0)"]), _lines(["5.0", ""]))
    \\shortstack[r]{5.0\\\\(1.0 to 9.0)} 5.0
    """
    lines = [text for text in texts if text]
    return "".join(lines) if len(lines) < 2 else "\\shortstack[r]{" + r"\\".join(lines) + "}"


def _markdown(columns: list[Column], note: str) -> str:
    def cell(column: Column, row: dict[str, Any]) -> str:
        value, interval = _numbers(row)
        number = f"**{value}**" if row["best"] else value
        return f"{number}{_marks(row)} {interval}".rstrip()

    frame = _cells(columns, cell)
    return f"{frame.to_markdown(index=False, disable_numparse=True)}\n\n{note}\n"


def _csv(columns: list[Column], note: str) -> str:
    """Format one row per number, unrounded."""
    rows = pd.concat([column.rows for column in columns])
    return csv_text(rows)


def _json(columns: list[Column], note: str) -> str:
    names = ["model", "method", "benchmark", "subset", "relation", "metric", "value", "low", "high"]
    names += ["n", "best", "worse", "unbeaten"]
    tables = [
        {"head": column.head, "cells": column.rows[names].to_dict("records")} for column in columns
    ]
    return to_json({"columns": tables, "note": note}) + "\n"


FORMS: Final[dict[str, Callable[[list[Column], str], str]]] = {
    "latex": _latex,
    "markdown": _markdown,
    "csv": _csv,
    "json": _json,
}
