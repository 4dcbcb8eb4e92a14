"""Drawings for papers: what stands where."""

import math
from itertools import combinations

import pandas as pd

from medprobe.figures import plots
from medprobe.figures.svg import drawing

CLOSE = [(100 + 9 * n, 20 + n % 3, f"a data set's name {n}") for n in range(9)]
ALONE = [(100, 20, "one"), (10_000, 40, "at the right edge")]


def placed(points: list[tuple[float, float, str]]) -> tuple[list, list]:
    """The boxes of names, and the middles of points, in pixels."""
    with drawing(3.8) as (axes, finish):
        axes.scatter([x for x, _, _ in points], [y for _, y, _ in points], label="one")
        axes.set_xscale("log")
        finish(["one", "another"], lambda: plots._name(axes, points))
        boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
        return boxes, list(axes.transData.transform([point[:2] for point in points]))


def test_names_of_close_points_overlap_neither_names_nor_points() -> None:
    boxes, middles = placed(CLOSE)
    assert len(boxes) == len(CLOSE)
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    assert not any(box.contains(*middle) for box in boxes for middle in middles)


def test_a_name_stands_right_of_its_point_where_there_is_room() -> None:
    [first, last], [one, other] = placed(ALONE)
    assert first.x0 > one[0] and math.isclose((first.y0 + first.y1) / 2, one[1], abs_tol=2)
    assert last.x1 < other[0]


def test_every_point_has_its_name_in_the_file() -> None:
    rows = pd.DataFrame(CLOSE, columns=["x", "y", "name"]).assign(kind="template-based")
    svg = plots.points(rows, "x", "y", "kind", ("perplexity", "acc@1")).svg
    assert all(name.replace("'", "&#x27;") in svg or name in svg for _, _, name in CLOSE)
