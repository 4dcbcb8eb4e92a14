"""A project's results as data frames, and drawings of them."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from medprobe.core import places
from medprobe.core.errors import BadInput, nearest
from medprobe.core.spreadsheets import read_csv
from medprobe.core.tables import QUERY_COLUMNS, Metadata, read_predictions, read_table
from medprobe.metrics import catalog
from medprobe.metrics.results import comparison, select, without_sweeps
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.report.blocks import Drawing
from medprobe.report.figures import plots


@dataclass(frozen=True)
class Results:
    """The results of a project; each table is read when it is first used.

    Attributes:
        folder: the project's folder.
    """

    folder: Path

    @cached_property
    def comparison(self) -> pd.DataFrame:
        """Every number, one per row; the columns are `metrics.results.COMPARISON`."""
        return comparison(self.folder / places.SCORES)

    @cached_property
    def significance(self) -> pd.DataFrame:
        """The paired tests; the columns are `metrics.significance.SIGNIFICANCE`.

        The table is empty if the stage `compare` has not run.
        """
        path = self.folder / places.REPORTS / "significance.csv"
        return read_csv(path) if path.is_file() else pd.DataFrame(columns=SIGNIFICANCE)

    @cached_property
    def main(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Each model's main result on each benchmark, as in `metrics/main.json`."""
        path = self.folder / places.MAIN
        content: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        return content

    def benchmark(self, name: str) -> Metadata:
        """Return what is recorded of a benchmark: its metric, licence and citation.

        Args:
            name: as in `params.yaml`.

        Raises:
            BadInput: there are no results on a benchmark of this name.
        """
        names = sorted(self.comparison["benchmark"].unique())
        if name not in names:
            problem = f"no results on a benchmark '{name}'{nearest(name, names)}"
            raise BadInput(self.folder / places.SCORES, problem, f"there are: {', '.join(names)}")
        return Metadata.read(self.folder / places.ABOUT / f"{name}.json")

    def queries(self, benchmark: str) -> pd.DataFrame:
        """Return the queries of a benchmark; the columns start with `core.tables.QUERY_COLUMNS`.

        Args:
            benchmark: its name in `params.yaml`.
        """
        return read_table(
            self.folder / places.BENCHMARKS / benchmark / "queries.parquet", QUERY_COLUMNS
        )

    def predictions(self, model: str, method: str, benchmark: str) -> pd.DataFrame:
        """Return the prediction table of a model under a method, all variants and replicates.

        Args:
            model: its name in `params.yaml`.
            method: its name, without a variant.
            benchmark: its name in `params.yaml`.
        """
        path = self.folder / places.PREDICTIONS / model / method / f"{benchmark}.parquet"
        return pd.concat(read_predictions(path), ignore_index=True)


def results(project: str | Path = ".") -> Results:
    """Read the results of a project.

    Args:
        project: the project's folder.

    Raises:
        BadInput: the folder has no results.

    Example:
        A notebook in a project that has run `dvc repro`::

            medprobe.results().comparison.query("metric == 'acc_at_1'")
    """
    project_results = Results(Path(project))
    _ = project_results.comparison
    return project_results


def figure(rows: pd.DataFrame, metric: str) -> Drawing:
    """Draw a metric's mean over relations, with intervals, for models and methods side by side.

    Args:
        rows: rows of the comparison of one benchmark and subset.
        metric: its name, such as `acc_at_1`.

    Returns:
        The drawing of the report; a notebook displays it.

    Raises:
        BadInput: no row has this metric, or the rows are of several benchmarks or subsets.
    """
    means = without_sweeps(select(rows, metric=metric, relation="macro"))
    if means.empty:
        names = sorted(rows.loc[rows["relation"] == "macro", "metric"].unique())
        problem = f"no mean of a metric '{metric}'{nearest(metric, names)}"
        raise BadInput("figure", problem, f"there are: {', '.join(names) or 'none'}")
    groups = means[["benchmark", "subset"]].drop_duplicates()
    if len(groups) > 1:
        group_names = ", ".join(map(" ".join, groups.itertuples(index=False)))
        raise BadInput(
            "figure", f"rows of several benchmarks or subsets: {group_names}", "choose one"
        )
    benchmark, subset = groups.iloc[0]
    share = catalog()[metric].share
    svg = plots.intervals(means, "method", "model", plots.label(metric, "macro"), share)
    caption = f"{catalog()[metric].title} on {benchmark} ({subset}), with intervals."
    return Drawing(f"{benchmark}-{subset}-{metric}", svg, caption)
