"""Which system is the control of which, and how far each is above its own.

The control of a method's variant is its answers to other subjects (`metrics.shuffled`), or a
variant that the method probes for it; that of a metric that guessing can reach is the baseline.
"""

import pandas as pd

from medprobe import metrics
from medprobe.core.places import ABOUT
from medprobe.core.shuffling import is_shuffled, original_variant
from medprobe.core.tables import BASELINE, Metadata
from medprobe.metrics.results import (
    is_control,
    main_variants,
    primary_metric,
    select,
    select_systems,
    subsets,
)


def controls(control: str, method: str) -> bool:
    """Whether it is the control of this method. A shuffled control belongs to one variant.

    >>> controls("x:shuffled-order", "x:order"), controls("x:shuffled-order", "x")
    (True, False)
    """
    (base, _, variant), (controlled_base, _, another) = (
        control.partition(":"),
        method.partition(":"),
    )
    if base != controlled_base or is_control(method) or not is_control(control):
        return False
    return not is_shuffled(variant) or original_variant(variant) == another


def above_control(tests: pd.DataFrame) -> dict[tuple[str, str, str], dict[str, float]]:
    """Compare each method's main variant with its control.

    Args:
        tests: the paired tests of all benchmarks, with the columns `SIGNIFICANCE`.

    Returns:
        By benchmark, model and method: the difference of the main metric on the main subset, above
        0 where the system is better, and its corrected `p`. The difference is `above_shuffled`
        where the control is the model's answers to other subjects, else `above_control`.
    """
    numbers = {}
    compared = with_controls(tests)
    methods = compared["method"].map(lambda name: name.partition(":")[0]).rename("base")
    for (benchmark, model, method), rows in compared.groupby(["benchmark", "model", methods]):
        metadata = Metadata.read(ABOUT / f"{benchmark}.json")
        metric, subset = primary_metric(rows, metadata), subsets(rows, metadata)[0]
        main = select(rows, metric=metric, subset=subset)
        for row in select_systems(main, main_variants(main)).itertuples():
            shuffled = is_shuffled(row.control.partition(":")[2])
            name = "above_shuffled" if shuffled else "above_control"
            keys = (str(benchmark), str(model), str(method))
            numbers[keys] = {name: float(row.difference), "p": float(row.p_holm)}
    return numbers


def with_controls(tests: pd.DataFrame) -> pd.DataFrame:
    """Find the control of each system: its answers to other subjects, or its strongest control.

    Args:
        tests: paired tests, with the columns `SIGNIFICANCE`.

    Returns:
        The tests of systems with their controls, one per benchmark, subset, metric and system, with
        the columns `model`, `method` and `control`, and the `difference` and its interval turned so
        that it is above 0 where the system is better. A metric without a better direction has none.
    """
    sides = ["model", "method", "other", "control"]
    columns = ["model_a", "method_a", "model_b", "method_b"]
    first = tests.rename(columns=dict(zip(columns, sides, strict=True)))
    second = tests.rename(columns=dict(zip(columns, sides[2:] + sides[:2], strict=True)))
    turned = {"difference": -second["difference"], "low": -second["high"], "high": -second["low"]}
    both = pd.concat([first, second.assign(**turned)], ignore_index=True)
    is_control_of = [
        model != BASELINE and (other == BASELINE or controls(str(control), str(method)))
        for model, method, other, control in both[sides].itertuples(index=False)
    ]
    rows = both[pd.Series(is_control_of, both.index, dtype=bool)]
    keys = ["benchmark", "subset", "metric", "model", "method"]
    catalog = metrics.catalog()
    better = {
        pair: catalog[pair[0]].better_on(pair[1])
        for pair in {*zip(rows["metric"], rows["subset"], strict=True)}
    }
    directions = [better[pair] for pair in zip(rows["metric"], rows["subset"], strict=True)]
    signs = pd.Series(directions, rows.index, dtype=object).map({"higher": 1, "lower": -1})
    rows, signs = rows[signs.notna()], signs.dropna().astype(float)
    bounds = (rows[["low", "high"]].mul(signs, axis=0)).agg(["min", "max"], axis=1)
    rows = rows.assign(difference=rows["difference"] * signs, low=bounds["min"], high=bounds["max"])
    is_other = ~rows["control"].map(lambda name: is_shuffled(name.partition(":")[2])).astype(bool)
    ordered = rows.assign(is_other=is_other).sort_values([*keys, "is_other", "difference"])
    return ordered.drop_duplicates(keys).drop(columns=["is_other", "other"])
