"""The kinds of drawings: as SVG text (see `svg.py` for their look), and as the numbers that the
page draws them from."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import pandas as pd

from medprobe.figures.svg import drawing
from medprobe.metrics import catalog

# Colours that colour-blind readers tell apart, the first four Okabe and Ito's, with marks that
# differ too; further series have a colour again with another mark and a broken line.
COLOURS: Final = [
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#11AAEE", "#884422", "#AABB66", "#555566"),
]
MARKS: Final = ["o", "s", "^", "D", "v", "P", "X", "*"]
LINES: Final = ["-", "--", ":"]

# Where a point's name may stand, as in report/page/charts.js: to its right, left, above, below,
# and at its corners; so many points away from it, and the point's own half width.
SIDES: Final = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]
FAR: Final = [6, 14, 24, 36]
POINT: Final = 4


@dataclass(frozen=True)
class Plot:
    """A plot as SVG, and the numbers that `report/page/charts.js` draws it from: its `kind` (the
    function below that made it), what its axes say (`x`, `y`), its `series`, each a name and
    points."""

    svg: str
    numbers: dict[str, Any]


def label(metric: str, *about: str) -> str:
    """What an axis says of a metric.

    >>> label("acc_at_1", "macro"), label("perplexity")
    ('acc@1, macro, per cent', 'perplexity')
    """
    one = catalog()[metric]
    return ", ".join([one.title, *about, *(["per cent"] if one.share else [])])


def intervals(
    rows: pd.DataFrame,
    by: str,
    series: str,
    label: str,
    percent: bool,
    *,
    chance: float | None = None,
) -> Plot:
    """Points with intervals: a line for each value of the column `by`, a colour for each of
    `series`, and a dotted line at what `chance` reaches. `rows` has the columns value, low, high.
    """
    lines, names = list(dict.fromkeys(rows[by])), list(dict.fromkeys(rows[series]))
    scale = 100 if percent else 1
    with drawing(0.9 + max(1, len(lines)) * (0.22 + 0.17 * len(names))) as (axes, finish):
        for index, name in enumerate(names):
            part = rows[rows[series] == name]
            shift = (index - (len(names) - 1) / 2) * 0.7 / len(names)
            value = scale * part["value"].to_numpy(float)
            low, high = (scale * part[edge].fillna(part["value"]) for edge in ("low", "high"))
            axes.errorbar(
                value,
                [lines.index(line) + shift for line in part[by]],
                xerr=[(value - low).clip(lower=0), (high - value).clip(lower=0)],
                fmt=_mark(index),
                color=_colour(index),
                markersize=5,
                linewidth=1.6,
                label=name,
            )
        axes.set_yticks(range(len(lines)), lines)
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.set_xlabel(label)
        axes.set_xlim(left=0)
        if chance is not None:
            axes.axvline(scale * chance, color=_colour(7), linestyle=":", linewidth=1.4)
        numbers = {
            "kind": "intervals",
            "x": label,
            "lines": lines,
            "series": _series(rows, by, series, scale),
            "chance": None if chance is None else _number(scale * chance),
        }
        return Plot(finish(names), numbers)


def curves(rows: pd.DataFrame, x: str, series: str, labels: tuple[str, str], percent: bool) -> Plot:
    """A line for each value of `series` over the column `x`, its interval as a band; `labels` are
    those of x and y. `rows` has the columns value, low, high.

    Where `x` holds words they are set out in the order of the rows.
    """
    names = list(dict.fromkeys(rows[series]))
    words = not pd.api.types.is_numeric_dtype(rows[x])
    ticks = list(dict.fromkeys(rows[x])) if words else []
    scale = 100 if percent else 1
    with drawing(3.4) as (axes, finish):
        for index, name in enumerate(names):
            part = rows[rows[series] == name]
            part = part if words else part.sort_values(x)
            at = [ticks.index(value) for value in part[x]] if words else part[x].tolist()
            value, low, high = (scale * part[column] for column in ("value", "low", "high"))
            colour = _colour(index)
            line = LINES[index // len(COLOURS) % len(LINES)]
            mark = {"marker": _mark(index), "markersize": 5}
            axes.plot(at, value, linestyle=line, label=name, color=colour, **mark)
            axes.fill_between(at, low, high, alpha=0.16, lw=0, color=colour)
        if words:
            axes.set_xticks(range(len(ticks)), ticks)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.set_ylim(bottom=0)
        ordered = rows if words else rows.sort_values(x, kind="stable")
        numbers = {
            "kind": "curves",
            **dict(zip("xy", labels, strict=True)),
            "lines": ticks or None,
            "series": _series(ordered, x, series, scale),
        }
        return Plot(finish(names), numbers)


def points(rows: pd.DataFrame, x: str, y: str, series: str, labels: tuple[str, str]) -> Plot:
    """A point a row, its colour by the column `series`, its name (column `name`) beside it; `x` on
    a logarithmic scale."""
    names = list(dict.fromkeys(rows[series]))
    with drawing(3.8) as (axes, finish):
        for index, name in enumerate(names):
            part = rows[rows[series] == name]
            mark, colour = _mark(index), _colour(index)
            axes.scatter(part[x], part[y], marker=mark, s=36, color=colour, label=name)
        axes.set_xscale("log")
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.margins(x=0.12)
        found = [
            [name, [[_number(row[x]), _number(row[y]), row["name"]] for row in part]]
            for name in names
            if (part := rows[rows[series] == name].to_dict("records"))
        ]
        numbers = {"kind": "points", **dict(zip("xy", labels, strict=True)), "series": found}
        named = [(row[x], row[y], row["name"]) for row in rows.to_dict("records")]
        return Plot(finish(names, lambda: _name(axes, named)), numbers)


def _name(axes: Any, points: list[tuple[float, float, str]]) -> None:
    """Put each point's name in the nearest place beside it where it meets no point and no other
    name, with a line to it where that is far; the axes are laid out before. A name for which there
    is no such place is left out."""
    from matplotlib.transforms import Bbox

    places = axes.transData.transform([point[:2] for point in points])
    reach = POINT * axes.figure.dpi / 72
    taken = [Bbox([place - reach, place + reach]) for place in places]
    for x, y, name in points:
        for far, (right, up) in product(FAR, SIDES):
            place = {"xytext": (far * right, far * up), "textcoords": "offset points"}
            text = axes.annotate(
                name,
                (x, y),
                fontsize=8,
                ha={1: "left", 0: "center", -1: "right"}[right],
                va={1: "bottom", 0: "center", -1: "top"}[up],
                **place,
            )
            box = text.get_window_extent()
            if axes.bbox.x0 < box.x0 and box.x1 < axes.bbox.x1 and not box.count_overlaps(taken):
                taken.append(box)
                if far > FAR[0]:
                    axes.annotate("", (x, y), arrowprops={"arrowstyle": "-", "lw": 0.5}, **place)
                break
            text.remove()


def stacked(shares: pd.DataFrame, label: str) -> Plot:
    """A bar a row, named by the row's index, made of the row's shares, a colour a column."""
    names, lines = list(shares), list(shares.index)
    with drawing(0.9 + 0.34 * max(1, len(lines))) as (axes, finish):
        left = 0 * shares.iloc[:, 0].to_numpy(float)
        for index, name in enumerate(names):
            width = 100 * shares[name].to_numpy(float)
            colour = _colour(index)
            axes.barh(range(len(lines)), width, left=left, height=0.7, color=colour, label=name)
            left = left + width
        axes.set_yticks(range(len(lines)), lines)
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.set_xlim(0, 100)
        axes.grid(False, axis="y")
        axes.set_xlabel(label)
        found = [
            [name, [[line, _number(100 * share)] for line, share in shares[name].items()]]
            for name in names
        ]
        numbers = {"kind": "stacked", "x": label, "lines": lines, "series": found}
        return Plot(finish(names), numbers)


def _series(rows: pd.DataFrame, at: str, series: str, scale: float) -> list[list[Any]]:
    """`[name, [[at, value, low, high], …]]` for each value of the column `series`."""
    return [
        [
            str(name),
            [
                [row[at], *_numbers(scale * row[key] for key in ("value", "low", "high"))]
                for row in part.astype({"low": float, "high": float}).to_dict("records")
            ],
        ]
        for name, part in rows.groupby(series, sort=False)
    ]


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float) -> float | None:
    """Four significant digits: more than a screen shows."""
    return None if pd.isna(value) else float(f"{value:.4g}")


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _mark(index: int) -> str:
    return MARKS[(index + index // len(COLOURS)) % len(MARKS)]
