"""Colours and marks of drawings, as readers see them whose eyes lack one kind of cone."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from medprobe.report.figures import plots

# Machado, Oliveira and Fernandes 2009, table 1, severity 1.0, on linear RGB.
EYES = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array(  # of linear sRGB, IEC 61966-2-1
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = XYZ.sum(axis=1)
APART = 12.0  # in CIELAB; some 2.3 are just seen side by side, a legend needs more
PAPERS = ("#ffffff", "#12171d")  # of the page, light and dark


def linear(colour: str) -> np.ndarray:
    """Linear RGB of `#rrggbb`."""
    rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB of linear RGB."""
    share = XYZ @ rgb.clip(0, 1) / WHITE
    f = np.where(share > (6 / 29) ** 3, np.cbrt(share), share / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eyes", EYES)
def test_colours_are_distinguishable(eyes: str) -> None:
    seen = {colour: lab(np.array(EYES[eyes]) @ linear(colour)) for colour in plots.COLOURS}
    for first_colour, other in combinations(plots.COLOURS, 2):
        assert np.linalg.norm(seen[first_colour] - seen[other]) > APART, (first_colour, other)


def test_colours_stand_out_from_the_page_light_and_dark() -> None:
    for paper in PAPERS:
        for colour in plots.COLOURS:
            low, high = sorted((XYZ @ linear(shade))[1] for shade in (paper, colour))
            assert (high + 0.05) / (low + 0.05) > 2, (paper, colour)


def test_sixteen_series_look_different() -> None:
    looks = {(plots._colour(at), plots._mark(at)) for at in range(16)}
    assert len(looks) == 16
    rows = [(f"model {at}", x, 0.5, 0.4, 0.6) for at in range(16) for x in (1, 2)]
    table = pd.DataFrame(rows, columns=["model", "x", "value", "low", "high"])
    drawn = plots.curves(table, "x", "model", ("x", "y"), False)
    assert "stroke-dasharray" in drawn
