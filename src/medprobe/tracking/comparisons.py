"""MLflow runs over several results: those of each model, of paired tests, and of sections."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core import places
from medprobe.core.dvc_records import flat
from medprobe.core.params import Params
from medprobe.core.parts import table_fingerprint
from medprobe.core.spreadsheets import csv_text
from medprobe.core.tables import BASELINE, Metadata
from medprobe.metrics import catalog
from medprobe.metrics.baselines import LETTERS, MAJORITY, SHOWN
from medprobe.metrics.pairs import above_control
from medprobe.metrics.results import COMPARISON, select_main
from medprobe.metrics.significance import MAIN as MAIN_RESULTS
from medprobe.metrics.significance import SIGNIFICANCE, read_tests
from medprobe.report.sections import find_sections
from medprobe.tracking import runs
from medprobe.tracking.headlines import legal, main_variant, select_means
from medprobe.tracking.store import Content, PendingRun

EVERY: Final = "all benchmarks"  # an experiment
ABOUT_EVERY: Final = (
    "A run for each model. `<benchmark>/<metric>` is the mean over relations of the benchmark's "
    "main metric, of the model's main result: the method follows from its kind and params.yaml. A "
    "model has none where no method gave it that metric. `means.csv` has all methods. The runs "
    "`baseline · majority` and `baseline · letters` are reached without a model."
)
ABOUT_BASELINES: Final = {
    MAJORITY: "Each relation's best constant list of answers.",
    LETTERS: "The names whose letters are most like the subject's.",
}
LOGGED: Final = ("difference", "p")


def results(single: Sequence[PendingRun], params: Params) -> list[PendingRun]:
    """List the runs over the results of single models; a run with new content has a new key.

    The paired tests are those of the stage `significance`, if it has run.
    """
    entries = []
    tests = read_tests() if places.SIGNIFICANCE.is_file() else pd.DataFrame(columns=SIGNIFICANCE)
    for benchmark, table in tests.groupby("benchmark"):
        key = make_key([], table_fingerprint(table), repr(params.score), params.seed)
        content = partial(_tests, str(benchmark), table, params)
        entries.append(PendingRun(str(benchmark), "all", "paired-tests", key, content))
    for model in sorted({result.model for result in single}):
        own = [result for result in single if result.model == model]
        content = partial(_means, model, own, params)
        entries.append(PendingRun(EVERY, model, "all", make_key(own), content, about=ABOUT_EVERY))
    for name in SHOWN if single else ():
        if values := _baseline(name):
            content = partial(Content, values, note=ABOUT_BASELINES[name])
            key = make_key([], values)
            entries.append(PendingRun(EVERY, BASELINE, name, key, content, about=ABOUT_EVERY))
    for section in find_sections():
        entries += section.runs(single, params)
    return entries


def _baseline(baseline: str) -> dict[str, float]:
    """A baseline of each benchmark that has it, as a model's values of `_means`."""
    summary = _read_json(places.SUMMARY)
    return {
        legal(f"{name}/{_metric(name)}"): models[BASELINE][baseline]
        for name, models in summary.items()
        if baseline in models.get(BASELINE, {})
    }


def _metric(benchmark: str) -> str:
    return Metadata.read(places.ABOUT / f"{benchmark}.json").primary_metric


def _means(model: str, results: Sequence[PendingRun], params: Params) -> Content:
    """The main result of each benchmark, and a table of all methods."""
    tables = []
    for result in results:
        path = places.PREDICTIONS / model / result.method / f"{result.benchmark}.parquet"
        rows, metadata = runs.scored_rows(path, params)
        rows = select_means(rows[rows["method"] == main_variant(rows)])
        if len(rows):
            tables.append(select_main(rows, metadata))
    table = pd.concat([pd.DataFrame(columns=COMPARISON), *tables])
    values: dict[str, float] = {}
    settings: dict[str, Any] = {}
    for benchmark, by_model in _read_json(places.MAIN).items():
        if numbers := by_model.get(model):
            metric = _metric(benchmark)
            if metric in numbers:
                values[legal(f"{benchmark}/{metric}")] = float(numbers[metric])
                about = {"method": numbers["method"], "metric": metric, "subset": numbers["subset"]}
                settings |= {f"{benchmark}.{name}": value for name, value in about.items()}
    note = f"The main result of the model **{model}** on each benchmark."
    files = {"means.csv": csv_text(table, "%.6g")}
    return Content(values, params=settings, files=files, note=note)


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return content


def with_controls(single: Sequence[PendingRun]) -> list[PendingRun]:
    """Add the differences to its control and to the best model to each result that has them.

    `above_shuffled` is the difference of the main metric to the model's answers to other subjects,
    `above_control` that to another control, `to_best` that to the best main result,
    and `p_…` the corrected p (`metrics.pairs.above_control`).
    """
    if not places.SIGNIFICANCE.is_file():
        return list(single)
    tests = read_tests()
    numbers, gaps = above_control(tests), _gaps(tests)
    results = []
    for result in single:
        key = (result.benchmark, result.model, result.method)
        own = {name for name in numbers if (*name[:2], name[2].partition(":")[0]) == key}
        # Of several variants the main result, which alone has a p.
        best = min(own, key=lambda name: (len(numbers[name]) < 2, name), default=None)
        late = dict(numbers[best]) if best else {}
        late |= gaps.get(key, {})
        results.append(replace(result, late=late))
    return results


def _gaps(tests: pd.DataFrame) -> dict[tuple[str, str, str], dict[str, float]]:
    """The difference of each main result to the best one that it is compared with."""
    gaps: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in _main_tests(tests).to_dict("records"):
        is_lower = catalog()[row["metric"]].better_on(row["subset"]) == "lower"
        gap, p = (-1 if is_lower else 1) * float(row["difference"]), float(row["p_holm"])
        side = "a" if gap < 0 else "b"
        method = str(row[f"method_{side}"]).partition(":")[0]
        key = (str(row["benchmark"]), str(row[f"model_{side}"]), method)
        found = {"to_best": abs(gap), "p_to_best": p}
        gaps[key] = max(gaps.get(key, found), found, key=lambda numbers: numbers["to_best"])
    return gaps


def _main_tests(tests: pd.DataFrame) -> pd.DataFrame:
    return tests[(tests["family"] == MAIN_RESULTS) & (tests["relation"] == "macro")]


def make_key(used: Iterable[PendingRun], *about: Any) -> str:
    """Return the key of a run: a hash of the keys of the results that it uses, and more."""
    content = [{result.name: result.key for result in used}, *about]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _tests(benchmark: str, table: pd.DataFrame, params: Params) -> Content:
    """All tests as a table.

    Those between main results are metrics too.
    """
    metrics: dict[str, float] = {}
    main = _main_tests(table)
    for row in main.assign(p=main["p_holm"]).to_dict("records"):
        place = f"tests/{row['model_a']} - {row['model_b']}"
        values = {f"{place}/{name}": float(row[name]) for name in LOGGED}
        metrics |= {name: value for name, value in values.items() if np.isfinite(value)}
    settings = flat({"seed": params.seed, **params.score.model_dump(exclude_none=True)})
    files = {"significance.csv": csv_text(table, "%.6g")}
    note = f"The paired tests between all models, methods and variants on **{benchmark}**."
    return Content(metrics, params=settings, files=files, note=note)
