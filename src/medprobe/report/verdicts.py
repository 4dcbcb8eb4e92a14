"""What the paired tests say of two systems, and of a system and its control.

The page compares by these and nothing else. The control of a ranking is the model's own answers to
other subjects. Main results have a corrected p; of other pairs there are intervals, and nothing is
called significant.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

import pandas as pd

from medprobe.metrics.baselines import LETTERS, MAJORITY, RANDOM_ANSWER
from medprobe.metrics.pairs import CONTROLS as OF_CONTROLS
from medprobe.metrics.pairs import System
from medprobe.metrics.results import CONTROLS, select
from medprobe.metrics.shuffled import is_shuffled
from medprobe.metrics.significance import CHANCE
from medprobe.metrics.statistics import LEVEL
from medprobe.report.blocks import Cell
from medprobe.report.numbers import MISSING, format_difference, metric
from medprobe.report.page_data import PageData

SLIGHT: Final = 0.0005  # a share below it is not worth a line
MARK: Final = "†"  # may be nothing
SIGNS: Final = (
    f"{MARK} the corrected p is {LEVEL:g} or more; where none is given, the interval contains 0."
)
TITLES: Final = {
    CHANCE: "uniform chance",
    RANDOM_ANSWER: "a random answer of the relation",
    MAJORITY: "the majority baseline",
    LETTERS: "the letters of the names",
}


@dataclass(frozen=True)
class Verdict:
    """The difference a - b of two systems, and what the paired test says of it.

    Attributes:
        difference: a - b, over the same queries.
        low: the lower end of its interval.
        high: the upper end.
        p: corrected for its family; NaN where the pair is in none that is tested.
        untestable: why no difference could be significant; or empty.
    """

    difference: float
    low: float
    high: float
    p: float
    untestable: str = ""

    @property
    def clear(self) -> bool:
        """Whether it is significant; of a pair that is not tested, whether its interval lacks 0."""
        if pd.isna(self.p):
            return bool(self.low > 0 or self.high < 0)
        return self.p < LEVEL

    @property
    def evidence(self) -> str:
        """The p, why there can be none, or the interval alone."""
        if self.untestable:
            return f"cannot be tested: {self.untestable}"
        return "" if pd.isna(self.p) else p_value(self.p)

    def favours(self, name: str, subset: str) -> bool:
        """Whether a is clearly better than b by this metric on this subset."""
        lower = metric(name).better_on(subset) == "lower"
        return self.clear and (self.difference < 0 if lower else self.difference > 0)


def verdict(tests: pd.DataFrame, a: System, b: System) -> Verdict | None:
    """Find the test of two systems, or of one with itself on two subsets."""
    tests = tests[tests["relation"] == "macro"].sort_values("p_holm", na_position="first")
    columns = (tests[name].tolist() for name in ("model_a", "method_a", "model_b", "method_b"))
    rows = {pair: number for number, pair in enumerate(zip(*columns, strict=True))}
    for pair, sign in (((*a, *b), 1), ((*b, *a), -1)):
        if pair in rows:
            return as_verdict(tests.iloc[rows[pair]], sign)
    return None


def as_verdict(row: pd.Series, sign: int = 1) -> Verdict:
    """A row of the tests; with -1 as its sign, the difference b - a."""
    gap, *ends = (sign * float(row[key]) for key in ("difference", "low", "high"))
    cause = "" if pd.isna(row["untestable"]) else str(row["untestable"])  # CSV has no empty text
    return Verdict(gap, min(ends), max(ends), float(row["p_holm"]), cause)


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


def difference(name: str, test: Verdict | None) -> str | Cell:
    """Return a difference of a metric, marked where it may be nothing; below it its interval."""
    if test is None:
        return MISSING
    mark = "" if test.clear else f" {MARK}"
    return Cell(
        format_difference(name, test.difference) + mark,
        test.difference,
        note="; ".join(filter(None, [difference_interval(name, test), test.evidence])),
    )


def difference_interval(name: str, test: Verdict) -> str:
    """The interval of a difference in brackets; empty where there is none."""
    if pd.isna(test.low):
        return ""
    return f"[{format_difference(name, test.low)}, {format_difference(name, test.high)}]"


def chance(results: PageData, benchmark: str, subset: str, name: str) -> float | None:
    """Return what guessing reaches.

    It is macro acc@k of the benchmark's own names in random order, or what a metric says of itself.
    It is None if it is not known.
    """
    if metric(name).guessing is not None:
        return metric(name).guessing
    at, table = re.fullmatch(r"acc_at_(\d+)", name), results.statistics.get(benchmark)
    if not at or table is None or (column := f"chance_at_{at[1]}") not in table:
        return None
    value = table[(table["subset"] == subset) & (table["relation"] != "all")][column].mean()
    return None if pd.isna(value) else float(value)


def control_title(method: str) -> str:
    """Say what a control is, from its method or `<method>:<variant>`.

    >>> control_title("xfactr:shuffled-confidence"), control_title("chance")
    ('its answers to other subjects', 'uniform chance')
    """
    variant = method.partition(":")[2]
    if is_shuffled(variant):
        return "its answers to other subjects"
    return CONTROLS.get(variant) or TITLES.get(method, method)


@dataclass(frozen=True)
class Control:
    """What a main result is without what is asked of it, and the test of the two."""

    name: str
    value: float
    test: Verdict
    state: Literal["above", "below", "not", "untestable"]  # significantly better, worse, or not


def control(results: PageData, system: pd.Series) -> Control | None:
    """Find the tested control of a main result, which is a row of the comparison of macro means."""
    return _against(results, system, OF_CONTROLS)


def letters(results: PageData, system: pd.Series) -> Control | None:
    """Find the test of a main result against the baseline that looks at the names alone."""
    return _against(results, system, LETTERS)


def _against(results: PageData, system: pd.Series, family: str) -> Control | None:
    benchmark, subset, name = (str(system[key]) for key in ("benchmark", "subset", "metric"))
    tests = results.tests(benchmark, subset, name)
    own = {"model_a": str(system["model"]), "method_a": str(system["method"])}
    tests = select(tests, family=family, **own)
    if tests.empty:
        return None
    row, test = tests.iloc[0], as_verdict(tests.iloc[0])
    state: Literal["above", "below", "not", "untestable"] = "not"
    if test.untestable:
        state = "untestable"
    elif test.clear:
        state = "above" if test.favours(name, subset) else "below"
    value = float(system["value"]) - test.difference
    return Control(control_title(str(row["method_b"])), value, test, state)


def baselines(results: PageData, system: pd.Series) -> dict[str, float]:
    """Return what is reached without a model, by title: orientation, not tested."""
    keys = {key: str(system[key]) for key in ("benchmark", "subset", "metric")}
    rows = select(results.baselines, **keys, relation="macro")
    values = dict(zip(rows["method"], rows["value"], strict=True))
    named = {name: title for name, title in TITLES.items() if name != LETTERS}
    return {title: float(values[name]) for name, title in named.items() if name in values}
