"""A drawing with its caption, and questions to rows of the comparison that decide what is drawn."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from medprobe.core.tables import Metadata
from medprobe.metrics.results import sweep


@dataclass(frozen=True)
class Drawing:
    """A drawing, its name, and its caption, which is also what a screen reader says."""

    name: str
    svg: str
    caption: str

    @property
    def file(self) -> str:
        """The name of its file.

        >>> Drawing("medlama-contrastive:original-lengths", "<svg/>", "").file
        'medlama-contrastive-original-lengths.svg'
        """
        return re.sub(r"[^\w.-]+", "-", self.name) + ".svg"


def where(rows: pd.DataFrame, **values: str) -> pd.DataFrame:
    """The rows with these values, e.g. `where(rows, subset="full", relation="macro")`."""
    chosen = pd.Series(True, index=rows.index)
    for column, value in values.items():
        chosen &= rows[column] == value
    return rows[chosen]


def primary(rows: pd.DataFrame, metadata: Metadata) -> str:
    """The metric that the benchmark of these rows is judged by, or the first there is."""
    there = set(rows["metric"])
    return metadata.primary_metric if metadata.primary_metric in there else min(there)


def subsets(rows: pd.DataFrame, metadata: Metadata) -> list[str]:
    """The subsets of a benchmark's rows, without their parts; those with its main metric first, of
    these `full` or `target` first."""
    judged = set(rows.loc[rows["metric"] == primary(rows, metadata), "subset"])
    names = {name for name in rows["subset"] if "/" not in name}
    return sorted(names, key=lambda x: (x not in judged, x not in ("full", "target"), x))


def without_sweeps(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods' main variants and named ones, without the settings of sweeps."""
    return rows[rows["method"].map(sweep).isna()]


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
