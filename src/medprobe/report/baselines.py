"""The values that are reached without knowledge.

They are guesses, the commonest answers of each relation, and the controls of methods.
"""

from dataclasses import dataclass
from typing import Final

import pandas as pd

from medprobe.core.tables import BASELINE
from medprobe.metrics.results import is_control, select
from medprobe.metrics.significance import CHANCE
from medprobe.report.numbers import metric
from medprobe.report.results import Results
from medprobe.report.verdicts import SLIGHT, chance, p_value, verdict

TITLES: Final = {CHANCE: "uniform chance", "any_answer": "any answer of the relation"}


@dataclass(frozen=True)
class Baseline:
    """A value that is reached without knowledge, and whether a system is shown to be better."""

    name: str
    value: float
    beaten: bool
    evidence: str = ""  # the corrected p of the paired test, and whether the baseline is better


def baselines(results: Results, system: pd.Series) -> list[Baseline]:
    """List the baselines of a system, the strongest first.

    Args:
        results: the tables of the page.
        system: a row of the comparison, of macro means.

    Returns:
        The benchmark's baselines and the controls of the system's method, each only where it is
        tested; they are beaten where the paired test says so. What is known of chance alone, and
        not tested, is beaten where the system's interval is above it.
    """
    benchmark, subset, name = (str(system[key]) for key in ("benchmark", "subset", "metric"))
    lower = metric(name).better_on(subset) == "lower"
    keys = {"benchmark": benchmark, "subset": subset, "relation": "macro", "metric": name}
    rows = results.rows(**keys, model=system["model"])
    controls = rows[rows["method"].map(is_control).astype(bool)]
    compared = [*select(results.priors, **keys).to_dict("records"), *controls.to_dict("records")]
    guess = chance(results, benchmark, subset, name)
    if guess is not None and not any(_is_chance(row) for row in compared):
        compared.append({"model": BASELINE, "method": CHANCE, "value": guess})
    tests = results.tests(benchmark, subset, name)
    entries = []
    for row in compared:
        title = TITLES.get(row["method"], row["method"])
        test = verdict(
            tests, (system["model"], system["method"]), (row["model"], row["method"])
        )
        if test is not None:
            beaten = test.favours(name, subset)
            worse = "" if beaten or not test.clear else "baseline better, "
            evidence = worse + p_value(test.p)
        elif _is_chance(row):
            beaten = system["high"] < row["value"] if lower else system["low"] > row["value"]
            evidence = ""
        else:
            continue
        if not _is_chance(row) or row["value"] >= SLIGHT:
            entries.append(Baseline(title, row["value"], bool(beaten), evidence))
    return sorted(entries, key=lambda baseline: baseline.value, reverse=not lower)


def _is_chance(row: dict) -> bool:
    return bool((row["model"], row["method"]) == (BASELINE, CHANCE))
