"""What the paired tests say of two systems, and of a system and its control.

The page compares by these and nothing else. The control of a ranking is the model's own answers to
other subjects. The majority baseline, a random answer and chance orient a reader; they are not
tested.
"""

import re
from dataclasses import dataclass
from typing import Final

import pandas as pd

from medprobe.core.tables import BASELINE
from medprobe.metrics import find, list_names
from medprobe.metrics.baselines import LETTERS, MAJORITY, RANDOM_ANSWER
from medprobe.metrics.pairs import System, controls
from medprobe.metrics.results import CONTROLS, select
from medprobe.metrics.shuffled import is_shuffled
from medprobe.metrics.significance import CHANCE
from medprobe.metrics.statistics import LEVEL
from medprobe.report.blocks import Cell
from medprobe.report.numbers import MISSING, format_difference, metric
from medprobe.report.page_data import PageData

SLIGHT: Final = 0.0005  # a share below it is not worth a line
MARK: Final = "†"  # not significant
SIGNS: Final = (
    f"{MARK} not significant: the paired test's p, after Holm's correction, is {LEVEL:g} or more."
)
TITLES: Final = {
    CHANCE: "uniform chance",
    RANDOM_ANSWER: "a random answer of the relation",
    MAJORITY: "the majority baseline",
    LETTERS: "the letters of the names",
}
UNITS: Final = {  # what a benchmark's `Metadata.cluster` holds
    "query_id": "clusters of names",
    "subject_id": "clusters of names",
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
        tests: those of one subset and metric (`PageData.tests`).
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
            return Verdict(sign * difference, float(test["p_holm"].iloc[0]))
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
        format_difference(name, test.difference) + mark,
        test.difference,
        note="not tested" if pd.isna(test.p) else p_value(test.p),
    )


def units(results: PageData, benchmark: str) -> str:
    """What chance has drawn of a benchmark, in the plural."""
    cluster = results.benchmarks[benchmark].cluster
    return UNITS.get(cluster, f"values of {cluster}")


def describe_interval(results: PageData, benchmark: str, name: str) -> str:
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


def chance(results: PageData, benchmark: str, subset: str, name: str) -> float | None:
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
class Control:
    """What a system reaches without what is asked of it, and whether it is shown to be better."""

    name: str
    value: float
    beaten: bool
    evidence: str  # the corrected p of the test, or what stands in its place
    difference: float  # of the system to it
    clear: bool | None  # whether the difference is significant, either way; None: not tested

    @property
    def mark(self) -> str:
        """The sign of a difference that is not significant."""
        return MARK if self.clear is False else ""


def control_title(method: str) -> str:
    """Say what a control is, from its method or `<method>:<variant>`.

    >>> control_title("xfactr:shuffled-confidence"), control_title("chance")
    ('its answers to other subjects', 'uniform chance')
    """
    variant = method.partition(":")[2]
    if is_shuffled(variant):
        return "its answers to other subjects"
    return CONTROLS.get(variant) or TITLES.get(method, method)


def control(results: PageData, system: pd.Series) -> Control | None:
    """Find the control of a system: its answers to other subjects, or the strongest one it has.

    Args:
        results: the tables of the page.
        system: a row of the comparison, of macro means.

    Returns:
        The control in the system's metric, or what guessing reaches where the metric says so. It is
        beaten where the test says so; a guess that is not tested, where the system's interval is
        above it. None where there is no control.
    """
    benchmark, subset, name = (str(system[key]) for key in ("benchmark", "subset", "metric"))
    lower = metric(name).better_on(subset) == "lower"
    rows = results.rows(
        benchmark, subset=subset, relation="macro", metric=name, model=system["model"]
    )
    own = (str(system["model"]), str(system["method"]))
    of_system = [controls((own[0], str(method)), own) for method in rows["method"]]
    compared = rows[of_system][["model", "method", "value"]].to_dict("records")
    if (guess := metric(name).guessing) is not None:
        compared.append({"model": BASELINE, "method": CHANCE, "value": guess})
    tests = results.tests(benchmark, subset, name)
    found = []
    for row in compared:
        method = str(row["method"])
        test = verdict(tests, (system["model"], system["method"]), (row["model"], method))
        gap, value = float(system["value"] - row["value"]), float(row["value"])
        beaten, evidence, clear = False, "not tested", None
        if test is not None:
            gap = test.difference
        if test is not None and not pd.isna(test.p):
            beaten, evidence, clear = test.favours(name, subset), p_value(test.p), test.clear
        elif row["model"] == BASELINE:
            beaten = bool(system["high"] < value if lower else system["low"] > value)
            evidence, clear = "by the interval", beaten
        strength = value if lower else -value
        entry = Control(control_title(method), value, beaten, evidence, gap, clear)
        found.append((not is_shuffled(method.partition(":")[2]), strength, entry))
    return min(found, key=lambda entry: entry[:2])[2] if found else None


def baselines(results: PageData, system: pd.Series) -> dict[str, float]:
    """Return what is reached without a model, by title: orientation.

    Args:
        results: the tables of the page.
        system: a row of the comparison, of macro means; its metric counts.
    """
    keys = {key: str(system[key]) for key in ("benchmark", "subset", "metric")}
    rows = select(results.baselines, **keys, relation="macro")
    values = dict(zip(rows["method"], rows["value"], strict=True))
    return {title: float(values[name]) for name, title in TITLES.items() if name in values}
