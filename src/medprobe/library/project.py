"""A project's results as data frames, and drawings of them."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from medprobe.core import places
from medprobe.core.errors import BadInput, nearest
from medprobe.core.tables import QUERY_COLUMNS, Metadata, read_predictions, read_table
from medprobe.figures import plots
from medprobe.figures.rows import Drawing, without_sweeps
from medprobe.metrics import catalog
from medprobe.metrics.results import comparison, where
from medprobe.metrics.significance import SIGNIFICANCE


@dataclass(frozen=True)
class Results:
    """The results of the project in a folder; each table is read when it is first asked for."""

    folder: Path

    @cached_property
    def comparison(self) -> pd.DataFrame:
        """Every number, one a row (`metrics/results.py` has the columns)."""
        return comparison(self.folder / places.SCORES)

    @cached_property
    def significance(self) -> pd.DataFrame:
        """The paired tests (`metrics/significance.py` has the columns); no rows where the stage
        `compare` has not run.
        """
        path = self.folder / places.REPORTS / "significance.csv"
        return pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=SIGNIFICANCE)

    def benchmark(self, name: str) -> Metadata:
        """What to know of a benchmark: its metric, licence, citation. Raises BadInput for a name
        that is none.
        """
        known = sorted(self.comparison["benchmark"].unique())
        if name not in known:
            problem = f"no results on a benchmark '{name}'{nearest(name, known)}"
            raise BadInput(self.folder, problem, f"there are: {', '.join(known)}")
        return Metadata.read(self.folder / places.ABOUT / f"{name}.json")

    def queries(self, benchmark: str) -> pd.DataFrame:
        """A benchmark's queries (`core/tables.py` has the columns)."""
        return read_table(
            self.folder / places.BENCHMARKS / benchmark / "queries.parquet", QUERY_COLUMNS
        )

    def predictions(self, model: str, method: str, benchmark: str) -> pd.DataFrame:
        """What a model answered under a method (`core/tables.py` has the columns)."""
        path = self.folder / places.PREDICTIONS / model / method / f"{benchmark}.parquet"
        return pd.concat(read_predictions(path), ignore_index=True)


def results(project: str | Path = ".") -> Results:
    """The results of the project in this folder. Raises BadInput where there are none."""
    found = Results(Path(project))
    _ = found.comparison
    return found


def figure(rows: pd.DataFrame, metric: str) -> Drawing:
    """Models and methods side by side by a metric's mean over relations, with intervals, as on the
    page: from rows of the comparison, of one benchmark and subset. A notebook shows it.

    Raises BadInput where no row has this metric, or where there are several subsets.
    """
    chosen = without_sweeps(where(rows, metric=metric, relation="macro"))
    if chosen.empty:
        known = sorted(rows.loc[rows["relation"] == "macro", "metric"].unique())
        problem = f"no mean of a metric '{metric}'{nearest(metric, known)}"
        raise BadInput("figure", problem, f"there are: {', '.join(known) or 'none'}")
    several = chosen[["benchmark", "subset"]].drop_duplicates()
    if len(several) > 1:
        there = ", ".join(map(" ".join, several.itertuples(index=False)))
        raise BadInput("figure", f"rows of several benchmarks or subsets: {there}", "choose one")
    benchmark, subset = several.iloc[0]
    share = catalog()[metric].share
    svg = plots.intervals(chosen, "method", "model", plots.label(metric, "macro"), share)
    caption = f"{catalog()[metric].title} on {benchmark} ({subset}), with intervals."
    return Drawing(f"{benchmark}-{subset}-{metric}", svg, caption)
