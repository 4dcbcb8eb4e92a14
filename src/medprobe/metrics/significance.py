"""Which systems differ by more than chance: the table of all paired tests.

A system is a model under a method. What is compared: models under one method, methods under one
model, a model with the control of its method, and a system with itself on two subsets of a family's
`CONTRASTS`. Each of these is a family of its own, within a benchmark, subset and metric, and Holm's
correction is for a family: it answers one question that a reader asks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from medprobe import metrics
from medprobe.core.errors import BadInput
from medprobe.core.params import Params, ScoreParams
from medprobe.core.parts import Executor, Job, Pace, counted, local, tell
from medprobe.core.places import ABOUT
from medprobe.core.places import SIGNIFICANCE as TESTS
from medprobe.core.tables import Metadata, metric_of_predictions, read_predictions
from medprobe.metrics import Scoring
from medprobe.metrics.comparisons import (
    difference_interval,
    holm,
    permutation,
    smallest_difference,
)
from medprobe.metrics.results import compared, prediction_tables, sweep

SIGNIFICANCE: Final = [
    "benchmark",
    "subset",  # `target - negative` where a system is compared with itself on two
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
    "p",
    "p_holm",  # corrected for all tests of its family
    "smallest_difference",  # that is found with power 0.8 at the family's corrected level
    "n",  # queries
    "clusters",  # of queries that are turned round together
]
CONTROLS: Final = ("copy", "always-true")  # variants that answer without a model
LEVEL: Final = 0.05  # of significance
READINGS: Final = "readings of tables"  # what is counted

System = tuple[str, str]  # a model, and a method or `<method>:<variant>`


class Pair(NamedTuple):
    """Two systems, or one on two subsets, that are compared, and the family of the comparison."""

    family: str
    a: System
    b: System


@dataclass(frozen=True)
class Differences:
    """A difference of two systems, by cluster."""

    sums: np.ndarray  # weighted
    sizes: np.ndarray  # sums of weights
    n: int  # queries


def is_control(method: str) -> bool:
    """Does this method or variant answer without a model?

    >>> is_control("rank_change:copy"), is_control("rank_change")
    (True, False)
    """
    return method.partition(":")[2] in CONTROLS


def paired_table(path: Path, folder: Path, scoring: Scoring) -> pd.DataFrame:
    """What paired tests compare of a prediction table (see `Scorer.paired`): the tested metrics of
    its variants, the settings of sweeps left out."""
    scorer = metrics.find(metric_of_predictions(path))
    parts = []
    for predictions in read_predictions(path, compared):
        try:
            parts.append(scorer.paired(predictions, folder, scoring))
        except BadInput as error:
            raise BadInput(path, str(error)) from None
    table = pd.concat(parts, ignore_index=True)
    tested = [name for name, metric in metrics.catalog().items() if metric.tested and name in table]
    keys = ["variant", "replicate", "query_id", "subset", "cluster", "weight"]
    return table[[*keys, *tested]]


def by_variant(table: pd.DataFrame, model: str, method: str) -> dict[System, pd.DataFrame]:
    """A `paired_table` of a model under a method as those of its variants, replicates averaged."""
    return {
        (model, f"{method}:{variant}" if variant else method): by_query(rows)
        for variant, rows in table.groupby("variant", sort=True)
    }


def read_tests(path: Path = TESTS) -> pd.DataFrame:
    """The table that the stage `significance` made. Raises BadInput where there is none."""
    if not path.is_file():
        raise BadInput(path, "no paired tests", "run `medprobe significance`")
    return pd.read_parquet(path)


def paired_tests(
    predictions: Path,
    benchmarks: Path,
    params: Params,
    *,
    about: Path = ABOUT,
    now: Pace | None = None,
    executor: Executor = local,
) -> pd.DataFrame:
    """The paired tests of every benchmark: a table with columns SIGNIFICANCE. `about` holds what is
    known of each benchmark; `now` counts readings of tables."""
    paths: dict[str, list[Path]] = {}
    for path in prediction_tables(predictions):
        paths.setdefault(path.stem, []).append(path)
    jobs = []
    for name, some in sorted(paths.items()):
        known = (benchmarks / name, about / f"{name}.json")
        jobs.append(Job(f"paired tests of {name}", (some, *known), (*some, *known)))
    found = executor(partial(_tests_of, params), jobs)
    if now:
        found = counted(found, [len(job.argument[0]) for job in jobs], now)
    tables = dict(found)
    ordered = [tables[number] for number in range(len(jobs))]
    return pd.concat(ordered, ignore_index=True) if jobs else pd.DataFrame(columns=SIGNIFICANCE)


def _tests_of(params: Params, asked: tuple[list[Path], Path, Path]) -> pd.DataFrame:
    """The paired tests of one benchmark, from its prediction tables, folder and metadata."""
    paths, folder, about = asked
    scoring = Scoring(params.score, params.seed, Metadata.read(about).cluster)
    systems: dict[System, pd.DataFrame] = {}
    contrasts: set[tuple[str, str]] = set()
    for path in paths:
        model, method = path.parent.parent.name, path.parent.name
        table = paired_table(path, folder, scoring)
        contrasts.update(metrics.find(metric_of_predictions(path)).CONTRASTS)
        systems.update(by_variant(table, model, method))
        tell(1, READINGS)
    kinds = {name: kind for kind, models in params.models.by_kind().items() for name in models}
    return significance(
        systems,
        folder.name,
        params.score,
        params.seed,
        kinds=kinds,
        contrasts=sorted(contrasts),
    )


def significance(
    systems: Mapping[System, pd.DataFrame],
    benchmark: str,
    params: ScoreParams,
    seed: int,
    *,
    kinds: Mapping[str, str] | None = None,
    contrasts: list[tuple[str, str]] | None = None,
) -> pd.DataFrame:
    """Paired tests on one benchmark between systems, each with its rows `by_query`, over the
    queries that both have. `kinds` are the models' kinds: a metric that is another quantity for
    each is compared within them. `contrasts` are pairs of subsets."""
    rows, differences = [], []
    for subset, pair, one, other in _compared(systems, contrasts or []):
        across = (kinds or {}).get(pair.a[0]) != (kinds or {}).get(pair.b[0])
        for metric, found in _differences(one, other, across):
            numbers = (found.sums.sum() / found.sizes.sum(), permutation(found.sums))
            bounds = difference_interval(
                found.sums, found.sizes, params.bootstrap, params.confidence, seed
            )
            keys = (benchmark, subset, "macro", metric, pair.family, *pair.a, *pair.b)
            counts = (np.nan, np.nan, found.n, len(found.sums))
            rows.append((*keys, numbers[0], *bounds, numbers[1], *counts))
            differences.append(found)
    table = pd.DataFrame(rows, columns=SIGNIFICANCE)
    if table.empty:
        return table
    family = table.groupby(["subset", "metric", "family"])["p"]
    table["p_holm"] = family.transform(lambda p: holm(p.to_numpy()))
    table["smallest_difference"] = [
        smallest_difference(found.sums, found.sizes, LEVEL / size)
        for found, size in zip(differences, family.transform("size"), strict=True)
    ]
    return table.sort_values(SIGNIFICANCE[:9], ignore_index=True)


def by_query(table: pd.DataFrame) -> pd.DataFrame:
    """Means over replicates, by subset and query."""
    keys = ["subset", "query_id", "cluster"]
    return table.groupby(keys, sort=True).mean(numeric_only=True).reset_index("cluster")


def _compared(
    systems: Mapping[System, pd.DataFrame], contrasts: list[tuple[str, str]]
) -> Iterator[tuple[str, Pair, pd.DataFrame, pd.DataFrame]]:
    """`(subset, what is compared, its rows of one side, of the other)`, subset by subset."""
    parts = {
        name: {str(subset): part.droplevel("subset") for subset, part in rows.groupby("subset")}
        for name, rows in systems.items()
    }
    pairs = [pair for a, b in combinations(sorted(systems), 2) if (pair := paired(a, b))]
    for subset in sorted({subset for of_system in parts.values() for subset in of_system}):
        for pair in pairs:
            if subset in parts[pair.a] and subset in parts[pair.b]:
                yield subset, pair, parts[pair.a][subset], parts[pair.b][subset]
    for first, second in contrasts:
        for name, of_system in sorted(parts.items()):
            if first in of_system and second in of_system and not sweep(name[1]):
                kind = "controls" if is_control(name[1]) else "models"
                family = f"{kind} under {name[1].partition(':')[0]}"
                subset = contrast(first, second)
                yield subset, Pair(family, name, name), of_system[first], of_system[second]


def contrast(first: str, second: str) -> str:
    """What stands as subset where a system is compared with itself on two."""
    return f"{first} - {second}"


def paired(a: System, b: System) -> Pair | None:
    """Two systems as a pair with its family, or None where a reader would not compare them:
    settings of a sweep, or different models under different methods.

    >>> paired(("m", "x"), ("n", "x")).family, paired(("m", "x"), ("m", "x:original")).family
    ('models under x', 'methods under m')
    >>> paired(("m", "x"), ("m", "x:copy")).family, paired(("m", "x:copy"), ("n", "x:copy"))
    ('controls under x', None)
    """
    (model, method), (other, another) = a, b
    if sweep(method) or sweep(another):
        return None
    controls, base = [is_control(method), is_control(another)], method.partition(":")[0]
    if any(controls):
        same = model == other and base == another.partition(":")[0] and not all(controls)
        return Pair(f"controls under {base}", a, b) if same else None
    if method == another:
        return Pair(f"models under {method}", a, b)
    return Pair(f"methods under {model}", a, b) if model == other else None


def _differences(
    one: pd.DataFrame, other: pd.DataFrame, across: bool
) -> Iterator[tuple[str, Differences]]:
    """Each tested metric that both have, with its differences."""
    shared = one.index.intersection(other.index)
    one, other = one.loc[shared], other.loc[shared]
    cluster = pd.factorize(one["cluster"])[0]
    catalog = metrics.catalog()
    for metric in (name for name in one if name in catalog and name in other):
        d = (one[metric] - other[metric]).to_numpy(float)
        there = ~np.isnan(d)
        if not there.any() or (across and catalog[metric].within_kind):
            continue
        codes, weight = pd.factorize(cluster[there])[0], one["weight"].to_numpy(float)[there]
        sums = np.bincount(codes, weight * d[there])
        yield metric, Differences(sums, np.bincount(codes, weight), int(there.sum()))
