"""Axes to draw on that end as SVG text.

The same numbers give the same bytes, and colours suit light and dark.
"""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any, Final

from lxml import etree

LEGEND: Final = 0.2  # inches: a line of it
LETTERS: Final = 64  # in a line of the legend
SWATCH: Final = 7  # letters that the colour of a series takes in it
WIDTH: Final = 5.6  # inches: the text stays readable where a phone shows the whole drawing
INK: Final = "#123456"  # stands for the page's own text colour until the drawing is finished
SERIES: Final = "series"  # begins the identifier of what belongs to a series: bands, bars
VALUES: Final = "values"  # begins that of its marks, each of which has a text
SIZE: Final = 11  # of letters
COMMON: Final = (f"font-size: {SIZE}px", "font-family", f"fill: {INK}")  # begin what all texts have
ROOT: Final = {
    "role": "img",
    "font-family": "system-ui, sans-serif",
    "font-size": str(SIZE),
    "fill": "currentColor",
}
TITLE: Final = "{http://www.w3.org/2000/svg}title"
LINE: Final = "fill:none;stroke:"  # begins the style of a line
PLAIN: Final = "plain"  # a group that says nothing
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "medprobe",
    "font.family": "sans-serif",
    "font.size": SIZE,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "legend.handlelength": 1.2,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.18,
    "grid.color": INK,
}


@contextmanager
def drawing(height: float) -> Iterator[tuple[Any, Callable[..., str]]]:
    """Begin a drawing: yield matplotlib's axes, and a function that finishes it as SVG.

    Example:
        >>> with drawing(2.8) as (axes, finish):
        ...     _ = axes.plot([1, 2], [30, 50], "o", gid="values: taught")
        ...     svg = finish({"taught": ["acc@1 30 %", "acc@1 50 %"]})
        >>> svg[:4]
        '<svg'
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")

        def finish(values: Mapping[str, Sequence[str]]) -> str:
            if len(values) > 1:
                _add_legend(figure, height, [*values])
            stream = io.StringIO()
            figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
            return compact(stream.getvalue(), values)

        yield figure.subplots(), finish


def _add_legend(figure: Any, height: float, names: Sequence[str]) -> None:
    """Add a legend above the axes, and make the figure higher by its lines."""
    columns = min(len(names), max(1, LETTERS // (max(map(len, names)) + SWATCH)))
    legend = figure.legend(loc="outside upper left", ncols=columns)
    breaks = sum(text.get_text().count("\n") for text in legend.get_texts())
    figure.set_figheight(height + LEGEND * (ceil(len(names) / columns) + breaks))


def compact(svg: str, values: Mapping[str, Sequence[str]]) -> str:
    """Make matplotlib's SVG small, and fit for a page: ink is the page's text colour.

    Args:
        svg: what matplotlib wrote. What belongs to a series has the identifier SERIES or VALUES
            and its name.
        values: name of a series -> a text for each of its marks, shown when the pointer is on it.
    """
    parser = etree.XMLParser(remove_blank_text=True, remove_comments=True)
    root = etree.fromstring(svg.encode(), parser)
    etree.strip_elements(root, "{*}metadata", "{*}style", "{*}clipPath")
    etree.strip_attributes(root, "clip-path", "height", "version")
    for element in [*root.iter("{*}path", "{*}use", "{*}text")]:
        _shorten(element)
    texts = {name: iter(marks) for name, marks in values.items()}
    for group in [*root.iter("{*}g")]:
        kind, _, name = group.attrib.pop("id", "").partition(": ")
        if kind not in (SERIES, VALUES):
            group.tag = group.tag if group.attrib else PLAIN
            continue
        group.set("data-series", name)
        for mark in group.findall(".//{*}use") or group.findall("{*}path"):
            group.set("style", mark.attrib.pop("style"))
            if kind == VALUES:
                etree.SubElement(mark, TITLE).text = next(texts[name])
    etree.strip_tags(root, PLAIN)
    for parent in (root, *root.iter("{*}g")):
        _join(parent)
    root.attrib.update({**ROOT, "width": root.get("width").removesuffix("pt")})
    return etree.tostring(root, encoding="unicode").replace(INK, "currentColor")


def _shorten(element: Any) -> None:
    """Leave out digits, turns by nothing, and style that the whole drawing or a mark's use has."""
    for key in {"d", "x", "y", "transform"} & {*element.keys()}:
        value = re.sub(r"-?\d+\.\d+", lambda long: _rounded(float(long[0])), element.get(key))
        element.set(key, " ".join(value.split()))
    if element.get("transform", "").startswith(("rotate(-0 ", "rotate(0 ")):
        del element.attrib["transform"]
    style = [
        declaration for declaration in element.attrib.pop("style", "").split("; ") if declaration
    ]
    style = [declaration for declaration in style if not declaration.startswith(COMMON)]
    if style == ["fill: none"]:
        element.getparent().remove(element)
    elif style and "id" not in element.attrib:
        element.set("style", ";".join(style).replace(": ", ":"))


def _rounded(number: float) -> str:
    """A place, to a tenth of a point; a mark's outline to a hundredth.

    >>> _rounded(163.78024), _rounded(2.236584), _rounded(-2.0)
    ('163.8', '2.24', '-2')
    """
    return f"{round(number, 1 if abs(number) >= 10 else 2):g}"


def _join(parent: Any) -> None:
    """Make one path of adjacent lines that look alike, such as those of a grid."""
    # Each line of a grid would be an element of its own.
    first: dict[str, Any] = {}
    for path in parent.findall("{*}path"):
        style = path.get("style", parent.get("style", ""))
        if len(path) or not style.startswith(LINE):
            continue
        if style in first:
            first[style].set("d", f"{first[style].get('d')} {path.get('d')}")
            parent.remove(path)
        first.setdefault(style, path)
