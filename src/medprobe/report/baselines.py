"""The values that are reached without knowledge.

They are guesses, the commonest answers of each relation, and the controls of methods.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import pandas as pd

from medprobe.core.tables import BASELINE
from medprobe.metrics.results import select
from medprobe.metrics.significance import CHANCE, controls
from medprobe.report.numbers import metric
from medprobe.report.results import Results
from medprobe.report.verdicts import MARK, SLIGHT, chance, p_value, verdict

TITLES: Final = {CHANCE: "uniform chance", "any_answer": "any answer of the relation"}


@dataclass(frozen=True)
class Baseline:
    """A value that is reached without knowledge, and whether a system is shown to be better."""

    name: str
    value: float
    beaten: bool
    evidence: str = ""  # the corrected p of the paired test, and whether the baseline is better
    tested: bool = True  # against the system, by a test or by the interval

    @property
    def mark(self) -> str:
        """The sign of a baseline that is not shown to be beaten."""
        return MARK if self.tested and not self.beaten else ""


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
        if test is not None:
            beaten = test.favours(name, subset)
            worse = "" if beaten or not test.clear else "baseline better, "
            entries.append(entry(beaten, worse + p_value(test.p)))
        elif _is_chance(row):
            beaten = system["high"] < row["value"] if lower else system["low"] > row["value"]
            entries.append(entry(bool(beaten)))
        elif not metric(name).tested:
            entries.append(entry(False, "not tested", tested=False))
    return sorted(entries, key=lambda baseline: baseline.value, reverse=not lower)


def _is_chance(row: Mapping[str, object]) -> bool:
    return (row["model"], row["method"]) == (BASELINE, CHANCE)
