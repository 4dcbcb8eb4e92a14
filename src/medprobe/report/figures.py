"""Drawings as SVG text: the same numbers give the same bytes, and colours suit light and dark."""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd

# Okabe and Ito's colours, told apart by colour-blind readers, with marks that differ too.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B8860B", "#56B4E9", "#8C6BB1", "#7F7F7F"]
MARKS = ["o", "s", "^", "D", "v", "P", "X", "*"]
INK = "#123456"  # stands for the page's own text colour until the drawing is finished
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "medprobe",
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.18,
    "grid.color": INK,
    "legend.frameon": False,
}


def intervals(rows: pd.DataFrame, by: str, series: str, label: str, percent: bool) -> str:
    """Points with intervals: a line for each value of the column `by`, a colour for each of
    `series`. `rows` has the columns value, low, high."""
    lines, names = list(dict.fromkeys(rows[by])), list(dict.fromkeys(rows[series]))
    height = 0.9 + max(1, len(lines)) * (0.22 + 0.17 * len(names))
    with _drawing(height) as (axes, finish):
        scale = 100 if percent else 1
        for place, name in enumerate(names):
            part = rows[rows[series] == name]
            shift = (place - (len(names) - 1) / 2) * 0.7 / len(names)
            y = [lines.index(line) + shift for line in part[by]]
            value = scale * part["value"].to_numpy(float)
            low, high = (scale * part[edge].fillna(part["value"]) for edge in ("low", "high"))
            axes.errorbar(
                value,
                y,
                xerr=[(value - low).clip(lower=0), (high - value).clip(lower=0)],
                fmt=MARKS[place % len(MARKS)],
                color=COLOURS[place % len(COLOURS)],
                markersize=5,
                linewidth=1.6,
                label=name,
            )
        axes.set_yticks(range(len(lines)), [_spaced(line) for line in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.set_xlabel(label)
        axes.set_xlim(left=0)
        return finish(names)


def curves(rows: pd.DataFrame, x: str, series: str, labels: tuple[str, str], percent: bool) -> str:
    """A line for each value of `series` over the column `x`, its interval as a band.

    Where `x` holds words they are set out in the order of the rows.
    """
    names = list(dict.fromkeys(rows[series]))
    words = not pd.api.types.is_numeric_dtype(rows[x])
    places = list(dict.fromkeys(rows[x])) if words else []
    with _drawing(3.4) as (axes, finish):
        scale = 100 if percent else 1
        for place, name in enumerate(names):
            part = (
                rows[rows[series] == name] if words else rows[rows[series] == name].sort_values(x)
            )
            at = [places.index(value) for value in part[x]] if words else part[x].tolist()
            look: dict[str, Any] = {"color": COLOURS[place % len(COLOURS)]}
            mark = MARKS[place % len(MARKS)]
            axes.plot(at, scale * part["value"], marker=mark, markersize=5, label=name, **look)
            axes.fill_between(
                at, scale * part["low"], scale * part["high"], alpha=0.16, lw=0, **look
            )
        if words:
            axes.set_xticks(range(len(places)), places)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.set_ylim(bottom=0)
        return finish(names)


def points(rows: pd.DataFrame, x: str, y: str, series: str, labels: tuple[str, str]) -> str:
    """A point a row, its colour by the column `series`, its name (column `name`) beside it; `x` on
    a logarithmic scale."""
    names = list(dict.fromkeys(rows[series]))
    with _drawing(3.8) as (axes, finish):
        for place, name in enumerate(names):
            part = rows[rows[series] == name]
            look: dict[str, Any] = {"color": COLOURS[place % len(COLOURS)], "label": name}
            axes.scatter(part[x], part[y], marker=MARKS[place % len(MARKS)], s=36, **look)
        for row in rows.to_dict("records"):
            at = (row[x], row[y])
            axes.annotate(row["name"], at, xytext=(5, 3), textcoords="offset points", fontsize=8)
        axes.set_xscale("log")
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.margins(x=0.12)
        return finish(names)


def stacked(shares: pd.DataFrame, label: str) -> str:
    """A bar a row, named by the row's index, made of the row's shares, a colour a column."""
    names, lines = list(shares), list(shares.index)
    with _drawing(0.9 + 0.34 * max(1, len(lines))) as (axes, finish):
        left = 0 * shares.iloc[:, 0].to_numpy(float)
        for place, name in enumerate(names):
            width = 100 * shares[name].to_numpy(float)
            colour = COLOURS[place % len(COLOURS)]
            axes.barh(range(len(lines)), width, left=left, height=0.7, color=colour, label=name)
            left = left + width
        axes.set_yticks(range(len(lines)), [_spaced(line) for line in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.set_xlim(0, 100)
        axes.grid(False, axis="y")
        axes.set_xlabel(label)
        return finish(names)


@contextmanager
def _drawing(height: float) -> Iterator[tuple[Any, Callable[[list[str]], str]]]:
    """A set of axes to draw on, and the function that ends the drawing as SVG, given the names of
    its series."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.6, height), layout="constrained")

        def finish(names: list[str]) -> str:
            if len(names) > 1:
                columns = 80 // (max(map(len, names)) + 6)
                figure.legend(loc="outside upper left", ncols=min(len(names), max(columns, 1)))
            stream = io.StringIO()
            figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
            return plain(stream.getvalue())

        yield figure.subplots(), finish


def plain(svg: str) -> str:
    """matplotlib's SVG made fit to stand in a page: its size follows the page, its ink is the
    page's, and names of groups, which would repeat on the page, are left out."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = re.sub(
        r'(<svg[^>]*?) width="([\d.]+)pt" height="[\d.]+pt"', r'\1 width="\2"', svg, count=1
    )
    svg = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font: \1 system-ui, sans-serif", svg)
    return svg.replace(INK, "currentColor").strip()


def _spaced(name: object) -> str:
    return str(name).replace("_", " ")
