"""`medprobe merge`: the results of several groups in one comparison."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from medprobe import metrics
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.tables import Metadata
from medprobe.metrics import Scores
from medprobe.metrics.results import comparison, write_csv
from medprobe.metrics.significance import SIGNIFICANCE, System, significance, split_by_variant
from medprobe.tracking import shared


def merge(paths: Sequence[Path], out: Path) -> list[str]:
    """Write a folder of the results of projects and results files: `results.json` with all of
    them, `comparison.csv`, the paired tests of those whose predictions or units are there, these
    units, and scores where a project has them, so that what reads a project's results reads these.
    Gives what is not tested: `<model> <method> <benchmark>`.

    Raises BadInput where the folder is there already, and where results do not go together.
    """
    if out.exists():
        raise BadInput(out, "is there already", "choose another folder")
    files = {path: shared.read(path) for path in paths}
    together = shared.merged({str(path): file for path, file in files.items()})
    units: dict[Path, pd.DataFrame] = {}  # by `Result.table`
    for path, file in files.items():
        for one in file.results:
            if one.table not in units and (table := shared.units(path, one)) is not None:
                units[one.table] = table
    scores: dict[tuple[str, str], dict[str, Scores]] = {}
    for one in together.results:
        scores.setdefault((one.model, one.method), {})[one.benchmark] = one.scores
    with replacing(out) as folder:
        folder.mkdir()
        shared.write(together, folder / shared.NAME)
        for name, benchmark in together.benchmarks.items():
            about = {**benchmark.about, "sources": tuple(benchmark.about["sources"])}
            Metadata(**about).write(folder / places.ABOUT / f"{name}.json")
        for (model, method), by_benchmark in scores.items():
            path = folder / places.SCORES / model / f"{method}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(by_benchmark, indent=1) + "\n", encoding="utf-8")
        write_csv(comparison(folder / places.SCORES), folder / "comparison.csv")
        write_csv(_tests(together, units), folder / places.REPORTS / "significance.csv")
        for below, table in units.items():
            (folder / shared.UNITS / below).parent.mkdir(parents=True, exist_ok=True)
            table.to_parquet(folder / shared.UNITS / below, index=False)
    left = [one for one in together.results if one.table not in units]
    return [f"{one.model} {one.method} {one.benchmark}" for one in left]


def _tests(together: shared.ResultsFile, units: Mapping[Path, pd.DataFrame]) -> pd.DataFrame:
    """The paired tests over all units, as the stage `compare` makes them of predictions. Models of
    unknown kind are not compared by what differs from kind to kind."""
    kinds = {one.model: one.kind or one.model for one in together.results}
    systems: dict[str, dict[System, pd.DataFrame]] = {}
    for one in together.results:
        if one.table in units:
            of_variants = split_by_variant(units[one.table], one.model, one.method)
            systems.setdefault(one.benchmark, {}).update(of_variants)
    params = Params()
    tables = [
        significance(
            some, name, params.score, params.seed, kinds=kinds, contrasts=_contrasts(some.values())
        )
        for name, some in sorted(systems.items())
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=SIGNIFICANCE)


def _contrasts(tables: Iterable[pd.DataFrame]) -> list[tuple[str, str]]:
    """The pairs of subsets on which the families of these tables compare a system with itself."""
    measured = {name for table in tables for name in table}
    return [
        pair
        for family in map(metrics.find, metrics.list_names())
        if measured & {metric.name for metric in family.METRICS}
        for pair in family.CONTRASTS
    ]
