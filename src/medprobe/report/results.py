"""All that the page shows, and small questions to it that several sections ask."""

from dataclasses import dataclass, field

import pandas as pd

from medprobe.benchmarks import Metadata
from medprobe.metrics.catalog import METRICS, Metric
from medprobe.report.papers import Paper
from medprobe.report.tables import sweep

CONTROLS = ["copy", "always-true"]  # variants that answer without a model
UNKNOWN = Metric("", "higher", 0.0, float("inf"), "")


@dataclass(frozen=True)
class Results:
    """The tables behind the page. `figures` fills as sections draw: name -> SVG."""

    comparison: pd.DataFrame
    significance: pd.DataFrame
    benchmarks: dict[str, Metadata]
    statistics: dict[str, pd.DataFrame] = field(default_factory=dict)  # by benchmark
    tokens: dict[str, pd.DataFrame] = field(default_factory=dict)  # answers, by benchmark
    published: dict[str, str] = field(default_factory=dict)  # model -> its name in the papers
    analyses: dict[str, pd.DataFrame] = field(default_factory=dict)  # report/template_free.py
    papers: list[Paper] = field(default_factory=list)
    confidence: float = 0.95
    figures: dict[str, str] = field(default_factory=dict)

    def rows(self, benchmark: str, **where: str) -> pd.DataFrame:
        """Rows of the comparison, e.g. `rows("medlama", subset="full", relation="macro")`."""
        chosen = self.comparison["benchmark"] == benchmark
        for column, value in where.items():
            chosen &= self.comparison[column] == value
        return self.comparison[chosen]

    def subsets(self, benchmark: str) -> list[str]:
        """The benchmark's subsets, without their parts; those with its main metric first, of these
        `full` or `target` first."""
        rows = self.rows(benchmark)
        judged = set(rows.loc[rows["metric"] == self.primary(benchmark), "subset"])
        names = {name for name in rows["subset"] if "/" not in name}
        return sorted(names, key=lambda x: (x not in judged, x not in ("full", "target"), x))

    def primary(self, benchmark: str) -> str:
        """The metric that the benchmark is judged by, or the first there is."""
        named = self.benchmarks[benchmark].primary_metric
        there = set(self.rows(benchmark)["metric"])
        return named if named in there else min(there)


def metric_of(name: str) -> Metric:
    """The catalogue's entry, or one that says the name only."""
    return METRICS.get(name, Metric(name, "higher", 0.0, float("inf"), ""))


def shown(metric: str, value: float) -> str:
    """A value as people read it: shares in per cent, one digit after the point.

    >>> shown("acc_at_1", 0.2031), shown("perplexity", 12.345)
    ('20.3 %', '12.35')
    """
    if pd.isna(value):
        return "–"
    return f"{100 * value:.1f} %" if metric_of(metric).share else f"{value:.4g}"


def overlap(a: pd.Series, b: pd.Series) -> bool:
    """Do the intervals of two rows of the comparison share a value?"""
    return bool(a["low"] <= b["high"] and b["low"] <= a["high"])


def without_controls(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods that ask a model, without the controls that know nothing."""
    return rows[~rows["method"].str.rpartition(":")[2].isin(CONTROLS)]


def without_sweeps(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods' main variants and named ones, without the settings of sweeps."""
    return rows[rows["method"].map(sweep).isna()]
