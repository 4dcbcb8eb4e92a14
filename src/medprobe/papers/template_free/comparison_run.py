"""The run in MLflow of the comparison of template-based and template-free data sets."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pandas as pd

from medprobe.core import places
from medprobe.core.params import Params
from medprobe.core.spreadsheets import csv_text
from medprobe.core.tables import read_about
from medprobe.metrics.results import comparison
from medprobe.papers.template_free.analyses.data_sets import data_sets
from medprobe.papers.template_free.analyses.ranks import BETWEEN
from medprobe.report.blocks import Chapter, drawings
from medprobe.report.page_data import PageData
from medprobe.tracking.comparisons import make_key
from medprobe.tracking.store import Content, PendingRun

PREFIX: Final = "template-free-"  # of the names of tables
ABOUT: Final = "Filled templates against natural sentences: do they measure the same?"
Tables = Callable[[PageData], dict[str, pd.DataFrame]]
Chapters = Callable[[PageData], list[Chapter]]


def list_runs(
    tables: Tables, chapters: Chapters, single: Sequence[PendingRun], params: Params
) -> list[PendingRun]:
    """List the run, if data sets of the comparison were probed."""
    names = sorted({result.benchmark for result in single})
    builders = {name: read_about(places.BENCHMARKS / name)["builder"] for name in names}
    members = {data.benchmark for data in data_sets(builders)}
    builders = {name: builder for name, builder in builders.items() if name in members}
    if not builders:
        return []
    models = params.models.model_dump(mode="json")
    settings = (repr(params.score), params.seed, params.track.text)
    used = [result for result in single if result.benchmark in builders]
    key = make_key(used, models, *settings)
    content = partial(_template_free, tables, chapters, builders, params)
    return [PendingRun("template-free", "all", "comparison", key, content, about=ABOUT)]


def _template_free(
    tables: Tables, chapters: Chapters, builders: dict[str, str], params: Params
) -> Content:
    """All analyses of the scores in metrics/scores, as tables and drawings."""
    scores = comparison(places.SCORES)
    numbers = scores[scores["benchmark"].isin(builders)].reset_index(drop=True)
    results = PageData(numbers, builders=builders, params=params)
    found = tables(results)
    analyses = {name.removeprefix(PREFIX): table for name, table in found.items()}
    files = {f"{name}.csv": csv_text(table) for name, table in analyses.items()}
    svgs = drawings(
        part for content in chapters(replace(results, tables=found)) for part in content.parts
    )
    files |= {f"figures/{name}": svg for name, svg in svgs.items()}
    note = "Template-based against template-free prompts (Shaier et al.): all of its analyses."
    return Content(_summary(analyses), files=files, note=note)


def _summary(tables: dict[str, pd.DataFrame]) -> dict[str, float]:
    """Kendall's tau and displacement between the kinds by domain, and Pearson's r by kind."""
    numbers: dict[str, Any] = {}
    if "displacement" in tables:
        means = tables["displacement-means"]
        for row in means[means["kinds"] == BETWEEN].to_dict("records"):
            numbers[f"{row['domain']}/displacement"] = row["mean"]
            numbers[f"{row['domain']}/tau"] = row["tau"]
    if "correlation" in tables:
        over_sets = tables["correlation"]["over"] == "data sets"
        for row in tables["correlation"][over_sets].to_dict("records"):
            numbers |= {f"{row['kind']}/pearson_r": row["r"], f"{row['kind']}/pearson_p": row["p"]}
    return {name: float(value) for name, value in numbers.items() if pd.notna(value)}
