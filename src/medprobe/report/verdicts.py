"""What the paired tests say of two systems, and what is reached without knowledge.

The page compares by these and nothing else. The values that need no knowledge are guesses, the
commonest answers of each relation, and the controls of methods.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import pandas as pd

from medprobe.core.tables import BASELINE
from medprobe.metrics import find, list_names
from medprobe.metrics.results import select
from medprobe.metrics.significance import CHANCE, LEVEL, System, controls, decisive_p
from medprobe.report.blocks import Cell
from medprobe.report.numbers import MISSING, format_difference, metric
from medprobe.report.results import Results

SLIGHT: Final = 0.0005  # a share below it is not worth a line
MARK: Final = "†"  # not significant
SIGNS: Final = (
    f"{MARK} not significant: the paired test's p, after Holm's correction, is {LEVEL:g} or more, "
    "for these answers or for the relation."
)
TITLES: Final = {
    CHANCE: "uniform chance",
    "any_answer": "any answer of the relation",
    "prior": "the commonest answers",
}
UNITS: Final = {  # what a benchmark's `Metadata.cluster` holds
    "query_id": "queries",
    "subject_id": "subjects",
    "answer_ids": "entities",
    "target": "diseases",
}


@dataclass(frozen=True)
class Verdict:
    """A paired test: the difference a - b, and its p, corrected for its family."""

    difference: float
    p: float

    @property
    def clear(self) -> bool:
        """Whether the difference is significant."""
        return self.p < LEVEL

    def favours(self, name: str, subset: str) -> bool:
        """Whether a is significantly better than b by this metric on this subset."""
        lower = metric(name).better_on(subset) == "lower"
        return self.clear and (self.difference < 0 if lower else self.difference > 0)


def verdict(tests: pd.DataFrame, a: System, b: System) -> Verdict | None:
    """Find the test of two systems, or of one with itself on two subsets.

    Args:
        tests: those of one subset and metric (`Results.tests`).
        a: a model and its method.
        b: the other model and its method.

    Returns:
        The test, with the difference a - b; None where the two are not compared.
    """
    columns = (tests[name].tolist() for name in ("model_a", "method_a", "model_b", "method_b"))
    rows = {pair: number for number, pair in enumerate(zip(*columns, strict=True))}
    for pair, sign in (((*a, *b), 1), ((*b, *a), -1)):
        if pair in rows:
            test = tests.iloc[[rows[pair]]]
            difference = float(test["difference"].iloc[0])
            return Verdict(sign * difference, float(decisive_p(test).iloc[0]))
    return None


def p_value(p: float) -> str:
    """A p as a table shows it; rounding never carries it across the level of significance.

    >>> p_value(0.0312), p_value(1e-7), p_value(1.0), p_value(0.0486)
    ('p = 0.03', 'p < 0.001', 'p = 1', 'p = 0.0486')
    """
    if p < 0.001:
        return "p < 0.001"
    rounded = f"{p:.1g}" if p < 0.1 else f"{p:.2g}"
    return f"p = {rounded if (float(rounded) < LEVEL) == (p < LEVEL) else f'{p:.3g}'}"


def p_cell(p: float) -> Cell:
    """A p in a column of its own.

    >>> p_cell(0.0312).text, p_cell(1e-7).text
    ('0.03', '< 0.001')
    """
    return Cell(p_value(p).removeprefix("p ").removeprefix("= "), p)


def difference(name: str, test: Verdict | None, *, clear: bool | None = None) -> str | Cell:
    """Return a tested difference of a metric, its p below it.

    It is marked if it is not significant; `clear` overrules the mark.
    """
    if test is None:
        return MISSING
    mark = "" if (test.clear if clear is None else clear) else f" {MARK}"
    return Cell(
        format_difference(name, test.difference) + mark, test.difference, note=p_value(test.p)
    )


def units(results: Results, benchmark: str) -> str:
    """What chance has drawn of a benchmark, in the plural."""
    cluster = results.benchmarks[benchmark].cluster
    return UNITS.get(cluster, f"values of {cluster}")


def describe_interval(results: Results, benchmark: str, name: str) -> str:
    """Say what the intervals of a metric are, such as `95 % Wilson intervals over diseases`."""
    scale = {"share": "Wilson ", "log": "t-", "plain": "t-"}[metric(name).scale]
    of = " of the logarithm" if metric(name).logarithmic else ""
    scorers = [scorer for scorer in map(find, list_names()) if scorer.DRAWS_ANSWERS]
    if name.endswith("_by_answer"):
        over = "over answers"
    elif any(name == entry.name for scorer in scorers for entry in scorer.METRICS):
        over = f"with a two-way variance over {units(results, benchmark)} and answers"
    else:
        over = f"over {units(results, benchmark)}"
    return f"{100 * results.confidence:.0f} % {scale}intervals{of} {over}"


def chance(results: Results, benchmark: str, subset: str, name: str) -> float | None:
    """Return what guessing reaches.

    It is macro acc@k of the benchmark's own names in random order, or what a metric says of itself.
    It is None if it is not known or too small to matter.
    """
    if metric(name).guessing is not None:
        return metric(name).guessing
    at, table = re.fullmatch(r"acc_at_(\d+)", name), results.statistics.get(benchmark)
    if not at or table is None or (column := f"chance_at_{at[1]}") not in table:
        return None
    value = table[(table["subset"] == subset) & (table["relation"] != "all")][column].mean()
    return None if pd.isna(value) or value < SLIGHT else float(value)


@dataclass(frozen=True)
class Baseline:
    """A value that is reached without knowledge, and whether a system is shown to be better."""

    name: str
    value: float
    beaten: bool
    evidence: str  # the corrected p of the paired test, or what stands in its place
    difference: float  # of the system to it
    clear: bool | None  # whether the difference is significant, either way; None: not tested

    @property
    def mark(self) -> str:
        """The sign of a difference that is not significant."""
        return MARK if self.clear is False else ""


def baselines(results: Results, system: pd.Series) -> list[Baseline]:
    """List the baselines of a system, the strongest first.

    Args:
        results: the tables of the page.
        system: a row of the comparison, of macro means.

    Returns:
        The benchmark's baselines and the controls of the system's method, in the system's metric.
        They are beaten where the paired test says so. Chance that is not tested is beaten where the
        system's interval is above it. By a metric that has no tests, nothing is beaten.
    """
    benchmark, subset, name = (str(system[key]) for key in ("benchmark", "subset", "metric"))
    lower = metric(name).better_on(subset) == "lower"
    keys = {"benchmark": benchmark, "subset": subset, "relation": "macro", "metric": name}
    rows = results.rows(**keys, model=system["model"])
    is_control = [controls(str(method), str(system["method"])) for method in rows["method"]]
    compared = [
        *select(results.priors, **keys).to_dict("records"),
        *rows[is_control].to_dict("records"),
    ]
    guess = chance(results, benchmark, subset, name)
    if guess is not None and not any(_is_chance(row) for row in compared):
        compared.append({"model": BASELINE, "method": CHANCE, "value": guess})
    tests = results.tests(benchmark, subset, name)
    entries = []
    for row in compared:
        if _is_chance(row) and row["value"] < SLIGHT:
            continue
        system_key, key = (system["model"], system["method"]), (row["model"], row["method"])
        test = verdict(tests, system_key, key)
        entry = partial(Baseline, TITLES.get(row["method"], row["method"]), row["value"])
        gap = float(system["value"] - row["value"])
        if test is not None:
            evidence = p_value(test.p)
            entries.append(entry(test.favours(name, subset), evidence, test.difference, test.clear))
        elif _is_chance(row):
            beaten = bool(system["high"] < row["value"] if lower else system["low"] > row["value"])
            entries.append(entry(beaten, "by the interval", gap, beaten))
        elif not metric(name).tested:
            entries.append(entry(False, "not tested", gap, None))
    return sorted(entries, key=lambda baseline: baseline.value, reverse=not lower)


def _is_chance(row: Mapping[str, object]) -> bool:
    return (row["model"], row["method"]) == (BASELINE, CHANCE)
