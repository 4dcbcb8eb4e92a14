"""The kinds of drawings, as SVG text (see `svg.py` for their look).

In all of them a series has its name in the legend, and a mark its numbers for the pointer.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pandas as pd

from medprobe.metrics import catalog
from medprobe.report.figures.svg import SERIES, VALUES, drawing
from medprobe.report.numbers import format_number

# Colours that colour-blind readers tell apart, the first four Okabe and Ito's, with marks that
# differ too; further series have a colour again with another mark and a broken line. The second
# four are far from the first: models and their untaught twins often stand four places apart.
COLOURS: Final = [
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#884422", "#11AAEE", "#555566", "#AABB66"),
]
GREY: Final = "#555566"
MARKS: Final = ["o", "s", "^", "D", "v", "P", "X", "*"]
LINES: Final = ["-", "--", "-."]  # a dotted line is chance

ROW: Final = 0.16  # inches from one point of `intervals` to the next below it
LETTERS: Final = 22  # in one line of a label
ENTRY: Final = 60  # letters in one line of the legend
TICKS: Final = 60  # letters below an axis, side by side
WHOLE: Final = 4  # an axis that reaches so far needs no fractions
FONT: Final = 7  # points, of names next to points
LETTER: Final = 0.55 * FONT  # their width per letter, about
LINE: Final = 1.1 * FONT  # their height
MOST_STEPS: Final = 100  # a logarithmic axis that reaches so many times further has powers of ten


def label(metric: str, *about: str) -> str:
    """Return the label of an axis for a metric.

    >>> label("acc_at_1", "macro"), label("perplexity")
    ('acc@1, macro, per cent', 'perplexity')
    """
    definition = catalog()[metric]
    return ", ".join([definition.title, *about, *(["per cent"] if definition.share else [])])


def intervals(
    rows: pd.DataFrame,
    by: str,
    series: str,
    label: str,
    percent: bool,
    *,
    order: Sequence[str] = (),
    chance: float | None = None,
) -> str:
    """Draw points with intervals.

    Each value of the column `by` has a line, each of `series` a colour, and what `chance` reaches
    is a dotted line.
    """
    rows = _scaled(rows, percent)
    looks = _looks(rows[series], order)
    places, middles, height = _places(rows, by, series)
    with drawing(0.6 + ROW * height) as (axes, finish):
        for name, index in looks.items():
            part = rows[rows[series] == name]
            at = [places[line, name] for line in part[by]]
            colour, mark = _colour(index), _mark(index)
            ends = part["low"], part["high"]
            axes.hlines(at, *ends, color=colour, linewidth=1.6, gid=f"{SERIES}: {name}")
            style = {"markersize": 5, "label": wrapped(name, ENTRY), "gid": f"{VALUES}: {name}"}
            axes.plot(part["value"], at, mark, color=colour, **style)
        axes.set_yticks([*middles.values()], map(wrapped, middles))
        axes.set_ylim(height, 0)
        axes.grid(False, axis="y")
        axes.set_xlabel(label)
        axes.set_xlim(left=0)
        if chance is not None:
            level = 100 * chance if percent else chance
            axes.axvline(level, color=GREY, linestyle=":", linewidth=1.4)
        return finish(_texts(rows, by, series, percent))


def _places(
    rows: pd.DataFrame, by: str, series: str
) -> tuple[dict[tuple[str, str], float], dict[str, float], float]:
    """Return where points stand, one below another in steps of `ROW`.

    The result has the place of each line and series that there is, the middle of each line, and the
    height of all.
    """
    places: dict[tuple[str, str], float] = {}
    middles: dict[str, float] = {}
    height = 0.0
    for line, part in rows.groupby(by, sort=False):
        names = list(dict.fromkeys(part[series]))
        room = 0.8 + max(len(names), 1 + wrapped(line).count("\n"))
        first = height + (room - len(names) + 1) / 2
        places |= {(line, name): first + place for place, name in enumerate(names)}
        middles[line] = height + room / 2
        height += room
    return places, middles, height


def wrapped(text: str, letters: int = LETTERS) -> str:
    """A label in lines of so many letters, where it can be broken.

    >>> wrapped("answering:chat-0-shot-constrained")
    'answering:chat-0-shot-\\nconstrained'
    """
    lines = [""]
    for word in re.findall(r".+?(?:[ :·_-]+|$)", text):
        if lines[-1] and len(lines[-1] + word.rstrip()) > letters:
            lines.append("")
        lines[-1] += word
    return "\n".join(line.rstrip(" ") for line in lines)


def curves(
    rows: pd.DataFrame,
    x: str,
    series: str,
    labels: tuple[str, str],
    percent: bool,
    *,
    order: Sequence[str] = (),
) -> str:
    """A line for each value of `series` over the column `x`, its intervals as a band.

    Points without an interval have no band.
    """
    words = not pd.api.types.is_numeric_dtype(rows[x])
    ticks = list(dict.fromkeys(rows[x])) if words else []
    rows = rows.assign(has_band=rows["low"].notna())
    rows = _scaled(rows if words else rows.sort_values(x, kind="stable"), percent)
    with drawing(2.8) as (axes, finish):
        by_mean = rows.groupby(series, sort=False)["value"].mean().sort_values(ascending=False)
        for name, index in _looks(by_mean.index, order or [*rows[series]]).items():
            part = rows[rows[series] == name]
            at = [ticks.index(value) for value in part[x]] if words else part[x].tolist()
            colour, ends = _colour(index), (part["low"], part["high"])
            if (part["low"] < part["high"]).any():
                band = {"alpha": 0.16, "linewidth": 0, "gid": f"{SERIES}: {name}"}
                axes.fill_between(
                    at, *ends, where=part["has_band"].to_numpy(), color=colour, **band
                )
            line = LINES[index // len(COLOURS) % len(LINES)] + _mark(index)
            style = {"markersize": 5, "label": wrapped(name, ENTRY), "gid": f"{VALUES}: {name}"}
            axes.plot(at, part["value"], line, color=colour, **style)
        if words:
            letters = TICKS // len(ticks)
            axes.set_xticks(range(len(ticks)), [wrapped(tick, letters) for tick in ticks])
        elif rows[x].max() >= WHOLE or not (rows[x] % 1).any():
            axes.locator_params(axis="x", integer=True)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.set_ylim(bottom=0)
        return finish(_texts(rows, x, series, percent))


def points(
    rows: pd.DataFrame, x: str, y: str, series: str, labels: tuple[str, str], *, name: str
) -> str:
    """Draw one point per row with its name next to it, a colour for each series.

    `x` has a logarithmic scale.
    """
    from matplotlib.ticker import LogLocator

    rows = rows.dropna(subset=[x, y])
    texts, names = {}, []
    with drawing(3.6) as (axes, finish):
        for index, (kind, part) in enumerate(rows.groupby(series, sort=True)):
            style = {"markersize": 6, "label": wrapped(str(kind), ENTRY)}
            gid = f"{VALUES}: {kind}"
            axes.plot(part[x], part[y], _mark(index), color=_colour(index), gid=gid, **style)
            lines = []
            for row in part.to_dict("records"):
                names.append((str(row[name]), (row[x], row[y]), _colour(index)))
                at, value = (format_number(row[key]) for key in (x, y))
                lines.append(f"{row[name]}\n{labels[0]} {at}\n{labels[1]} {value}")
            texts[str(kind)] = lines
        axes.set_xscale("log", subs=[])
        steps = (1, 2, 5) if rows[x].max() < MOST_STEPS * rows[x].min() else (1,)
        axes.xaxis.set_major_locator(LogLocator(subs=steps))
        axes.xaxis.set_major_formatter("{x:,g}")
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.margins(x=0.2, y=0.12)
        _write_names(axes, names)
        return finish(texts)


def _write_names(axes: Any, names: Sequence[tuple[str, tuple[float, float], str]]) -> None:
    """Write names next to their points, on the first side where they cover no other name."""
    axes.autoscale_view()
    scale = 72 / axes.figure.dpi  # pixels to points
    boxes: list[tuple[float, float, float]] = []  # left, right and lower edge, in points
    for name, point, colour in names:
        across, up = (scale * edge for edge in axes.transData.transform(point))
        width = LETTER * len(name)
        for side, below in ((1, 3), (-1, 3), (1, -10), (-1, -10)):
            start = across + 5 if side > 0 else across - 5 - width
            box = (start, start + width, up + below)
            if not any(
                box[0] < b[1] and b[0] < box[1] and abs(box[2] - b[2]) < LINE for b in boxes
            ):
                break
        boxes.append(box)
        align = "left" if side > 0 else "right"
        about = {"textcoords": "offset points", "fontsize": FONT, "color": colour, "ha": align}
        axes.annotate(name, point, (5 * side, below), **about)


def stacked(shares: pd.DataFrame, label: str) -> str:
    """Draw one bar per row, named by its index, of the row's shares, one colour per column."""
    names = [wrapped(str(name)) for name in shares.index]
    rooms = pd.Series([max(2.25, 1.5 + name.count("\n")) for name in names])
    ends = rooms.cumsum()
    middles, height = ends - rooms / 2, ends.max()
    texts = {}
    with drawing(0.7 + ROW * height) as (axes, finish):
        start = 0 * shares.iloc[:, 0].to_numpy(float)
        for index, name in enumerate(shares):
            width = 100 * shares[name].to_numpy(float)
            bars = axes.barh(middles, width, 1.6, start, color=_colour(index), label=name)
            for bar in bars:
                bar.set_gid(f"{VALUES}: {name}")
            pairs = zip(shares.index, width, strict=True)
            texts[str(name)] = [f"{name}\n{line}\n{share:.1f}" for line, share in pairs]
            start = start + width
        axes.set_yticks(middles, names)
        axes.set_ylim(height, 0)
        axes.set_xlim(0, 100)
        axes.grid(False, axis="y")
        axes.set_xlabel(label)
        return finish(texts)


def _scaled(rows: pd.DataFrame, percent: bool) -> pd.DataFrame:
    """Return the rows that have a value, scaled if `percent`.

    A row without an interval has its value at both ends.
    """
    rows = rows.dropna(subset="value")
    value = rows["value"].astype(float)
    ends = {key: rows[key].astype(float).fillna(value) for key in ("low", "high")}
    scale = 100 if percent else 1
    return rows.assign(value=scale * value, **{key: scale * end for key, end in ends.items()})


def _texts(rows: pd.DataFrame, at: str, series: str, percent: bool) -> dict[str, list[str]]:
    """Return the texts of each series' marks: series, place, value and interval, one line each."""
    digits = ".1f" if percent else ".4g"

    def text(row: dict[str, Any]) -> str:
        value, low, high = (f"{row[key]:{digits}}" for key in ("value", "low", "high"))
        interval = f" [{low}, {high}]" if row["low"] < row["high"] else ""
        return f"{row[series]}\n{row[at]}\n{value}{interval}"

    groups = rows.groupby(series, sort=False)
    return {str(name): [*map(text, part.to_dict("records"))] for name, part in groups}


def _looks(names: Iterable[str], order: Sequence[str]) -> dict[str, int]:
    """Return the place of each series' colour and mark, in the order of the names.

    >>> _looks(["c", "b"], ["a", "b", "c"]), _looks(["c", "b"], [])
    ({'c': 2, 'b': 1}, {'c': 0, 'b': 1})
    """
    names = list(dict.fromkeys(names))
    places = {name: place for place, name in enumerate(dict.fromkeys([*order, *names]))}
    return {name: places[name] for name in names}


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _mark(index: int) -> str:
    return MARKS[(index + index // len(COLOURS)) % len(MARKS)]
