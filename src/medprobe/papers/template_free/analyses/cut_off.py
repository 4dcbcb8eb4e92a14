"""Which models may have read LIPID's sentences: the cut-off against the end of their training."""

from datetime import date
from pathlib import Path

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.core.params import ModelParams, Models
from medprobe.core.tables import QUERY_COLUMNS, read_table


def cut_off(models: Models, folder: Path, probed: list[str]) -> pd.DataFrame:
    """Say for each probed model whether it may have read LIPID's sentences.

    Returns:
        `model, trained_until, cut_off, verdict`; empty where `folder` holds no LIPID. The verdict
        is `unseen` where training ended at the cut-off or before it, `may be read` where it ended
        later, `unknown` where params.yaml does not say.

    Raises:
        BadInput: a `trained_until` is not a date.
    """
    path = folder / "queries.parquet"
    if not path.is_file():
        return pd.DataFrame()
    day = str(read_table(path, [*QUERY_COLUMNS, "cut_off"])["cut_off"].max())
    all_models = models.all()
    rows = []
    for name in probed:
        until = all_models.get(name, ModelParams()).trained_until
        verdict = _verdict(name, until, date.fromisoformat(day))
        rows.append((name, until or "not declared", day, verdict))
    return pd.DataFrame(rows, columns=["model", "trained_until", "cut_off", "verdict"])


def _verdict(model: str, until: str | None, day: date) -> str:
    if until is None:
        return "unknown"
    try:
        late = date.fromisoformat(until) > day
    except ValueError:
        where = f"params.yaml: models: {model}.trained_until"
        raise BadInput(where, f"not a date: {until}", "write YYYY-MM-DD") from None
    return "may be read" if late else "unseen"
