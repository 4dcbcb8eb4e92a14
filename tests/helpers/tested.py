"""The tests of systems whose values are made up."""

from collections.abc import Iterable, Mapping

import pandas as pd

from medprobe.core.params import ScoreParams
from medprobe.metrics.pairs import System
from medprobe.metrics.results import average_by_query, is_control
from medprobe.metrics.significance import Field, significance
from medprobe.metrics.summary import weighted


def made_tests(
    systems: Mapping[System, pd.DataFrame],
    metric: str,
    subset: str = "full",
    *,
    kinds: Mapping[str, str] | None = None,
    contrasts: Iterable[tuple[str, str]] = (),
) -> pd.DataFrame:
    """Test systems of one value a query; a model's first method is its main result.

    Args:
        systems: as `Scorer.paired` returns them, perhaps without weights.
        metric: that is tested.
        subset: on which it is tested.
        kinds: of the models.
        contrasts: pairs of subsets.
    """
    main: dict[str, str] = {}
    for model, method in systems:
        if not is_control(method):
            main.setdefault(model, method)
    field = Field("facts", metric, subset, main, kinds or {}, contrasts)
    tables = {
        name: average_by_query(rows if "weight" in rows else weighted(rows))
        for name, rows in systems.items()
    }
    return significance(tables, field, ScoreParams(), {})
