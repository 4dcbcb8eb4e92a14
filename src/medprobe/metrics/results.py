"""The tables of results: every number in one comparison, and which differences are not chance."""

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from medprobe import metrics
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.params import Params, ScoreParams
from medprobe.core.places import SCORES
from medprobe.core.tables import Metadata, metric_of_predictions, read_predictions
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.comparisons import (
    difference_interval,
    holm,
    permutation,
    smallest_difference,
)

COMPARISON: Final = [
    "benchmark",
    "subset",
    "relation",  # or macro, micro, weighted
    "model",
    "method",  # `contrastive` for the main variant, `contrastive:original` for another
    "metric",
    "value",
    "low",
    "high",
    "n",
]
SIGNIFICANCE: Final = [
    "benchmark",
    "subset",
    "metric",
    "model_a",
    "method_a",
    "model_b",
    "method_b",
    "difference",  # a - b, over the same queries
    "low",
    "high",
    "p",
    "p_holm",  # corrected for all the comparisons of this benchmark, subset and metric
    "smallest_difference",  # that would be found with power 0.8
    "n",
]
PERMUTATIONS: Final = 9999

System = tuple[str, str]  # a model, and a method or `<method>:<variant>`


def prediction_tables(folder: Path) -> Iterator[Path]:
    """All `<model>/<method>/<benchmark>.parquet` below a folder, in order. Raises BadInput where
    there are none."""
    paths = sorted(folder.glob("*/*/*.parquet"))
    if not paths:
        raise BadInput(folder, "no predictions", "run `dvc repro` to probe the models")
    yield from paths


def families(path: Path) -> list[str]:
    """The families that score a prediction table: its own, and experts' ratings beside accuracy."""
    own = metric_of_predictions(path)
    return [own, "expert"] if own == "accuracy" else [own]


def score_table(path: Path, folder: Path, scoring: Scoring) -> Scores:
    """The scores of a prediction table on the benchmark in `folder`, by its families of metrics."""
    predictions, scores = read_predictions(path), Scores()
    try:
        for name in families(path):
            for variant, subsets in metrics.find(name).score(predictions, folder, scoring).items():
                scores.setdefault(variant, {}).update(subsets)
    except BadInput as error:
        raise BadInput(path, str(error)) from None
    return scores


def paired_table(path: Path, folder: Path) -> pd.DataFrame:
    """What paired tests compare of a prediction table (see `Scorer.paired`): the tested metrics."""
    scorer, predictions = metrics.find(metric_of_predictions(path)), read_predictions(path)
    try:
        table = scorer.paired(predictions, folder)
    except BadInput as error:
        raise BadInput(path, str(error)) from None
    tested = [name for name, metric in metrics.catalog().items() if metric.tested and name in table]
    return table[["variant", "replicate", "query_id", "subset", *tested]]


def comparison(folder: Path = SCORES) -> pd.DataFrame:
    """The tidy table of all scores below `metrics/scores`, one row a number, in a fixed order."""
    paths = sorted(folder.glob("*/*.json"))
    if not paths:
        raise BadInput(folder, "no scores", "run `dvc repro` to make them")
    rows = [
        row
        for path in paths
        for row in rows_of(json.loads(path.read_text("utf-8")), path.parent.name, path.stem)
    ]
    table = pd.DataFrame(rows, columns=COMPARISON)
    return table.sort_values(COMPARISON[:6], ignore_index=True)


def rows_of(content: dict[str, Scores], model: str, method: str) -> Iterator[tuple]:
    """The scores of a model under a method, by benchmark, as rows of the comparison."""
    for benchmark, variants in content.items():
        for variant, subsets in variants.items():
            name = method if variant == "default" else f"{method}:{variant}"
            for subset, relations in subsets.items():
                for relation, by_metric in relations.items():
                    for metric, numbers in by_metric.items():
                        keys = (benchmark, subset, relation, model, name, metric)
                        yield (*keys, *map(numbers.get, ("value", "low", "high", "n")))


def paired_tests(
    predictions: Path, benchmarks: Path, params: Params, only: str | None = None
) -> pd.DataFrame:
    """The paired tests of every benchmark, or of `only` one: a table with columns SIGNIFICANCE."""
    by_benchmark: dict[str, dict[System, pd.DataFrame]] = {}
    for path in prediction_tables(predictions):
        model, method, benchmark = path.parent.parent.name, path.parent.name, path.stem
        if only not in (None, benchmark):
            continue
        table = paired_table(path, benchmarks / benchmark)
        for variant, rows in table.groupby("variant", sort=True):
            name = f"{method}:{variant}" if variant else method
            by_benchmark.setdefault(benchmark, {})[(model, name)] = rows
    tables = [
        significance(systems, benchmark, params.score, params.seed)
        for benchmark, systems in sorted(by_benchmark.items())
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=SIGNIFICANCE)


def significance(
    systems: dict[System, pd.DataFrame], benchmark: str, params: ScoreParams, seed: int
) -> pd.DataFrame:
    """Paired tests on one benchmark between systems, each with its `paired_table`; replicates are
    averaged.

    Compared are systems of the same method and systems of the same model, over the queries that
    both have.
    """
    means = {name: _by_query(table) for name, table in systems.items()}
    pairs = [pair for pair in combinations(sorted(means), 2) if _comparable(*pair)]
    rows = []
    for a, b in pairs:
        shared = [metric for metric in means[a] if metric in means[b]]
        both = means[a].join(means[b], how="inner", lsuffix=" a", rsuffix=" b")
        for subset, part in both.groupby(level="subset", sort=True):
            for metric in shared:
                d = (part[f"{metric} a"] - part[f"{metric} b"]).dropna().to_numpy(float)
                if not len(d):
                    continue
                low, high = difference_interval(d, params.bootstrap, params.confidence, seed)
                p = permutation(d, PERMUTATIONS, seed)
                numbers = (d.mean(), low, high, p, np.nan, smallest_difference(d), len(d))
                rows.append((benchmark, subset, metric, *a, *b, *numbers))
    table = pd.DataFrame(rows, columns=SIGNIFICANCE)
    if table.empty:
        return table
    corrected = table.groupby(["subset", "metric"])["p"].transform(lambda p: holm(p.to_numpy()))
    return table.assign(p_holm=corrected).sort_values(SIGNIFICANCE[:7], ignore_index=True)


def _by_query(table: pd.DataFrame) -> pd.DataFrame:
    return table.groupby(["subset", "query_id"], sort=True).mean(numeric_only=True)


def _comparable(a: System, b: System) -> bool:
    """Two models under one method, or one model under two methods or variants; a sweep's settings
    (`step-50`) are not compared one by one."""
    if sweep(a[1]) or sweep(b[1]):
        return False
    return a[1] == b[1] or a[0] == b[0]


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


def sweep(method: str) -> tuple[str, float] | None:
    """What a variant sweeps over, and where: `contrastive:step-50` is `("step", 50.0)`.

    >>> sweep("contrastive:mask-ratio-0.3"), sweep("contrastive:original")
    (('mask-ratio', 0.3), None)
    """
    name, _, number = method.partition(":")[2].rpartition("-")
    try:
        return (name, float(number)) if name else None
    except ValueError:
        return None


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table of results as CSV, six significant digits a number."""
    with replacing(path) as scratch:
        table.to_csv(scratch, index=False, float_format="%.6g", lineterminator="\n")
