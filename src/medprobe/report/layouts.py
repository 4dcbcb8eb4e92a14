"""The layouts of query pages.

They show ranked names and the perplexity of prompts. Benchmarks whose predictions are something
else bring a layout of their own (`sections.Section`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.tables import QUERY_COLUMNS, read_table

DEPTH: Final = 10  # ranked names of a query

Cells = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]
"""From the predictions of one variant and the queries: rows with `query_id`, `replicate`, `rank`
(the number of the cell), `prediction`, `prediction_id` and `hit`. A number or label is its own
identifier."""


@dataclass(frozen=True)
class Layout:
    """What the query pages of a kind of benchmark contain."""

    queries: Callable[[Path], pd.DataFrame]  # of the benchmark in a folder, as QUERY_COLUMNS
    cells: dict[str, Cells]  # by the family of the predictions
    heads: tuple[str, ...]  # of the cells; if empty, a column `heads` of the queries has them
    numbers: dict[str, Cells] = field(default_factory=dict)  # of cells neither right nor wrong
    ranked: bool = False  # whether any of the first cells can be right, or only the last cell
    verdict: str = "right"  # the word for a successful model
    answers: str = "Right answers"  # the label of the answers
    note: str = ""
    labels: tuple[str, ...] = ()  # answers that name nothing


def ranked_names(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """Return the best names of each query."""
    return predictions[predictions["rank"] <= DEPTH]


def _perplexities(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    values = predictions["perplexity"].map("perplexity {:.3g}".format)
    return predictions.assign(prediction=values, prediction_id=values, hit=False)


def _prompts(folder: Path) -> pd.DataFrame:
    return read_table(folder / "queries.parquet", QUERY_COLUMNS)


RANKED: Final = Layout(
    _prompts,
    {"accuracy": ranked_names},
    tuple(map(str, range(1, DEPTH + 1))),
    {"perplexity": _perplexities},
    ranked=True,
)
