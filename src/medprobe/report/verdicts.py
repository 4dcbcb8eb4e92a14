"""What the paired tests say of two systems, and what chance alone would reach: the page's sentences
compare by these and nothing else."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from medprobe.metrics.significance import LEVEL, System
from medprobe.report.numbers import metric, shown
from medprobe.report.results import Results

UNITS = {  # what a benchmark's `Metadata.cluster` holds
    "query_id": "queries",
    "subject_id": "subjects",
    "answer_ids": "entities",
    "target": "diseases",
}
SLIGHT = 0.0005  # chance below it is not worth a word


@dataclass(frozen=True)
class Verdict:
    """A paired test: the difference a - b, and its p, corrected for its family."""

    difference: float
    p: float

    @property
    def clear(self) -> bool:
        """Is the difference significant?"""
        return self.p < LEVEL

    @property
    def words(self) -> str:
        """Such as "significant (corrected p < 0.001)"."""
        return f"{'significant' if self.clear else 'not significant'} ({p_value(self.p)})"


def verdict(tests: pd.DataFrame, a: System, b: System) -> Verdict | None:
    """The test of two systems, or of one with itself on two subsets, among the tests of one subset
    and metric (`Results.tests`); None where they are not compared."""
    columns = (tests[name].tolist() for name in ("model_a", "method_a", "model_b", "method_b"))
    rows = {pair: number for number, pair in enumerate(zip(*columns, strict=True))}
    for pair, sign in (((*a, *b), 1), ((*b, *a), -1)):
        if pair in rows:
            row = tests.iloc[rows[pair]]
            return Verdict(sign * row["difference"], row["p_holm"])
    return None


def p_value(p: float) -> str:
    """A corrected p in a sentence.

    >>> p_value(0.0312), p_value(1e-7), p_value(1.0), p_value(0.0486)
    ('corrected p = 0.03', 'corrected p < 0.001', 'corrected p = 1', 'corrected p = 0.0486')
    """
    if p < 0.001:
        return "corrected p < 0.001"
    told = f"{p:.1g}" if p < 0.1 else f"{p:.2g}"
    return f"corrected p = {told if (float(told) < LEVEL) == (p < LEVEL) else f'{p:.3g}'}"


def listed(names: Iterable[str]) -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def units(results: Results, benchmark: str) -> str:
    """What chance has drawn of a benchmark, in the plural."""
    cluster = results.benchmarks[benchmark].cluster
    return UNITS.get(cluster, f"values of {cluster}")


def chance(results: Results, benchmark: str, subset: str, name: str) -> float | None:
    """What guessing has: acc@k, macro, of the benchmark's own names in random order, or what a
    metric says of itself; None where it is not known or too small to matter."""
    if metric(name).guessing is not None:
        return metric(name).guessing
    found, table = re.fullmatch(r"acc_at_(\d+)", name), results.statistics.get(benchmark)
    if not found or table is None or (column := f"chance_at_{found[1]}") not in table:
        return None
    value = table[(table["subset"] == subset) & (table["relation"] != "all")][column].mean()
    return None if pd.isna(value) or value < SLIGHT else float(value)


def chance_told(results: Results, benchmark: str, subset: str, name: str) -> str:
    """A sentence on it, empty where there is none."""
    value = chance(results, benchmark, subset, name)
    if value is None:
        return ""
    who = "Guessing reaches" if metric(name).guessing else "Names in random order reach"
    return f"{who} {shown(name, value)} {metric(name).title}."
