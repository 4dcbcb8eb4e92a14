"""Which systems a reader compares, and which system is the control of which.

A system is a model under a method. A reader compares models under one method, methods of one model,
and a system with its control: its answers to other subjects (`metrics.shuffled`), a variant that
the method probes for it, or, for a metric that guessing can reach, the baseline `chance`.
"""

from math import isfinite
from typing import Final

import pandas as pd

from medprobe import metrics
from medprobe.core.places import ABOUT
from medprobe.core.tables import BASELINE, Metadata
from medprobe.metrics.results import is_control, is_swept, select_main
from medprobe.metrics.shuffled import is_shuffled, original_variant

CONTROLS: Final = "controls"  # the family of tests against controls
CHANCE: Final = "chance"
System = tuple[str, str]  # a model, and a method or `<method>:<variant>`


def controls(control: System, system: System) -> bool:
    """Whether a system is the control of another one. A shuffled control belongs to one variant.

    >>> controls(("m", "x:shuffled-order"), ("m", "x:order"))
    True
    >>> controls(("m", "x:shuffled-order"), ("m", "x")), controls(("n", "x:copy"), ("m", "x"))
    (False, False)
    >>> controls(("baseline", "chance"), ("m", "x"))
    True
    """
    (model, method), (controlled_model, controlled) = control, system
    if controlled_model == BASELINE or is_control(controlled) or is_swept(controlled):
        return False
    if control == (BASELINE, CHANCE):
        return True
    base, _, variant = method.partition(":")
    controlled_base, _, another = controlled.partition(":")
    if (model, base) != (controlled_model, controlled_base) or not is_control(method):
        return False
    return not is_shuffled(variant) or original_variant(variant) == another


def compared(a: System, b: System) -> str | None:
    """The family of two systems that a reader compares, or None.

    Settings of a sweep are not compared, nor controls, nor models under different methods.

    >>> compared(("m", "x"), ("n", "x")), compared(("m", "x"), ("m", "x:original"))
    ('under x', 'methods of m')
    >>> compared(("m", "x:copy"), ("n", "x:copy")), compared(("m", "x"), ("n", "y"))
    (None, None)
    """
    (model, method), (other, another) = a, b
    if BASELINE in (model, other) or any(is_swept(x) or is_control(x) for x in (method, another)):
        return None
    if method == another:
        return f"under {method}"
    return f"methods of {model}" if model == other else None


def with_controls(tests: pd.DataFrame) -> pd.DataFrame:
    """Find the control of each system: its answers to other subjects, or its strongest control.

    Args:
        tests: of `metrics.significance`, with the columns `SIGNIFICANCE`.

    Returns:
        One row per benchmark, subset, metric and system, with the columns `model`, `method` and
        `control`, and the `difference` and its interval turned so that it is above 0 where the
        system is better. A metric without a better direction has none.
    """
    rows = tests[tests["family"] == CONTROLS]
    names = {"model_a": "model", "method_a": "method", "method_b": "control"}
    rows = rows.rename(columns=names)
    catalog = metrics.catalog()
    pairs = [*zip(rows["metric"], rows["subset"], strict=True)]
    better = {pair: catalog[pair[0]].better_on(pair[1]) for pair in {*pairs}}
    directions = pd.Series([better[pair] for pair in pairs], rows.index, dtype=object)
    signs = directions.map({"higher": 1, "lower": -1})
    rows, signs = rows[signs.notna()], signs.dropna().astype(float)
    bounds = rows[["low", "high"]].mul(signs, axis=0).agg(["min", "max"], axis=1)
    rows = rows.assign(difference=rows["difference"] * signs, low=bounds["min"], high=bounds["max"])
    is_other = ~rows["control"].map(lambda name: is_shuffled(name.partition(":")[2])).astype(bool)
    keys = ["benchmark", "subset", "metric", "model", "method"]
    ordered = rows.assign(is_other=is_other).sort_values([*keys, "is_other", "difference"])
    return ordered.drop_duplicates(keys).drop(columns=["is_other", "model_b"])


def above_control(tests: pd.DataFrame) -> dict[tuple[str, str, str], dict[str, float]]:
    """Compare each system with its control, by the main metric on the main subset.

    Args:
        tests: of all benchmarks, with the columns `SIGNIFICANCE`.

    Returns:
        By benchmark, model and `<method>:<variant>`: the difference, above 0 where the system is
        better, and of main results the corrected p. They are `above_shuffled` and
        `p_above_shuffled` where the control is the model's answers to other subjects, else
        `above_control` and `p_above_control`.
    """
    numbers = {}
    for benchmark, rows in with_controls(tests).groupby("benchmark"):
        main = select_main(rows, Metadata.read(ABOUT / f"{benchmark}.json"))
        for row in main.itertuples():
            own = is_shuffled(row.control.partition(":")[2])
            name = "above_shuffled" if own else "above_control"
            values = {name: float(row.difference), f"p_{name}": float(row.p_holm)}
            key = (str(benchmark), str(row.model), str(row.method))
            numbers[key] = {name: value for name, value in values.items() if isfinite(value)}
    return numbers
