"""Stage `score`: every number of the project, from the predictions on disk."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from medprobe.core import places
from medprobe.core.executor import Executor, Job, in_this_process
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.progress import show_progress, with_progress
from medprobe.core.tables import Metadata
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.results import (
    COMPARISON,
    PREDICTIONS,
    keep_scores,
    prediction_tables,
    primary,
    rows_of,
    score_table,
    scores_part,
    subsets,
    sweep,
    where,
)

Asked = tuple[Path, Path, Scoring]  # a prediction table, its benchmark's folder, how it is scored


def score(params: Params, executor: Executor = in_this_process) -> None:
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
    asked = [_asked(path, known[path.stem], params) for path in paths]
    parts = [scores_part(*one) for one in asked]
    left = [number for number, part in enumerate(parts) if not part.is_file()]
    jobs = [Job(f"score {paths[number]}", asked[number], _reads(*asked[number])) for number in left]
    sizes = [pq.read_metadata(path).num_rows for path in paths]
    ahead = [sizes[number] for number in left]
    with show_progress("score", sum(sizes), PREDICTIONS) as now:
        now.advance_to(sum(sizes) - sum(ahead))
        for number, found in with_progress(executor(_scored, jobs), ahead, now):
            keep_scores(found, parts[left[number]])
    for number, path in enumerate(paths):
        model, method, benchmark = path.parent.parent.name, path.parent.name, path.stem
        own: Scores = json.loads(parts[number].read_text(encoding="utf-8"))
        scores.setdefault(Path(model, f"{method}.json"), {})[benchmark] = own
        rows = pd.DataFrame(rows_of({benchmark: own}, model, method), columns=COMPARISON)
        values.append(main_values(rows, known[benchmark]))
    table = pd.concat(values)
    with replacing(places.SCORES) as folder:
        for file, content in scores.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(_as_json(content), encoding="utf-8")
    with replacing(places.SUMMARY) as path:
        path.write_text(_as_json(summary(table)), encoding="utf-8")
    with replacing(places.SWEEPS) as folder:
        folder.mkdir()
        for name, steps in sweeps(table).items():
            steps.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def _asked(path: Path, metadata: Metadata, params: Params) -> Asked:
    scoring = Scoring.for_model(places.MODELS / path.parent.parent.name, metadata, params)
    return path, places.BENCHMARKS / path.stem, scoring


def _reads(path: Path, folder: Path, scoring: Scoring) -> tuple[Path, ...]:
    return (path, folder, *([scoring.facts] if scoring.facts else []))


def _scored(asked: Asked) -> Scores:
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


def _as_json(content: Any) -> str:
    """JSON with a line for each innermost map, so that a change of one reads as one line in git."""
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False)
    return re.sub(r"{([^{}]*)}", lambda found: f"{{{' '.join(found[1].split())}}}", text) + "\n"
