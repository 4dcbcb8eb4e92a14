"""Axes to draw on that end as SVG text: the same numbers give the same bytes, and colours suit
light and dark."""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

INK: Final = "#123456"  # stands for the page's own text colour until the drawing is finished
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


@contextmanager
def drawing(height: float) -> Iterator[tuple[Any, Callable[..., str]]]:
    """A set of axes to draw on, and the function that ends the drawing as SVG, given the names of
    its series and, where something must know the places of all others, what draws it last."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.6, height), layout="constrained")

        def finish(names: list[str], last: Callable[[], None] | None = None) -> str:
            if len(names) > 1:
                columns = 80 // (max(map(len, names)) + 6)
                figure.legend(loc="outside upper left", ncols=min(len(names), max(columns, 1)))
            if last is not None:
                figure.draw_without_rendering()
                last()
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
