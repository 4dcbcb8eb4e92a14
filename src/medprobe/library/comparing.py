"""Which of two models knows more of the same facts."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.library.probing import ProbeResult
from medprobe.metrics.significance import Comparison
from medprobe.metrics.statistics import LEVEL

RIGHT = 0.5  # of a query's replicates: one that is right so often counts as right


@dataclass(frozen=True)
class ModelComparison:
    """Two models over the same facts.

    Attributes:
        metric: what is compared, such as `acc_at_1`.
        models: their names.
        difference: of the first to the second, a mean over relations.
        low: lower bound of the difference.
        high: upper bound.
        p: of the paired test; two-sided.
        smallest_difference: a true difference of this size is found four times in five.
        untestable: why no difference could be significant, such as `4 independent answers`; or "".
        only_first: facts that the first alone has right.
        both: facts that both have right.
        only_second: facts that the second alone has right.
        neither: facts that neither has right.
        by_relation: `relation, difference, low, high, n` of each relation.
    """

    metric: str
    models: tuple[str, str]
    difference: float
    low: float
    high: float
    p: float
    smallest_difference: float
    untestable: str
    only_first: int
    both: int
    only_second: int
    neither: int
    by_relation: pd.DataFrame

    @property
    def significant(self) -> bool:
        """Whether the difference is more than chance."""
        return self.p < LEVEL


def compare(
    first: ProbeResult,
    second: ProbeResult,
    *,
    metric: str = "acc_at_1",
    confidence: float = 0.95,
    tests: int = 1,
) -> ModelComparison:
    """Compare two models that were probed on the same facts, by whatever methods.

    Args:
        first: the result of `probe`.
        second: that of another model on the same facts.
        metric: one of the tested metrics, such as `acc_at_1` or `acc_at_10`.
        confidence: of the interval.
        tests: how many comparisons are made; the smallest difference is that of the first of them.

    Raises:
        BadInput: the results have no fact in common, or lack the metric.

    Example:
        >>> medprobe.compare(probe(a, facts), probe(b, facts)).difference  # doctest: +SKIP
    """
    for result in (first, second):
        if not isinstance(result, ProbeResult):
            raise BadInput("compare", f"a {type(result).__name__}", "give two results of probe")
    sides = [result.values for result in (first, second)]
    for result, values in zip((first, second), sides, strict=True):
        if metric not in values:
            raise BadInput(f"compare: {result.model}", f"has no {metric}", "name another metric")
    tables = [values.set_index("query_id").sort_index() for values in sides]
    pair = Comparison((first.model, ""), (second.model, ""), *tables)
    found = pair.test(metric, confidence, LEVEL / tests)
    if found is None:
        raise BadInput("compare", "the results have no fact in common", "probe the same facts")
    test, _ = found
    right, other = (side[metric] >= RIGHT for side in (pair.first, pair.second))
    return ModelComparison(
        metric,
        (first.model, second.model),
        *(test.difference, test.low, test.high, test.p),
        *(test.smallest_difference, test.untestable),
        only_first=int((right & ~other).sum()),
        both=int((right & other).sum()),
        only_second=int((~right & other).sum()),
        neither=int((~right & ~other).sum()),
        by_relation=_by_relation(pair, metric, confidence, sorted({*pair.first["relation"]})),
    )


def _by_relation(
    pair: Comparison, metric: str, confidence: float, relations: Sequence[str]
) -> pd.DataFrame:
    rows = []
    for relation in relations:
        if found := pair.test(metric, confidence, LEVEL, relation):
            test, n = found
            rows.append((relation, test.difference, test.low, test.high, n))
    return pd.DataFrame(rows, columns=["relation", "difference", "low", "high", "n"])
