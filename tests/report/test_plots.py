"""Drawings for the page and for papers: what stands where, and what they say."""

import re
from xml.etree import ElementTree

import pandas as pd

from medprobe.report.figures import plots


def test_every_point_has_its_name_and_numbers_in_the_file() -> None:
    points = [(100 + 9 * n, 20 + n % 3, f"a data set {n}") for n in range(9)]
    rows = pd.DataFrame(points, columns=["x", "y", "name"])
    rows["kind"] = ["first", "second", "second"] * 3
    svg = plots.points(rows, "x", "y", "kind", ("perplexity", "acc@1"), name="name")
    for x, y, name in points:
        assert f"{name}\nperplexity {x}\nacc@1 {y}" in titles(svg)
        assert f">{name}</text>" in svg  # next to its point
    assert re.findall('data-series="([^"]*)"', svg) == ["first", "second"]


def test_a_long_logarithmic_axis_has_powers_of_ten_alone() -> None:
    """Their labels do not overlap."""
    for highest, words in ((190, {"100", "200"}), (12000, {"100", "1,000", "10,000"})):
        rows = pd.DataFrame({"x": [90, highest], "y": [1, 2], "name": ["a", "b"]})
        svg = plots.points(rows, "x", "y", "name", ("perplexity", "acc@1"), name="name")
        labels = {
            text for text in re.findall(r">([\d,]+)</text>", svg) if int(text.replace(",", "")) > 60
        }
        assert labels == words


ROWS = pd.DataFrame(
    [
        ("a", "first method", 0.5, 0.25, 0.75),
        ("b <c>", "first method", 0.125, 0.125, 0.125),
        ("a", "second", float("nan"), float("nan"), float("nan")),
    ],
    columns=["model", "method", "value", "low", "high"],
)
MARK_TEXTS = ["a\nfirst method\n50.0 [25.0, 75.0]", "b <c>\nfirst method\n12.5"]


def titles(svg: str) -> list[str]:
    """What the marks of a drawing say."""
    root = ElementTree.fromstring(svg)
    return [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]


def test_each_mark_says_its_numbers() -> None:
    assert titles(plots.intervals(ROWS, "method", "model", "acc@1", True)) == MARK_TEXTS
    assert titles(plots.curves(ROWS, "method", "model", ("method", "acc@1"), True)) == MARK_TEXTS
    shares = pd.DataFrame({"rises": [0.25, 0.5], "stays": [0.75, 0.5]}, index=["a", "b"])
    bars = ["rises\na\n25.0", "rises\nb\n50.0", "stays\na\n75.0", "stays\nb\n50.0"]
    assert titles(plots.stacked(shares, "share")) == bars


def test_a_series_can_be_chosen_on_the_page() -> None:
    svg = plots.intervals(ROWS, "method", "model", "acc@1", True)
    assert re.findall('data-series="([^"]*)"', svg) == ["a", "a", "b &lt;c&gt;", "b &lt;c&gt;"]
