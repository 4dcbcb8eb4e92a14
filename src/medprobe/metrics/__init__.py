"""The metrics. One file is one family: metrics that are computed together, from one kind of
prediction table.

To add a family `<name>`, write `metrics/<name>.py` with one class and its instance:

    class MyFamily(Scorer):
        METRICS = (Metric("my_metric", "my metric", "higher", 0.0, 1.0, "whose, and where"),)

        def score(self, predictions, benchmark, scoring): ...
        def paired(self, predictions, benchmark, scoring): ...

    SCORER = MyFamily()

A method names the family that scores its predictions (`METRIC = "<name>"`); the file of a
prediction table carries that name (`tables.metric_of_predictions`). Nothing else has to know of it.
"""

import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Final, Literal, Protocol

import pandas as pd

from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import Params, ScoreParams
from medprobe.core.tables import Metadata
from medprobe.metrics.intervals import Scale

FACTS: Final = "facts.csv"  # in a sample model's folder: how often the taught ones read each fact

# variant ("default" for "") -> subset -> relation or a mean of relations -> metric
# -> value and, where they are known, low, high, std, n
Scores = dict[str, dict[str, dict[str, dict[str, dict[str, float]]]]]


@dataclass(frozen=True)
class Metric:
    """A metric, and how to read its values."""

    name: str  # as in the tables
    title: str  # as on the page
    better: Literal["higher", "lower", "neither"]  # neither: a diagnostic
    low: float
    high: float
    source: str  # paper and section
    tested: bool = False  # compared by paired tests
    within_kind: bool = False  # another quantity for each kind of model: not compared across kinds
    turned_on: tuple[str, ...] = ()  # subsets where the other direction is better
    guessing: float | None = None  # what guessing has, where that is the same on any benchmark

    logarithmic: bool = False  # averaged and given intervals by its logarithm

    @property
    def share(self) -> bool:
        """Is it a share, to be shown in per cent?"""
        return (self.low, self.high) == (0.0, 1.0)

    @property
    def scale(self) -> Scale:
        """The scale of its intervals."""
        return "log" if self.logarithmic else "share" if self.share else "plain"

    def better_on(self, subset: str) -> Literal["higher", "lower", "neither"]:
        """Which direction is better on a subset, or on a part of it."""
        if self.better == "neither" or subset.partition("/")[0] not in self.turned_on:
            return self.better
        return "lower" if self.better == "higher" else "higher"


@dataclass(frozen=True)
class Scoring:
    """How predictions of one model become scores."""

    params: ScoreParams
    seed: int
    cluster: str = "query_id"  # `Metadata.cluster` of the benchmark
    facts: Path | None = None  # CSV: subject_cui, relation, object_cui, times (read in training)

    @classmethod
    def of(cls, model: Path, metadata: Metadata, params: Params) -> "Scoring":
        """The scoring of the model in this folder, which may hold facts, on a benchmark."""
        facts = model / FACTS
        there = facts if facts.is_file() else None
        return cls(params.score, params.seed, metadata.cluster, there)


class Scorer(Protocol):
    """A family of metrics: from a prediction table to scores, and to what paired tests compare.

    `benchmark` is the folder `outputs/benchmarks/<name>`. Variants do not look at each other: they
    may be scored all at once or one by one. The same tables and seed give the same
    numbers, in whatever order the rows are.
    """

    METRICS: ClassVar[tuple[Metric, ...]]  # the first stands for the family
    CONTRASTS: ClassVar[tuple[tuple[str, str], ...]] = ()  # subsets that a system is compared on

    def score(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> Scores:
        """All numbers, with intervals over what chance drew, the benchmark's clusters; replicates
        are averaged.

        A subset may be scored in parts, named `<subset>/<split>:<part>`. Raises BadInput for
        predictions of something else than this benchmark.
        """
        ...

    def paired(self, predictions: pd.DataFrame, benchmark: Path, scoring: Scoring) -> pd.DataFrame:
        """One row a query, or what stands for one: `variant, replicate, query_id, subset, cluster,
        weight`, and a column for each metric. Of one system, the rows of a variant and subset are
        averaged over replicates; between two systems those of equal `query_id` are compared, and
        all of a `cluster` are turned round together. The weighted mean is the `macro` score."""
        ...


def names() -> list[str]:
    """The families there are, in order.

    >>> "accuracy" in names()
    True
    """
    return [*_names(__path__[0])]


@cache
def _names(folder: str) -> list[str]:
    paths = Path(folder).glob("*.py")
    return sorted(p.stem for p in paths if "\nSCORER = " in p.read_text(encoding="utf-8"))


def find(name: str) -> Scorer:
    """The scorer of a family. Raises BadInput where there is none of that name.

    >>> [metric.title for metric in find("perplexity").METRICS][:1]
    ['perplexity']
    """
    if name not in (there := names()):
        raise BadInput("metrics", f"no family of metrics '{name}'{nearest(name, there)}")
    found: Scorer = vars(importlib.import_module(f"{__name__}.{name}"))["SCORER"]
    return found


def catalog() -> dict[str, Metric]:
    """All metrics by name: family after family, each in its own order.

    >>> catalog()["acc_at_1"].tested
    True
    """
    return {metric.name: metric for name in names() for metric in find(name).METRICS}
