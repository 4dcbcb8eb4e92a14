"""The tables of a comparison: every number of the project, and which differences are not chance."""

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from medprobe.errors import BadInput
from medprobe.metrics.comparisons import (
    difference_interval,
    holm,
    permutation,
    smallest_difference,
)
from medprobe.metrics.summary import Scores
from medprobe.params import ScoreParams

COMPARISON: Final = [
    "benchmark",
    "subset",
    "relation",  # or macro, micro
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
TESTED: Final = ("acc_at_1", "acc_at_10", "perplexity", "understand", "f1_by_positive")
PERMUTATIONS: Final = 9999


def comparison(metrics: Path) -> pd.DataFrame:
    """The tidy table of all scores below `metrics/`, one row a number, in a fixed order."""
    files = sorted(metrics.glob("*/*.json"))
    if not files:
        raise BadInput(metrics, "no scores", "run `dvc repro` to make them")
    rows = [
        row
        for path in files
        for row in rows_of(json.loads(path.read_text("utf-8")), path.parent.name, path.stem)
    ]
    table = pd.DataFrame(rows, columns=COMPARISON)
    return table.sort_values(COMPARISON[:6], ignore_index=True)


def joined(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Rows of two comparisons in the fixed order."""
    there = [table for table in (first, second) if len(table)]
    return pd.concat(there).sort_values(COMPARISON[:6], ignore_index=True)


def rows_of(content: dict[str, Scores], model: str, method: str) -> Iterator[tuple]:
    """The scores of a model under a method, by benchmark, as rows of the comparison."""
    for benchmark, variants in content.items():
        for variant, subsets in variants.items():
            name = method if variant == "default" else f"{method}:{variant}"
            for subset, relations in subsets.items():
                for relation, metrics in relations.items():
                    for metric, numbers in metrics.items():
                        place = (benchmark, subset, relation, model, name, metric)
                        yield (*place, *map(numbers.get, ("value", "low", "high", "n")))


def significance(
    systems: dict[tuple[str, str], pd.DataFrame], benchmark: str, params: ScoreParams, seed: int
) -> pd.DataFrame:
    """Paired tests on one benchmark between systems, each `(model, method[:variant])` with its
    values (one row a query, see `stages/score.py: per_query`; replicates are averaged).

    Compared are systems of the same method and systems of the same model, over the queries that
    both have.
    """
    means = {name: _by_query(values) for name, values in systems.items() if len(values)}
    pairs = [pair for pair in combinations(sorted(means), 2) if _comparable(*pair)]
    rows = []
    for a, b in pairs:
        both = means[a].join(means[b], how="inner", lsuffix=" a", rsuffix=" b")
        for subset, part in both.groupby(level="subset", sort=True):
            for metric in TESTED:
                if f"{metric} a" not in part or f"{metric} b" not in part:
                    continue
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


def _by_query(values: pd.DataFrame) -> pd.DataFrame:
    metrics = [metric for metric in TESTED if metric in values]
    return values.groupby(["subset", "query_id"], sort=True)[metrics].mean()


def _comparable(a: tuple[str, str], b: tuple[str, str]) -> bool:
    """Two models under one method, or one model under two methods or variants; a sweep's settings
    (`step-50`) are not compared one by one."""
    if sweep(a[1]) or sweep(b[1]):
        return False
    return a[1] == b[1] or a[0] == b[0]


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
    table.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
