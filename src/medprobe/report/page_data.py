"""All that the page shows, as finished tables, and small questions to it that sections ask."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from medprobe.core import places
from medprobe.core.papers import built_benchmark
from medprobe.core.params import Params
from medprobe.core.tables import Metadata
from medprobe.metrics import catalog
from medprobe.metrics import results as questions
from medprobe.metrics.significance import SIGNIFICANCE

HALF = "hypothesis-only"  # ends variants that do not see what is asked about: controls too


Overlap = tuple[int, int, int, int]
"""How many queries only the first of two models, both, only the second and neither have right."""


@dataclass(frozen=True)
class QueryPage:
    """What is known of the query page of a benchmark.

    Attributes:
        exists: whether there is one.
        first_query: an identifier of its first query, for examples of commands; or empty.
        unlisted: the methods that are not on it.
    """

    exists: bool
    first_query: str
    unlisted: tuple[str, ...]


@dataclass(frozen=True)
class PageData:
    """The tables behind the page.

    `metrics/results.py` says what the columns of a comparison and of tests of significance are.
    """

    comparison: pd.DataFrame
    significance: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=SIGNIFICANCE))
    baselines: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=questions.COMPARISON)
    )
    benchmarks: dict[str, Metadata] = field(default_factory=dict)  # in the order of the page
    builders: dict[str, str] = field(default_factory=dict)  # benchmark -> its builder
    statistics: dict[str, pd.DataFrame] = field(default_factory=dict)  # by benchmark
    left_out: dict[str, pd.DataFrame] = field(default_factory=dict)  # by rule, by benchmark
    tokens: dict[str, pd.DataFrame] = field(default_factory=dict)  # answers, by benchmark
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)  # of sections, by file name
    params: Params = field(default_factory=Params)
    paths: dict[str, list[Path]] = field(default_factory=dict)  # prediction tables, by benchmark
    published: dict[str, str] = field(default_factory=dict)  # model -> its name in the papers
    twins: dict[str, str] = field(default_factory=dict)  # untaught model -> its taught twin
    invented: frozenset[str] = frozenset()  # models that were trained on the sample world
    query_pages: dict[str, QueryPage] = field(default_factory=dict)  # by benchmark
    notes: dict[str, list[str]] = field(default_factory=dict)  # on how models were asked
    main: dict[tuple[str, str], str] = field(default_factory=dict)  # benchmark, model -> method
    # of the main results of two models, by benchmark
    overlaps: dict[str, dict[tuple[str, str], Overlap]] = field(default_factory=dict)
    confidence: float = 0.95

    @cached_property
    def models(self) -> list[str]:
        """The names of all models."""
        return sorted(self.comparison["model"].unique())

    def systems(self, benchmark: str) -> dict[str, Path]:
        """The prediction tables of a benchmark, by the name of the system."""
        return systems(self.paths.get(benchmark, []))

    def folder(self, benchmark: str) -> Path:
        """The folder of a benchmark."""
        return places.BENCHMARKS / benchmark

    @cached_property
    def _comparisons(self) -> dict[str, pd.DataFrame]:
        return _by_benchmark(self.comparison)

    @cached_property
    def _tests(self) -> dict[str, pd.DataFrame]:
        return _by_benchmark(self.significance)

    def rows(self, benchmark: str, **where: str) -> pd.DataFrame:
        """Rows of the comparison, e.g. `rows("medlama", subset="full", relation="macro")`."""
        rows = self._comparisons.get(benchmark, self.comparison.head(0))
        return questions.select(rows, **where)

    def main_systems(self, benchmark: str) -> set[tuple[str, str]]:
        """The models and methods of the main results on a benchmark."""
        return {(model, method) for (of, model), method in self.main.items() if of == benchmark}

    def main_rows(self, benchmark: str) -> pd.DataFrame:
        """The main results on a benchmark, the best first."""
        subset, name = self.main_subset(benchmark), self.primary(benchmark)
        rows = self.rows(benchmark, subset=subset, relation="macro", metric=name)
        rows = questions.select_systems(rows.dropna(subset="value"), self.main_systems(benchmark))
        lower = catalog()[name].better_on(subset) == "lower"
        return rows.sort_values(["value", "model"], ascending=[lower, True])

    def tests(self, benchmark: str, subset: str, metric: str) -> pd.DataFrame:
        """The paired tests of a metric on a subset, of means over relations."""
        return questions.select(self.all_tests(benchmark, subset, metric), relation="macro")

    def all_tests(self, benchmark: str, subset: str, metric: str) -> pd.DataFrame:
        """The same, and the differences on single relations."""
        rows = self._tests.get(benchmark, self.significance.head(0))
        return questions.select(rows, subset=subset, metric=metric)

    def primary(self, benchmark: str) -> str:
        """The metric that the benchmark is judged by, or the first there is."""
        return questions.primary_metric(self.rows(benchmark), self.benchmarks[benchmark])

    def printed(self, benchmark: str) -> str:
        """What the benchmark goes by in the papers."""
        return built_benchmark(self.builders.get(benchmark, ""))

    def subsets(self, benchmark: str) -> list[str]:
        """Return the benchmark's subsets, without their parts.

        Those with its main metric come first, and of these `full` or `target`.
        """
        return questions.subsets(self.rows(benchmark), self.benchmarks[benchmark])

    def main_subset(self, benchmark: str) -> str:
        """The first of the benchmark's subsets."""
        return self.subsets(benchmark)[0]


def _by_benchmark(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {str(name): rows for name, rows in table.groupby("benchmark", sort=False)}


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
