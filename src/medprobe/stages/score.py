"""Stage `score`: every number of the project, from the predictions on disk."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from medprobe.core import places
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.parts import Executor, Job, local, progress
from medprobe.core.tables import Metadata
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.results import (
    COMPARISON,
    prediction_tables,
    primary,
    rows_of,
    score_table,
    subsets,
    sweep,
    where,
)


def score(params: Params, executor: Executor = local) -> None:
    """Write all scores, `metrics/scores/<model>/<method>.json`, and for `dvc metrics` and `dvc
    plots` the main ones of them, `metrics/summary.json` and `metrics/sweeps/`.

    A file of scores is a map: benchmark -> variant ("default" for the main one) -> subset ->
    relation or a mean of relations -> metric -> value, low, high, n and, over replicates, std.
    Raises BadInput where there are no predictions, or predictions of another benchmark's queries.
    """
    scores: dict[Path, dict[str, Scores]] = {}
    values: list[pd.DataFrame] = []
    paths = list(prediction_tables(places.PREDICTIONS))
    known = {path.stem: Metadata.read(places.ABOUT / f"{path.stem}.json") for path in paths}
    jobs = []
    for path in paths:
        scoring = Scoring.of(places.MODELS / path.parent.parent.name, known[path.stem], params)
        folder = places.BENCHMARKS / path.stem
        reads = (path, folder, *([scoring.facts] if scoring.facts else []))
        jobs.append(Job(f"score {path}", (path, folder, scoring), reads))
    by_table: dict[int, Scores] = {}
    sizes = [pq.read_metadata(path).num_rows for path in paths]
    with progress("score", sum(sizes), "predictions") as now:
        now.at(0)
        for number, found in executor(_scored, jobs):
            by_table[number] = found
            now.at(now.done + sizes[number])
    for number, path in enumerate(paths):
        model, method, benchmark = path.parent.parent.name, path.parent.name, path.stem
        found = by_table[number]
        scores.setdefault(Path(model, f"{method}.json"), {})[benchmark] = found
        rows = pd.DataFrame(rows_of({benchmark: found}, model, method), columns=COMPARISON)
        values.append(main_values(rows, known[benchmark]))
    table = pd.concat(values)
    with replacing(places.SCORES) as folder:
        for file, content in scores.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(_json(content), encoding="utf-8")
    with replacing(places.SUMMARY) as path:
        path.write_text(_json(summary(table)), encoding="utf-8")
    with replacing(places.SWEEPS) as folder:
        folder.mkdir()
        for name, steps in sweeps(table).items():
            steps.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def _scored(asked: tuple[Path, Path, Scoring]) -> Scores:
    return score_table(*asked)


def main_values(rows: pd.DataFrame, metadata: Metadata) -> pd.DataFrame:
    """Of one result's rows of the comparison, those that stand for it: a variant's macro mean of
    the main metric over the main subset."""
    main = where(rows, metric=primary(rows, metadata), relation="macro")
    return main[main["subset"].isin(subsets(rows, metadata)[:1])]


def summary(values: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Benchmark -> model -> method -> value of its main variant, or of the first where none is."""
    content: dict[str, dict[str, dict[str, float]]] = {}
    for row in values.sort_values("method").itertuples():
        method = row.method.partition(":")[0]
        content.setdefault(row.benchmark, {}).setdefault(row.model, {}).setdefault(
            method, row.value
        )
    return content


def sweeps(values: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Tables `step, value` of variants that sweep over a setting, named
    `<benchmark>-<model>-<method>-<setting>`."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in values.itertuples():
        if at := sweep(row.method):
            method = row.method.partition(":")[0]
            name = "-".join((row.benchmark, row.model, method, at[0]))
            lines.setdefault(name, []).append((at[1], row.value))
    return {
        name: pd.DataFrame(sorted(steps), columns=["step", "value"])
        for name, steps in lines.items()
    }


def _json(content: Any) -> str:
    """JSON with a line for each innermost map, so that a change of one reads as one line in git."""
    text = json.dumps(content, indent=1, sort_keys=True)
    return re.sub(r"{([^{}]*)}", lambda found: f"{{{' '.join(found[1].split())}}}", text) + "\n"
