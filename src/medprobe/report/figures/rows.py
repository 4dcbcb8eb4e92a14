"""A drawing with its caption, and which rows and results are drawn."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pandas as pd

from medprobe.metrics.results import COMPARISON, OTHER_NAMES, is_control, sweep

KEYS = [name for name in COMPARISON[:6] if name != "method"]


@dataclass(frozen=True)
class Drawing:
    """A drawing, its name, and its caption, which is also what a screen reader says."""

    name: str
    plot: str  # of plots.py
    caption: str

    @property
    def svg(self) -> str:
        """The drawing as it is on the page and in its file."""
        return self.plot.replace("<svg ", f"<svg aria-label={quoteattr(self.caption)} ", 1)

    @property
    def file(self) -> str:
        """The name of its file.

        >>> Drawing("medlama-contrastive:original-lengths", "<svg/>", "").file
        'medlama-contrastive-original-lengths.svg'
        """
        return re.sub(r"[^\w.-]+", "-", self.name) + ".svg"

    def _repr_svg_(self) -> str:
        """How a notebook shows it."""
        return self.svg


def without_sweeps(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods' main variants and named ones, without the settings of sweeps."""
    return rows[rows["method"].map(sweep).isna()]


def without_controls(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods that ask a model, without the controls that know nothing."""
    return rows[~rows["method"].map(is_control).astype(bool)]


def comparable(rows: pd.DataFrame) -> pd.DataFrame:
    """Select rows of methods that rank all of a benchmark's own names.

    The settings of sweeps, controls, and variants that rank other names are left out.
    """
    rows = without_controls(without_sweeps(rows))
    if rows.empty:  # such a column has no texts to divide
        return rows
    return rows[~rows["method"].str.partition(":")[2].isin(OTHER_NAMES)]


def without_repeats(rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out variants of a method whose numbers are digit for digit those of another variant.

    Args:
        rows: of the comparison of one benchmark. Variants are compared in all of them.
    """
    firsts: dict[tuple[str, str], str] = {}
    numbers = rows.drop(columns="method").sort_values(KEYS, kind="stable")
    for method, of_method in numbers.groupby(rows["method"], sort=True):
        key = str(method).partition(":")[0], of_method.to_csv(index=False)
        firsts.setdefault(key, str(method))
    return rows[rows["method"].isin(firsts.values())]


def by_value(rows: pd.DataFrame, column: str, *, lower: bool) -> pd.DataFrame:
    """Sort rows by the best value of each name in a column, then by value, the best first."""
    values = rows.groupby(column)["value"].agg("min" if lower else "max")
    order = values.sort_values(ascending=lower, kind="stable").index
    rows = rows.sort_values("value", ascending=lower, kind="stable")
    return rows.sort_values(column, key=lambda names: names.map(order.get_loc), kind="stable")


def systems(paths: Iterable[Path]) -> dict[str, Path]:
    """Prediction tables of one benchmark by their models, and by their methods where these differ.

    >>> list(systems([Path("p/a/rank_change/context.parquet")]))
    ['a']
    """
    tables = sorted(paths)
    several = len({path.parent.name for path in tables}) > 1
    return {
        path.parent.parent.name + (f" · {path.parent.name}" if several else ""): path
        for path in tables
    }
