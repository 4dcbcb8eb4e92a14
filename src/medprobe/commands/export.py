"""`medprobe export`: a view of the results as a table for a paper, with the page's numbers.

A row is a model, a column a method, or in the leaderboard a benchmark: so a column compares models
under one method, which is what the paired tests do. The best of each column is bold, and those that
are significantly worse carry a mark.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from medprobe.core.errors import BadInput, nearest
from medprobe.figures.rows import without_sweeps
from medprobe.library.project import Results
from medprobe.metrics.results import primary_metric, select, subsets
from medprobe.report.numbers import format_value
from medprobe.report.numbers import metric as about
from medprobe.report.results import comparable
from medprobe.report.verdicts import verdict

LEADERBOARD: Final = "leaderboard"
BEST: Final = "The best of each column is bold; intervals stand in brackets."
TESTED: Final = "†: significantly worse than the best (paired test, corrected)."
HEAD: Final = re.compile(r", | by |(?<=:)")  # where a column's head is broken
NARROW: Final = 4  # columns that fit into the width of a text
DAGGER: Final = r"$^\dagger$"
SOME: Final = " Not every model is tested against the best."
UNTESTED: Final = "There are no paired tests of these results."


@dataclass(frozen=True)
class Column:
    """The models under one method, by one metric on one subset of a benchmark."""

    head: str
    rows: pd.DataFrame  # of the comparison, one a model, with `best` and `worse`
    untested: bool  # is there a model that no test compares with the best one?


def export(results: Results, view: str, form: str, metric: str | None = None) -> str:
    """A view as text in a form (a key of FORMS). `view` is `leaderboard`, a benchmark, or
    `<benchmark>/<subset>`; `metric` is the benchmark's main one where none is named.

    Raises BadInput for a view or a metric that there is none of.
    """
    if view == LEADERBOARD:
        columns, title = list(_leaderboard(results, metric)), "The models by benchmark."
    else:
        columns = list(_benchmark(results, *view.partition("/")[::2], metric))
        first = columns[0].rows.iloc[0]
        title = f"{about(first['metric']).title} on {first['benchmark']} ({first['subset']})."
    marks = UNTESTED if results.significance.empty else TESTED
    if marks == TESTED and any(column.untested for column in columns):
        marks += SOME
    return FORMS[form](columns, f"{title} {BEST} {marks}")


def _benchmark(
    results: Results, benchmark: str, subset: str, metric: str | None
) -> Iterator[Column]:
    metadata = results.benchmark(benchmark)
    rows = select(results.comparison, benchmark=benchmark, relation="macro")
    name, subset = metric or primary_metric(rows, metadata), subset or subsets(rows, metadata)[0]
    chosen = without_sweeps(select(rows, subset=subset, metric=name))
    if chosen.empty:
        known = sorted({f"{s}, {m}" for s, m in zip(rows["subset"], rows["metric"], strict=True)})
        problem = f"no means of {name} on {subset}{nearest(f'{subset}, {name}', known)}"
        raise BadInput(benchmark, problem, "reports/comparison.csv names subsets and metrics")
    for method, part in chosen.groupby("method", sort=True):
        yield _column(results, str(method), part)


def _leaderboard(results: Results, metric: str | None) -> Iterator[Column]:
    """Each benchmark's first subset, under the method that asks most models."""
    if metric is not None:
        raise BadInput("export", "the leaderboard has each benchmark's main metric", "no --metric")
    for benchmark in sorted(results.comparison["benchmark"].unique()):
        metadata = results.benchmark(benchmark)
        rows = select(results.comparison, benchmark=benchmark, relation="macro")
        name, subset = primary_metric(rows, metadata), subsets(rows, metadata)[0]
        chosen = comparable(select(rows, subset=subset, metric=name))
        lower = about(name).better_on(subset) == "lower"
        order = chosen.sort_values("value", ascending=lower, kind="stable")
        method = str(order.groupby("method", sort=False)["model"].nunique().idxmax())
        part = order[order["method"] == method]
        yield _column(results, f"{benchmark} ({subset}), {about(name).title} by {method}", part)


def _column(results: Results, head: str, rows: pd.DataFrame) -> Column:
    """The rows of one method, with which models are `best`, and which significantly `worse`."""
    benchmark, subset, metric, method = rows.iloc[0][["benchmark", "subset", "metric", "method"]]
    tests = select(results.significance, benchmark=benchmark, subset=subset, metric=metric)
    best = _best(rows, about(metric).better_on(subset))
    verdicts = {
        model: [verdict(tests, (model, method), (other, method)) for other in best]
        for model in set(rows["model"]) - best
    }
    worse = {model for model, found in verdicts.items() if any(one and one.clear for one in found)}
    untested = any(one is None for found in verdicts.values() for one in found)
    marks = {"best": rows["model"].isin(best), "worse": rows["model"].isin(worse)}
    return Column(head, rows.assign(**marks), untested)


def _best(rows: pd.DataFrame, better: str) -> set[str]:
    """The models of the best value, unless the metric has no good direction."""
    if better == "neither":
        return set()
    top = rows["value"].min() if better == "lower" else rows["value"].max()
    return set(rows.loc[rows["value"] == top, "model"])


def _cells(columns: list[Column], cell: Callable[[dict[str, Any]], str]) -> pd.DataFrame:
    """The table of all columns, a row a model, each cell made of a row of the comparison."""
    table = {
        _head(column): {row["model"]: cell(row) for row in column.rows.to_dict("records")}
        for column in columns
    }
    models = sorted({model for column in table.values() for model in column})
    frame = pd.DataFrame(table, index=models).fillna("–")
    return frame.rename_axis("model").reset_index()


def _head(column: Column) -> str:
    return column.head + (", %" if about(column.rows["metric"].iloc[0]).share else "")


def _number(row: dict[str, Any], name: str) -> str:
    return format_value(row["metric"], row[name]).removesuffix(" %")


def _interval(row: dict[str, Any]) -> str:
    return "" if pd.isna(row["low"]) else f"[{_number(row, 'low')}, {_number(row, 'high')}]"


def _escaped(text: str) -> str:
    """Text as LaTeX prints it.

    >>> _escaped("mask_average, 5 %")
    'mask\\\\_average, 5 \\\\%'
    """
    return (
        "".join(f"\\{c}" if c in "_%&#$" else c for c in text)
        .replace("–", "--")
        .replace("†", DAGGER)
    )


def _latex(columns: list[Column], note: str) -> str:
    """A table for booktabs: heads and intervals in lines of their own, since what stands beside
    each other runs off the paper, and scaled to the text's width (graphicx) where there are many.
    """

    def cell(row: dict[str, Any]) -> str:
        value, interval = _number(row, "value"), _interval(row)
        number = f"\\textbf{{{value}}}" if row["best"] else value
        mark = DAGGER if row["worse"] else ""
        return _lines([f"{number}{mark}", f"{{\\scriptsize {interval}}}" if interval else ""])

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
    """Texts one below another, to the right, as LaTeX sets them in a cell.

    >>> print(_lines(["5.0", "(1.0 to 9.0)"]), _lines(["5.0", ""]))
    \\shortstack[r]{5.0\\\\(1.0 to 9.0)} 5.0
    """
    there = [text for text in texts if text]
    return "".join(there) if len(there) < 2 else "\\shortstack[r]{" + r"\\".join(there) + "}"


def _markdown(columns: list[Column], note: str) -> str:
    def cell(row: dict[str, Any]) -> str:
        value = _number(row, "value")
        number = f"**{value}**" if row["best"] else value
        return f"{number}{'†' if row['worse'] else ''} {_interval(row)}".rstrip()

    frame = _cells(columns, cell)
    return f"{frame.to_markdown(index=False, disable_numparse=True)}\n\n{note}\n"


def _csv(columns: list[Column], note: str) -> str:
    """A row a number, unrounded."""
    rows = pd.concat([column.rows for column in columns])
    return str(rows.to_csv(index=False, lineterminator="\n"))


FORMS: Final[dict[str, Callable[[list[Column], str], str]]] = {
    "latex": _latex,
    "markdown": _markdown,
    "csv": _csv,
}
