"""`medprobe merge`: combine the results of several groups into one comparison."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe import metrics
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.metrics import Scores
from medprobe.metrics.results import comparison, write_csv
from medprobe.metrics.significance import SIGNIFICANCE, System, significance, split_by_variant
from medprobe.tracking import cards, every_eval_ever, hub_results, shared
from medprobe.tracking.lineage import UNKNOWN


def merge(
    paths: Sequence[Path],
    out: Path,
    forms: Collection[str] = (),
    organization: str = UNKNOWN,
) -> list[str]:
    """Write a folder with the results of projects and results files.

    The folder has `results.json`, `comparison.csv`, the scores, and paired tests of all results
    whose predictions or units are available, with these units. Commands that read a project's
    results can read this folder. Each of `forms`, keys of FORMS, adds a folder of that name.

    Returns:
        The results without tests, as `<model> <method> <benchmark>`.

    Raises:
        BadInput: if the folder exists, and if results cannot be combined.
    """
    if out.exists():
        raise BadInput(out, "already exists", "choose another folder")
    files = {path: shared.read(path) for path in paths}
    merged = shared.merge({str(path): file for path, file in files.items()})
    units = shared.units(files)
    scores: dict[tuple[str, str], dict[str, Scores]] = {}
    for result in merged.results:
        scores.setdefault((result.model, result.method), {})[result.benchmark] = result.scores
    with replacing(out) as folder:
        folder.mkdir()
        shared.write(merged, units, folder)
        for name, benchmark in merged.benchmarks.items():
            benchmark.metadata.write(folder / places.ABOUT / f"{name}.json")
        for (model, method), by_benchmark in scores.items():
            path = folder / places.SCORES / model / f"{method}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(by_benchmark, indent=1) + "\n", encoding="utf-8")
        write_csv(comparison(folder / places.SCORES), folder / "comparison.csv")
        write_csv(_tests(merged, units), folder / places.REPORTS / "significance.csv")
        for form in forms:
            for name, text in FORMS[form](merged, organization).items():
                (folder / form / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / form / name).write_text(text, encoding="utf-8")
    untested = [result for result in merged.results if result.table not in units]
    return [f"{result.model} {result.method} {result.benchmark}" for result in untested]


def _tests(merged: shared.ResultsFile, units: Mapping[Path, pd.DataFrame]) -> pd.DataFrame:
    """Compute the paired tests over all units, as the stage `significance` does for predictions.

    A model of unknown kind is its own kind, since some metrics compare within one kind only.
    """
    kinds = {result.model: result.kind or result.model for result in merged.results}
    systems: dict[str, dict[System, pd.DataFrame]] = {}
    for result in merged.results:
        if result.table in units:
            variants = split_by_variant(units[result.table], result.model, result.method)
            systems.setdefault(result.benchmark, {}).update(variants)
    params = Params()
    tables = []
    for name, by_system in sorted(systems.items()):
        pairs = _contrasts(by_system.values())
        tests = significance(
            by_system, name, params.score, params.seed, kinds=kinds, contrasts=pairs
        )
        tables.append(tests)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=SIGNIFICANCE)


def _contrasts(tables: Iterable[pd.DataFrame]) -> list[tuple[str, str]]:
    """The pairs of subsets on which the families of these tables compare a system with itself."""
    metric_names = {name for table in tables for name in table}
    return [
        pair
        for family in map(metrics.find, metrics.list_names())
        if metric_names & {metric.name for metric in family.METRICS}
        for pair in family.CONTRASTS
    ]


FORMS: Final[dict[str, Callable[[shared.ResultsFile, str], dict[str, str]]]] = {
    "every-eval-ever": every_eval_ever.records,
    "eval-results": hub_results.entries,
    "cards": lambda merged, _: cards.cards(merged),
}
