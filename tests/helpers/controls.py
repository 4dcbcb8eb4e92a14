"""Tests of predictions against their controls, of one benchmark."""

import pandas as pd

from medprobe.core.params import ScoreParams
from medprobe.core.tables import Metadata
from medprobe.metrics import Evaluated
from medprobe.metrics.results import COMPARISON, main_variants, to_rows
from medprobe.metrics.significance import Field, significance


def compare_with_controls(
    found: Evaluated, metadata: Metadata, params: ScoreParams, system: tuple[str, str]
) -> pd.DataFrame:
    """Test the variants of a method against their controls.

    Returns:
        Columns `significance.SIGNIFICANCE`.
    """
    model, method = system
    rows = pd.DataFrame(to_rows({"": found.scores}, model, method), columns=COMPARISON)
    field = Field.of(rows, metadata, dict(main_variants(rows)), {})
    values, controls = (
        {
            (model, f"{method}:{variant}" if variant else method): of_variant
            for variant, of_variant in (table.groupby("variant") if len(table) else ())
        }
        for table in (found.paired, found.controls)
    )
    return significance(values, field, params, controls)
