"""The metrics, one scorer per file.

The metrics of a scorer are computed together, from one kind of prediction table. To add a scorer
`<name>`, write `metrics/<name>.py` with one class and its instance:

    class MyScorer(Scorer):
        METRICS = (Metric("my_metric", "my metric", "higher", 0.0, 1.0, "whose, and where"),)

        def score(self, predictions, tables, scoring): ...
        def paired(self, predictions, tables, scoring): ...

    SCORER = MyScorer()

A method names the scorer of its predictions (`METRIC = "<name>"`), and the file of a
prediction table records that name (`tables.metric_of_predictions`). A scorer with
`ALSO_OF = ("accuracy",)` scores the tables of that scorer too: all rankings of answers, whatever
the method. Nothing else has to change. The file can be in the folder `metrics` of any place of
plugins (`core.plugins`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Literal, Protocol

import pandas as pd

from medprobe.core import plugins
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import Params, ScoreParams
from medprobe.core.tables import BenchmarkTables, Metadata
from medprobe.metrics.statistics import Scale, exchanges

FACTS: Final = "facts.csv"  # in a sample model's folder: how often the taught models read each fact

# variant ("default" for "") -> subset -> relation or a mean of relations -> metric
# -> value and, if known, low, high, std, n
Scores = dict[str, dict[str, dict[str, dict[str, dict[str, float]]]]]


@dataclass(frozen=True)
class Metric:
    """A metric, and how to read its values.

    Attributes:
        name: in the tables, such as `acc_at_1`.
        title: in the report, such as `acc@1`.
        better: the direction of better values; `neither` for a diagnostic.
        low: the smallest possible value.
        high: the largest possible value.
        source: paper and section that define it.
        tested: whether paired tests compare systems by it.
        within_kind: whether it is comparable only between models of one kind.
        turned_on: subsets on which the other direction is better.
        guessing: the value that guessing reaches, if it is the same on every benchmark.
        logarithmic: whether means and intervals are taken of its logarithm.
    """

    name: str
    title: str
    better: Literal["higher", "lower", "neither"]
    low: float
    high: float
    source: str
    tested: bool = False
    within_kind: bool = False
    turned_on: tuple[str, ...] = ()
    guessing: float | None = None
    logarithmic: bool = False

    @property
    def share(self) -> bool:
        """Whether it is a share."""
        return (self.low, self.high) == (0.0, 1.0)

    @property
    def in_per_cent(self) -> bool:
        """Whether it is a share or a difference of shares, which are printed in per cent."""
        return self.high == 1.0 and self.low in (0.0, -1.0)

    @property
    def scale(self) -> Scale:
        """The scale of its confidence intervals."""
        return "log" if self.logarithmic else "share" if self.share else "plain"

    def better_on(self, subset: str) -> Literal["higher", "lower", "neither"]:
        """Return the direction of better values on a subset.

        Args:
            subset: a subset, or a part of one such as `target/kind:real`.

        Example:
            >>> catalog()["understand"].better_on("negative")
            'lower'
        """
        if self.better == "neither" or subset.partition("/")[0] not in self.turned_on:
            return self.better
        return "lower" if self.better == "higher" else "higher"


@dataclass(frozen=True)
class Scoring:
    """How the predictions of one model are scored.

    Attributes:
        params: section `score` of `params.yaml`.
        seed: of the bootstrap.
        cluster: column whose equal values are resampled together (`Metadata.cluster`).
        facts: CSV file with the columns `subject_cui, relation, object_cui, times`, where `times`
            is how often the model read the fact in training; None if unknown.
        benchmarks: names of the project's benchmarks, some of which may hold experts' ratings of
            the predictions.
        tests: how many main results a project has, which are tested against their controls.
    """

    params: ScoreParams
    seed: int
    cluster: str = "query_id"
    facts: Path | None = None
    benchmarks: frozenset[str] = frozenset()
    tests: int = 1

    @classmethod
    def for_model(cls, model: Path, metadata: Metadata, params: Params) -> "Scoring":
        """Return the scoring of a model on a benchmark.

        Args:
            model: its folder, which holds the file `FACTS` for a sample model.
            metadata: of the benchmark. Facts of one that is not of the sample world are unknown.
            params: all of `params.yaml`.
        """
        facts = model / FACTS
        sample_facts = facts if metadata.invented and facts.is_file() else None
        names = params.benchmark_names
        tests = len(params.models.all()) * len(names)
        return cls(params.score, params.seed, metadata.cluster, sample_facts, names, tests)

    @property
    def settings(self) -> str:
        """The settings that scores follow from; `reference` and `main` choose tests alone."""
        settings = self.params.model_dump(exclude={"reference", "main"})
        return f"{self.cluster} {settings} {self.seed} {exchanges(self.tests)}"


class Scorer(Protocol):
    """Computes metrics that belong together.

    Variants are scored independently, so they can be scored together or one by one. The same
    tables and seed give the same numbers in whatever order the rows are.

    Attributes:
        METRICS: its metrics; the first stands for all.
        ALSO_OF: scorers whose prediction tables it scores too; `accuracy` has those that rank
            answers.
        DRAWS_ANSWERS: whether its intervals draw answers as well as subjects.
    """

    METRICS: ClassVar[tuple[Metric, ...]]
    ALSO_OF: ClassVar[tuple[str, ...]] = ()
    DRAWS_ANSWERS: ClassVar[bool] = False

    def score(self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring) -> Scores:
        """Compute all metrics, with confidence intervals over clusters, averaged over replicates.

        Args:
            predictions: a prediction table, all variants and replicates.
            tables: the benchmark.
            scoring: seed, clusters and settings.

        Returns:
            The scores. A subset can be scored in parts, named `<subset>/<split>:<part>`.

        Raises:
            BadInput: the predictions are of another benchmark.
        """
        ...

    def reads(self, benchmark: Path, scoring: Scoring) -> list[Path]:
        """List further folders of benchmarks whose tables the scores follow from. Default: none.

        Args:
            benchmark: the folder `outputs/benchmarks/<name>`.
            scoring: seed, clusters and settings.
        """
        return []

    def paired(
        self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
    ) -> pd.DataFrame:
        """Return the values that paired tests compare.

        Args:
            predictions: a prediction table, all variants and replicates.
            tables: the benchmark.
            scoring: seed, clusters and settings.

        Returns:
            One row per query, or per unit in place of a query: `variant, replicate, query_id,
            subset, cluster, weight`, and a column for each metric. Two systems are compared on
            equal `query_id`; the signs of a `cluster` are flipped together. The weighted mean is
            the `macro` score.
        """
        ...

    def evaluate(
        self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
    ) -> "Evaluated":
        """Return all that is computed of a prediction table. Default: `score` and `paired`.

        The arguments are those of `score`. A scorer that has a control in the same table, such as
        its answers to other subjects, overrides it.
        """
        scores = self.score(predictions, tables, scoring)
        return Evaluated(scores, self.paired(predictions, tables, scoring), pd.DataFrame())


@dataclass(frozen=True)
class Evaluated:
    """What a scorer computes of a prediction table.

    Attributes:
        scores: every number (`Scorer.score`).
        paired: the values that paired tests compare (`Scorer.paired`).
        controls: tests of variants against their answers to other subjects, with the columns
            `metrics.shuffled.TESTS`; empty where there are none.
    """

    scores: Scores
    paired: pd.DataFrame
    controls: pd.DataFrame


def list_names() -> list[str]:
    """List the names of all scorers in alphabetical order, those of plugins included.

    Example:
        >>> "accuracy" in list_names()
        True
    """
    return [*plugins.find_plugins("metrics")]


def find(name: str) -> Scorer:
    """Return a scorer.

    Args:
        name: of its file, such as `accuracy`.

    Raises:
        BadInput: no scorer has this name, or a plugin's file is broken.

    Example:
        >>> find("perplexity").METRICS[0].title
        'perplexity'
    """
    found = plugins.find_plugins("metrics")
    if name not in found:
        raise BadInput("metrics", f"no scorer '{name}'{nearest(name, [*found])}")
    scorer: Scorer = plugins.load(found[name], "SCORER", Scorer, ("METRICS", "score", "paired"))
    return scorer


def catalog() -> dict[str, Metric]:
    """Return all metrics by name, scorer after scorer, each in its own order.

    Raises:
        BadInput: two scorers have different metrics of one name, or a plugin's file is broken.

    Example:
        >>> catalog()["acc_at_1"].tested
        True
    """
    scorer_of: dict[str, str] = {}
    metrics: dict[str, Metric] = {}
    for scorer in list_names():
        for metric in find(scorer).METRICS:
            if metrics.get(metric.name, metric) != metric:
                problem = f"'{metric.name}' is another metric of {scorer_of[metric.name]}"
                raise BadInput(f"metrics, {scorer}", problem, "choose another name")
            scorer_of.setdefault(metric.name, scorer)
            metrics[metric.name] = metric
    return metrics


def scorers_of(name: str) -> list[str]:
    """List the scorers of a scorer's prediction tables, itself first.

    Args:
        name: what the tables record.

    Example:
        >>> "consistency" in scorers_of("accuracy")
        True
    """
    return [name, *(other for other in list_names() if name in find(other).ALSO_OF)]
