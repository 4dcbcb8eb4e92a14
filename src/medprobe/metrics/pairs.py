"""Which systems are compared with each other, and in which family of tests.

A reader compares models under one method, methods under one model, and a system with its control.
Of up to MANY models under a method every two are tested. Of more, each is tested against the best
one, the next, and the reference that `params.yaml` may name.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise
from typing import Final, NamedTuple

import pandas as pd

from medprobe import metrics
from medprobe.core.tables import BASELINE
from medprobe.metrics.controls import controls
from medprobe.metrics.results import is_control, sweep

MANY: Final = 20
System = tuple[str, str]  # a model, and a method or `<method>:<variant>`
Field = tuple[str, str, str]  # metric, method, kind: models that are compared have these in common


class SystemPair(NamedTuple):
    """Two systems that are compared, and the family of the comparison."""

    family: str
    a: System
    b: System


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
