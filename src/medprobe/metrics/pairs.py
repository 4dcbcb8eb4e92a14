"""Which systems are compared with each other, and which system is the control of which.

A reader compares models under one method, methods under one model, and a system with its control.
Of up to MANY models under a method every two are tested. Of more, each is tested against the best
one, the next, and the reference that `params.yaml` may name. The control of a method's variant is
its answers to other subjects (`metrics.shuffled`), or a variant that the method probes for it; that
of a metric that guessing can reach is the baseline.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise
from typing import Final, NamedTuple

import pandas as pd

from medprobe import metrics
from medprobe.core.places import ABOUT
from medprobe.core.shuffling import is_shuffled, original_variant
from medprobe.core.tables import BASELINE, Metadata
from medprobe.metrics.results import (
    is_control,
    main_variants,
    select_main,
    select_systems,
    sweep,
)

MANY: Final = 20
System = tuple[str, str]  # a model, and a method or `<method>:<variant>`
Field = tuple[str, str, str]  # metric, method, kind: models that are compared have these in common


class SystemPair(NamedTuple):
    """Two systems that are compared, and the family of the comparison."""

    family: str
    a: System
    b: System


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


def pair_systems(a: System, b: System) -> SystemPair | None:
    """Two systems as a pair with its family, or None where a reader would not compare them.

    Settings of a sweep, or different models under different methods.

    >>> pair_systems(("m", "x"), ("n", "x")).family
    'models under x'
    >>> pair_systems(("m", "x"), ("m", "x:original")).family
    'methods under m'
    >>> pair_systems(("m", "x"), ("m", "x:copy")).family
    'controls under x'
    >>> pair_systems(("m", "x:copy"), ("n", "x:copy"))
    >>> pair_systems(("m", "x:shuffled-order"), ("m", "x:order")).family
    'controls under x'
    >>> pair_systems(("m", "x:shuffled-order"), ("m", "x:confidence"))
    >>> pair_systems(("baseline", "chance"), ("m", "x"))
    SystemPair(family='chance under x', a=('m', 'x'), b=('baseline', 'chance'))
    """
    (model, method), (other, another) = a, b
    if sweep(method) or sweep(another):
        return None
    if BASELINE in (model, other):
        system, baseline = (b, a) if model == BASELINE else (a, b)
        if model == other or is_control(system[1]):
            return None
        return SystemPair(f"{baseline[1]} under {system[1].partition(':')[0]}", system, baseline)
    if is_control(method) or is_control(another):
        control, probed_method = (method, another) if is_control(method) else (another, method)
        same = model == other and controls(control, probed_method)
        return (
            SystemPair(f"controls under {probed_method.partition(':')[0]}", a, b) if same else None
        )
    if method == another:
        return SystemPair(f"models under {method}", a, b)
    return SystemPair(f"methods under {model}", a, b) if model == other else None


def list_pairs(
    systems: Mapping[System, pd.DataFrame],
    subset: str,
    kinds: Mapping[str, str],
    reference: str | None,
) -> Iterator[tuple[SystemPair, dict[str, str | None]]]:
    """The pairs of systems that a reader compares on a subset.

    Args:
        systems: the rows of each, one a query, with the columns of metrics and `weight`.
        subset: its name.
        kinds: the kind of each model. A metric that differs between kinds is compared within them.
        reference: the model that each of many is tested against.

    Yields:
        The pair, and the family of its test by each metric that both have. It is None where models
        are many and these two are not tested: `reference` is named before the results are known,
        so its tests are a family of their own; the best and the next model are not, so Holm's
        correction counts the pairs that they were chosen from.
    """
    catalog = metrics.catalog()

    def field(system: System, name: str) -> Field:
        kind = kinds.get(system[0], "") if catalog[name].within_kind else ""
        return name, system[1], kind

    means = {system: _means(rows, catalog) for system, rows in systems.items()}
    fields: dict[Field, dict[str, float]] = defaultdict(dict)
    for system in sorted(systems):
        for name, mean in means[system].items():
            is_lower = catalog[name].better_on(subset) == "lower"
            fields[field(system, name)][system[0]] = round(mean if is_lower else -mean, 12)
    chosen = {key: _choose(numbers) for key, numbers in fields.items() if len(numbers) > MANY}
    for a, b in combinations(sorted(systems), 2):
        if pair := pair_systems(a, b):
            families: dict[str, str | None] = {}
            for name in (name for name in means[a] if name in means[b]):
                if field(a, name)[2] == field(b, name)[2]:
                    pairs = chosen.get(field(a, name)) if a[1] == b[1] else None
                    families[name] = _family(pair, pairs, reference)
            yield pair, families


def _means(rows: pd.DataFrame, catalog: Mapping[str, metrics.Metric]) -> dict[str, float]:
    """The macro mean of each metric of a system that has values."""
    weights = {name: rows["weight"].where(rows[name].notna()) for name in rows if name in catalog}
    return {
        name: float((rows[name] * weight).sum() / weight.sum())
        for name, weight in weights.items()
        if weight.notna().any()
    }


def _choose(numbers: Mapping[str, float]) -> set[frozenset[str]]:
    """The best model with each other one, and each with the next."""
    best, *others = ranked = sorted(numbers, key=numbers.__getitem__)
    pairs = [*pairwise(ranked), *((best, other) for other in others)]
    return {frozenset(models) for models in pairs}


def _family(
    pair: SystemPair, chosen: set[frozenset[str]] | None, reference: str | None
) -> str | None:
    models = frozenset((pair.a[0], pair.b[0]))
    if chosen is None:
        return pair.family
    if reference in models:
        return f"{pair.family} against {reference}"
    return pair.family if models in chosen else None


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
        main = select_main(rows, Metadata.read(ABOUT / f"{benchmark}.json"))
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
