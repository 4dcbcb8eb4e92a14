"""The sections of the page: one file, one section.

A file ends with its `SECTION`, which says what a paper, an extension or the kernel adds to a
benchmark's chapter and wherever else results are shown. Sections know nothing of HTML: `page` shows
what they return.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.core.params import Params
from medprobe.core.plugins import find_plugins, load
from medprobe.core.tables import QUERY_COLUMNS, Metadata, read_table
from medprobe.report.blocks import Chapter, Drawing, Part
from medprobe.report.page_data import PageData

DEPTH: Final = 10  # ranked names of a query

Cells = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]
"""From the predictions of one variant and the queries: rows with `query_id`, `replicate`, `rank`
(the number of the cell), `prediction`, `prediction_id` and `hit`. A number or label is its own
identifier."""


@dataclass(frozen=True)
class Layout:
    """What the query pages of a kind of benchmark contain."""

    queries: Callable[[Path], pd.DataFrame]  # of the benchmark in a folder, as QUERY_COLUMNS
    cells: dict[str, Cells]  # by what scores the predictions
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


Steps = list[tuple[int, float]]  # a number by step


@dataclass(frozen=True)
class SingleResult:
    """One result, for its run in MLflow.

    Attributes:
        rows: of the comparison.
        metadata: of the benchmark.
        path: its prediction table, with the notes in the same folder.
        folder: of the benchmark.
        names: entities go by their names, which may be licensed, not by their identifiers.
        settings: of the method when the result was made, by `<method>.<setting>`.
    """

    rows: pd.DataFrame
    metadata: Metadata
    path: Path
    folder: Path
    names: bool
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.path.parent.parent.name

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.path.parent.name


@dataclass(frozen=True)
class Section:
    """What is shown of one kind of numbers. Everything is empty where its data is absent.

    Attributes:
        place: sections follow one another by it in a benchmark's chapter.
        show: the parts of a benchmark's chapter.
        chapters: further chapters, across benchmarks.
        notes: sentences at the start of a benchmark's chapter.
        tables: tables that the report has as CSV files, by the name of the file without `.csv`.
            `show` and `chapters` find them in `PageData.tables`.
        draw: the drawings of one result.
        inputs: further outputs that one result was made from, as DVC names them.
        series: numbers of one result by step, by name.
        runs: runs of MLflow over several results, from the results of single models
            (`tracking.store.PendingRun`).
        layout: of the query pages, for benchmarks whose predictions are no rankings of names.
        cells: by scorer, how query pages of rankings show further predictions.
    """

    place: int
    show: Callable[[PageData, str], list[Part]] = lambda results, benchmark: []
    chapters: Callable[[PageData], list[Chapter]] = lambda results: []
    notes: Callable[[PageData, str], list[str]] = lambda results, benchmark: []
    tables: Callable[[PageData], dict[str, pd.DataFrame]] = lambda results: {}
    draw: Callable[[SingleResult], Iterable[Drawing]] = lambda result: ()
    inputs: Callable[[SingleResult], list[str]] = lambda result: []
    series: Callable[[SingleResult], Mapping[str, Steps]] = lambda result: {}
    runs: Callable[[Sequence[Any], Params], list[Any]] = lambda single, params: []
    layout: Layout | None = None
    cells: Mapping[str, Cells] = field(default_factory=dict)


def draw_result(result: SingleResult) -> dict[str, str]:
    """Draw the figures of one result: `figures/<name>.svg` -> SVG."""
    if result.rows.empty:
        return {}
    drawings = (drawing for section in find_sections() for drawing in section.draw(result))
    return {f"figures/{drawing.file}": drawing.svg for drawing in drawings}


def find_sections() -> list[Section]:
    """Return all sections in their order on the page."""
    return _load(tuple(find_plugins("sections").values()))


@cache
def _load(plugins: tuple) -> list[Section]:
    sections: list[Section] = [load(plugin, "SECTION", Section) for plugin in plugins]
    return sorted(sections, key=lambda section: section.place)
