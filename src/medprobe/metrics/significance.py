"""Which systems differ by more than chance: the table of all paired tests.

A system is a model under a method. Systems are compared with each other (`pairs`) and each with
itself on two subsets (`subset_tests`). Holm's correction is for a family of tests, within a
benchmark, subset and metric: it answers one question that a reader asks.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe import metrics
from medprobe.core.errors import BadInput
from medprobe.core.executor import Executor, Job, in_job_order, in_this_process
from medprobe.core.params import Params, ScoreParams
from medprobe.core.places import ABOUT
from medprobe.core.places import SIGNIFICANCE as TESTS
from medprobe.core.progress import Progress, report_progress, with_progress
from medprobe.core.shuffling import is_shuffled
from medprobe.core.tables import (
    BASELINE,
    Metadata,
    metric_of_predictions,
    read_predictions,
    read_table,
    result_names,
)
from medprobe.metrics import Scoring
from medprobe.metrics.comparisons import (
    TwoWayTest,
    difference_interval,
    holm,
    paired_test,
    permutation,
    smallest_difference,
)
from medprobe.metrics.pairs import System, SystemPair, list_pairs
from medprobe.metrics.results import (
    is_compared,
    prediction_tables,
    scorer_names,
)
from medprobe.metrics.subset_tests import subset_tests

SIGNIFICANCE: Final = [
    "benchmark",
    "subset",  # `a - b` where a system is compared with itself on two
    "relation",  # macro: what is compared is the mean over relations
    "metric",
    "family",  # what Holm's correction is for, such as `models under fill_mask`
    "model_a",
    "method_a",
    "model_b",
    "method_b",
    "difference",  # a - b, over the same queries
    "low",
    "high",
    "p",  # of the difference for the relation: subjects and answers are drawn (`two_way`)
    "p_holm",  # corrected for all tests of its family
    "smallest_difference",  # that is found with power 0.8 at the family's corrected level
    "n",  # queries
    "units",  # clusters or answers, whichever are fewer
]
LEVEL: Final = 0.05  # of significance
CHANCE: Final = "chance"  # the baseline that guesses
READINGS: Final = "readings of tables"  # what is counted

TOGETHER: Final = ("cluster", "answer")  # what is drawn together


@dataclass(frozen=True)
class Differences:
    """What two systems differ by, query by query."""

    values: np.ndarray
    weights: np.ndarray
    clusters: np.ndarray  # codes from 0
    answers: np.ndarray | None  # codes from 0; None where none are drawn

    @property
    def n(self) -> int:
        """The number of queries."""
        return len(self.values)

    @property
    def sums(self) -> np.ndarray:
        """The weighted difference in each cluster."""
        return np.bincount(self.clusters, self.weights * self.values)

    @property
    def sizes(self) -> np.ndarray:
        """The sum of the weights in each cluster."""
        return np.bincount(self.clusters, self.weights)

    def two_way(self, level: float, confidence: float) -> TwoWayTest | None:
        """The test for the relation, or None where queries have no answers to draw."""
        if self.answers is None:
            return None
        return paired_test(
            self.values,
            self.weights,
            self.clusters,
            self.answers,
            level=level,
            confidence=confidence,
        )


def paired_table(path: Path, folder: Path, scoring: Scoring) -> pd.DataFrame:
    """What paired tests compare of a prediction table (see `Scorer.paired`).

    The tested metrics of its variants, the settings of sweeps left out.
    """
    first, *others = [metrics.find(name) for name in scorer_names(path)]
    scorers = [first, *(x for x in others if any(metric.tested for metric in x.METRICS))]
    parts: list[pd.DataFrame] = []
    for predictions in read_predictions(path, is_compared):
        for scorer in scorers:
            try:
                rows = scorer.paired(predictions, folder, scoring)
            except BadInput as error:
                raise BadInput(path, str(error)) from None
            if len(rows) or not parts:
                parts.append(rows)
    table = pd.concat(parts, ignore_index=True)
    tested = [name for name, metric in metrics.catalog().items() if metric.tested and name in table]
    keys = ["variant", "replicate", "query_id", "subset", *TOGETHER, "weight"]
    return table[[*(key for key in keys if key in table), *tested]]


def split_by_variant(table: pd.DataFrame, model: str, method: str) -> dict[System, pd.DataFrame]:
    """A `paired_table` of a model under a method as those of its variants, replicates averaged."""
    return {
        (model, f"{method}:{variant}" if variant else method): average_by_query(rows)
        for variant, rows in table.groupby("variant", sort=True)
    }


def read_tests() -> pd.DataFrame:
    """The table that the stage `significance` made.

    Raises:
        BadInput: there is none.
    """
    if not TESTS.is_file():
        raise BadInput(TESTS, "no paired tests", "run `medprobe significance`")
    return read_table(TESTS, [])


def paired_tests(
    predictions: Path,
    benchmarks: Path,
    params: Params,
    *,
    now: Progress | None = None,
    executor: Executor = in_this_process,
) -> pd.DataFrame:
    """The paired tests of every benchmark: a table with columns SIGNIFICANCE.

    `now` counts readings of tables.
    """
    paths: dict[str, list[Path]] = {}
    for path in prediction_tables(predictions, params):
        paths.setdefault(path.stem, []).append(path)
    jobs = []
    for name, tables in sorted(paths.items()):
        files = (benchmarks / name, ABOUT / f"{name}.json")
        jobs.append(Job(f"paired tests of {name}", (tables, *files), (*tables, *files)))
    tables_by_number = executor(partial(_test_benchmark, params), jobs)
    if now:
        tables_by_number = with_progress(
            tables_by_number, [len(job.argument[0]) for job in jobs], now
        )
    tests = [table for _, table in in_job_order(tables_by_number)]
    return pd.concat(tests, ignore_index=True) if jobs else pd.DataFrame(columns=SIGNIFICANCE)


def _test_benchmark(params: Params, files: tuple[list[Path], Path, Path]) -> pd.DataFrame:
    """The paired tests of one benchmark, from its prediction tables, folder and metadata."""
    paths, folder, about = files
    metadata = Metadata.read(about)
    scoring = Scoring(params.score, params.seed, metadata.cluster)
    systems: dict[System, pd.DataFrame] = {}
    shuffled: list[pd.DataFrame] = []
    for path in paths:
        model, method, _ = result_names(path)
        systems.update(split_by_variant(paired_table(path, folder, scoring), model, method))
        shuffled.append(shuffled_table(path, folder, scoring, model, method))
        report_progress(1, READINGS)
    # Chance has no table: it has the queries of the systems, and is compared as one of them.
    systems |= guesses(systems)
    kinds = {name: kind for kind, models in params.models.by_kind().items() for name in models}
    return significance(
        systems,
        folder.name,
        params.score,
        params.seed,
        kinds=kinds,
        contrasts=metadata.contrasts,
        shuffled=pd.concat(shuffled) if shuffled else None,
    )


def shuffled_table(
    path: Path, folder: Path, scoring: Scoring, model: str, method: str
) -> pd.DataFrame:
    """The tests of a prediction table's variants against shuffled answers (`Scorer.shuffled`).

    Returns:
        Columns `model, method, subset, metric, p`; `method` is `<method>:<variant>`.
    """
    scorer = metrics.find(metric_of_predictions(path))
    tables = [
        scorer.shuffled(predictions, folder, scoring)
        for predictions in read_predictions(path, is_compared)
    ]
    table = pd.concat(tables, ignore_index=True)
    names = [f"{method}:{variant}" if variant else method for variant in table["variant"]]
    return table.assign(model=model, method=names)


def guesses(systems: Mapping[System, pd.DataFrame]) -> dict[System, pd.DataFrame]:
    """Return the baseline `chance` by metrics that say what guessing reaches, such as one half.

    Args:
        systems: the rows of each system, averaged by `average_by_query`. Chance has the queries of
            those that have such a metric.
    """
    guessing = {
        name: metric.guessing
        for name, metric in metrics.catalog().items()
        if metric.tested and metric.guessing is not None
    }
    chance = None
    for rows in systems.values():
        values = {name: value for name, value in guessing.items() if name in rows}
        if values:
            about = [column for column in (*TOGETHER, "weight") if column in rows]
            table = rows[about].assign(**values)
            chance = table if chance is None else chance.combine_first(table)
    return {} if chance is None else {(BASELINE, CHANCE): chance}


def significance(
    systems: Mapping[System, pd.DataFrame],
    benchmark: str,
    params: ScoreParams,
    seed: int,
    *,
    kinds: Mapping[str, str] | None = None,
    contrasts: Iterable[tuple[str, str]] = (),
    shuffled: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Run the paired tests of one benchmark, between all systems that a reader would compare.

    Args:
        systems: the rows of each system, averaged by `average_by_query`. Two systems are compared
            over the queries that both have.
        benchmark: its name.
        params: resamples and confidence.
        seed: of the resamples.
        kinds: the kind of each model. A metric that differs between kinds is compared within them.
        contrasts: pairs of subsets on which a system is compared with itself.
        shuffled: permutation tests of systems against their answers to other subjects, as
            `shuffled_table` returns them. Where there is one, its p counts.
    """
    keys = ["model", "method", "subset", "metric"]
    known = {} if shuffled is None else shuffled.set_index(keys)["p"].to_dict()
    rows: list[dict[str, Any]] = []
    differences: list[Differences | None] = []
    untested: Counter[tuple[str, str, str]] = Counter()  # of many models
    for subset, pair, by_metric, first, second in _compare(systems, kinds or {}, params.reference):
        left_out = [name for name, family in by_metric.items() if family is None]
        untested.update((subset, name, pair.family) for name in left_out)
        tested = {name: family for name, family in by_metric.items() if family}
        to_shuffled = any(is_shuffled(name.partition(":")[2]) for _, name in (pair.a, pair.b))
        for metric, difference in _differences(
            first, second, tested, draws_answers=not to_shuffled
        ):
            names = (benchmark, subset, "macro", metric, tested[metric], *pair.a, *pair.b)
            numbers = evaluate_difference(difference, params, seed)
            ps = [known.get((*system, subset, metric)) for system in (pair.a, pair.b)]
            is_permuted = to_shuffled and any(p is not None for p in ps)
            if is_permuted:
                numbers["p"] = next(p for p in ps if p is not None)
            rows.append(dict(zip(SIGNIFICANCE, names, strict=False)) | numbers)
            differences.append(None if is_permuted else difference)
    table = pd.DataFrame(rows, columns=SIGNIFICANCE)
    by_subset = subset_tests(systems, contrasts, params.confidence).assign(benchmark=benchmark)
    if table.empty:
        return by_subset.reindex(columns=SIGNIFICANCE).astype({"family": str})
    by_family = table.groupby(["subset", "metric", "family"])["p"]
    table["p_holm"] = by_family.transform(lambda p: holm(p.to_numpy(), untested[p.name]))
    sizes = by_family.transform(lambda p: len(p) + untested[p.name]).astype(int)
    for row, (tested_difference, size) in enumerate(zip(differences, sizes, strict=True)):
        if tested_difference:  # what permutations of clusters find is not known
            smallest = _smallest(tested_difference, LEVEL / size, params.confidence)
            table.loc[row, "smallest_difference"] = smallest
    table = pd.concat([table, by_subset]) if len(by_subset) else table
    return table.sort_values(SIGNIFICANCE[:9], ignore_index=True)


def _smallest(difference: Differences, level: float, confidence: float) -> float:
    if test := difference.two_way(level, confidence):
        return test.smallest_difference
    return smallest_difference(difference.sums, difference.sizes, level)


def evaluate_difference(
    difference: Differences, params: ScoreParams, seed: int
) -> dict[str, float]:
    """Test the difference of two systems.

    Clusters of names and answers are drawn where queries have answers (`two_way`); else the signs
    of whole clusters are turned.

    Args:
        difference: The differences query by query.
        params: Resamples and confidence of the interval.
        seed: Of the resamples.

    Returns:
        `difference`, `low`, `high`, `p`, and the counts `n` and `units`.
    """
    sums, sizes = difference.sums, difference.sizes
    if test := difference.two_way(LEVEL, params.confidence):
        low, high, p, units = test.low, test.high, test.p, test.units
    else:
        low, high = difference_interval(sums, sizes, params.bootstrap, params.confidence, seed)
        p, units = permutation(sums), len(sums)
    value = sums.sum() / sizes.sum()
    return {
        "difference": value, "low": low, "high": high, "p": p, "n": difference.n, "units": units,
    }  # fmt: skip


def average_by_query(table: pd.DataFrame) -> pd.DataFrame:
    """Means over replicates, by subset and query."""
    shared = [name for name in TOGETHER if name in table]
    keys = ["subset", "query_id", *shared]
    return table.groupby(keys, sort=True).mean(numeric_only=True).reset_index(shared)


def _compare(
    systems: Mapping[System, pd.DataFrame], kinds: Mapping[str, str], reference: str | None
) -> Iterator[tuple[str, SystemPair, dict[str, str | None], pd.DataFrame, pd.DataFrame]]:
    """The pairs of each subset as `list_pairs` gives them, with the rows of both sides."""
    parts: dict[str, dict[System, pd.DataFrame]] = {}
    for name, rows in systems.items():
        for subset, part in rows.groupby("subset"):
            parts.setdefault(str(subset), {})[name] = part.droplevel("subset")
    for subset, of_subset in sorted(parts.items()):
        for pair, by_metric in list_pairs(of_subset, subset, kinds, reference):
            yield subset, pair, by_metric, of_subset[pair.a], of_subset[pair.b]


def _differences(
    first: pd.DataFrame, second: pd.DataFrame, names: Collection[str], *, draws_answers: bool
) -> Iterator[tuple[str, Differences]]:
    """Each of these metrics with its differences."""
    if not names:
        return
    shared = first.index.intersection(second.index)
    first, second = first.loc[shared], second.loc[shared]
    for metric in names:
        values = (first[metric] - second[metric]).to_numpy(float)
        is_defined = ~np.isnan(values)
        if not is_defined.any():
            continue
        rows = first[is_defined]
        codes = {name: pd.factorize(rows[name])[0] for name in TOGETHER if name in rows}
        # A control can lack queries. Each of the rest then counts more in the mean over relations.
        weights = np.fmax(rows["weight"], second.loc[rows.index, "weight"]).to_numpy(float)
        answers = codes.get("answer") if draws_answers else None
        yield metric, Differences(values[is_defined], weights, codes["cluster"], answers)
