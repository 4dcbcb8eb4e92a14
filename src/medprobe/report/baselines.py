"""The values that are reached without knowledge.

They are uniform chance, the commonest answers of each relation, and the controls of methods.
"""

from dataclasses import dataclass

import pandas as pd

from medprobe.metrics.results import is_control, select
from medprobe.report.numbers import metric
from medprobe.report.results import Results
from medprobe.report.verdicts import chance, p_value, verdict


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
        Uniform chance, which is beaten where the system's interval is above it; the benchmark's
        priors and the control of the system's method, which are beaten where the paired test says
        so; each only where it is known.
    """
    benchmark, subset, name = (str(system[key]) for key in ("benchmark", "subset", "metric"))
    lower = metric(name).better_on(subset) == "lower"
    entries = []
    if (value := chance(results, benchmark, subset, name)) is not None:
        beaten = system["high"] < value if lower else system["low"] > value
        entries.append(Baseline("uniform chance", value, bool(beaten)))
    keys = {"benchmark": benchmark, "subset": subset, "relation": "macro", "metric": name}
    rows = results.rows(**keys, model=system["model"])
    priors = select(results.priors, **keys)
    controls = rows[rows["method"].map(is_control).astype(bool)]
    tests = results.tests(benchmark, subset, name)
    for row in [*map(dict, priors.to_dict("records")), *controls.to_dict("records")]:
        a, b = (system["model"], system["method"]), (row["model"], row["method"])
        if (test := verdict(tests, a, b)) is not None:
            beaten = test.favours(name, subset)
            worse = "" if beaten or not test.clear else "baseline better, "
            evidence = worse + p_value(test.p)
            entries.append(Baseline(row["method"], row["value"], beaten, evidence))
    return sorted(entries, key=lambda baseline: baseline.value, reverse=not lower)
