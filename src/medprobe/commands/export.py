"""`medprobe export`: a view of the results as a table for a paper, with the page's numbers.

A row is a model, a column a method, or in the leaderboard a benchmark: so a column compares models
under one method, which is what the paired tests do. The best of each column is bold, and those that
are significantly worse carry a mark.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from medprobe.core.errors import BadInput, nearest
from medprobe.figures.rows import without_sweeps
from medprobe.library.project import Results
from medprobe.metrics.results import primary, subsets, where
from medprobe.report.numbers import metric as about
from medprobe.report.numbers import shown
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
    rows: pd.DataFrame  # of the comparison, one a model
    worse: frozenset[str]  # models that are significantly behind the best one
    untested: bool  # is there a model that no test compares with the best one?

    @property
    def best(self) -> set[str]:
        """The models of the best value, unless the metric has no good direction."""
        first = self.rows.iloc[0]
        better = about(first["metric"]).better_on(first["subset"])
        if better == "neither":
            return set()
        values = self.rows["value"]
        top = values.min() if better == "lower" else values.max()
        return set(self.rows.loc[values == top, "model"])


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
    rows = where(results.comparison, benchmark=benchmark, relation="macro")
    name, subset = metric or primary(rows, metadata), subset or subsets(rows, metadata)[0]
    chosen = without_sweeps(where(rows, subset=subset, metric=name))
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
        rows = where(results.comparison, benchmark=benchmark, relation="macro")
        name, subset = primary(rows, metadata), subsets(rows, metadata)[0]
        chosen = comparable(where(rows, subset=subset, metric=name))
        lower = about(name).better_on(subset) == "lower"
        order = chosen.sort_values("value", ascending=lower, kind="stable")
        method = str(order.groupby("method", sort=False)["model"].nunique().idxmax())
        part = order[order["method"] == method]
        yield _column(results, f"{benchmark} ({subset}), {about(name).title} by {method}", part)


def _column(results: Results, head: str, rows: pd.DataFrame) -> Column:
    first = rows.iloc[0]
    tests = where(
        results.significance,
        benchmark=first["benchmark"],
        subset=first["subset"],
        metric=first["metric"],
    )
    column = Column(head, rows, frozenset(), untested=False)
    found = {
        (model, best): verdict(tests, (model, first["method"]), (best, first["method"]))
        for best in column.best
        for model in rows["model"]
    }
    worse = {model for (model, _), test in found.items() if test is not None and test.clear}
    apart = {model for (model, _), test in found.items() if test is None} - column.best
    return Column(head, rows, frozenset(worse - column.best), untested=bool(apart))


def _cells(columns: list[Column], cell: Callable[[str, str, bool, bool], str]) -> pd.DataFrame:
    """The table of all columns: each cell made of value, interval, is it best, is it worse."""
    table = {
        _head(column): {
            str(row["model"]): cell(
                _number(row["metric"], row["value"]),
                _interval(row),
                row["model"] in column.best,
                row["model"] in column.worse,
            )
            for row in column.rows.to_dict("records")
        }
        for column in columns
    }
    models = sorted({model for column in table.values() for model in column})
    frame = pd.DataFrame(table, index=models).fillna("–")
    return frame.rename_axis("model").reset_index()


def _head(column: Column) -> str:
    return column.head + (", %" if about(column.rows["metric"].iloc[0]).share else "")


def _number(metric: str, value: float) -> str:
    return shown(metric, value).removesuffix(" %")


def _interval(row: dict[str, float | str]) -> str:
    if pd.isna(row["low"]):
        return ""
    low, high = (_number(str(row["metric"]), float(row[edge])) for edge in ("low", "high"))
    return f"[{low}, {high}]"


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

    def cell(value: str, interval: str, best: bool, worse: bool) -> str:
        number = f"\\textbf{{{value}}}" if best else value
        mark = DAGGER if worse else ""
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
    def cell(value: str, interval: str, best: bool, worse: bool) -> str:
        number = f"**{value}**" if best else value
        return f"{number}{'†' if worse else ''} {interval}".rstrip()

    frame = _cells(columns, cell)
    return f"{frame.to_markdown(index=False, disable_numparse=True)}\n\n{note}\n"


def _csv(columns: list[Column], note: str) -> str:
    """A row a number, unrounded."""
    parts = [
        column.rows.assign(
            best=column.rows["model"].isin(column.best),
            worse=column.rows["model"].isin(column.worse),
        )
        for column in columns
    ]
    return str(pd.concat(parts).to_csv(index=False, lineterminator="\n"))


FORMS: Final[dict[str, Callable[[list[Column], str], str]]] = {
    "latex": _latex,
    "markdown": _markdown,
    "csv": _csv,
}
