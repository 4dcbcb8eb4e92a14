"""Stage `score`: every number of the results that `params.yaml` names, from their predictions."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.core import places
from medprobe.core.executor import Executor, Job, in_this_process
from medprobe.core.files import replacing, write_whole
from medprobe.core.params import Params
from medprobe.core.parts import record_used
from medprobe.core.progress import show_progress, with_progress
from medprobe.core.tables import BASELINE, Metadata, count_rows, result_names
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.baselines import baselines_part, score_baselines
from medprobe.metrics.letters import letters_part
from medprobe.metrics.results import (
    COMPARISON,
    PREDICTIONS,
    further_folders,
    main_variants,
    prediction_tables,
    read_scores,
    score_table,
    scores_part,
    select,
    select_main,
    sweep,
    to_rows,
    write_scores,
)

# A prediction table, its benchmark's folder, and how it is scored.
ScoringInput = tuple[Path, Path, Scoring]
NO_SWEEPS: Final = "none"
System = tuple[str, str, str]  # a benchmark, a model, and a method or `<method>:<variant>`


def score(params: Params, executor: Executor = in_this_process) -> None:
    """Score all predictions.

    Writes all scores, `metrics/scores/<model>/<method>.json`, and the main ones for `dvc metrics`
    and `dvc plots`: `metrics/summary.json` and `metrics/sweeps/`. A file of scores is a map:
    benchmark -> variant ("default" for the main one) -> subset -> relation or a mean of relations
    -> metric -> value, low, high, n and, over replicates, std. Beside the models it has what is
    reached without looking at a subject, as the model `baseline`.

    Raises:
        BadInput: there are no predictions, or a prediction table has queries that its benchmark
            lacks.
    """
    scores: dict[Path, dict[str, Scores]] = {}
    values: list[pd.DataFrame] = []
    main: set[System] = set()
    paths = prediction_tables(places.PREDICTIONS, params)
    about = {path.stem: path for path in sorted(places.ABOUT.glob("*.json"))}
    metadata = {name: Metadata.read(about[name]) for name in about.keys() & params.benchmark_names}
    inputs = {path: _scoring_input(path, metadata[path.stem], params) for path in paths}
    parts = {path: scores_part(*inputs[path]) for path in paths}
    sizes = {path: count_rows(path) for path in paths}
    unscored = [path for path in paths if read_scores(parts[path]) is None]
    unscored_sizes = [sizes[path] for path in unscored]
    jobs = [Job(f"score {path}", inputs[path], _input_files(*inputs[path])) for path in unscored]
    with show_progress("score", sum(sizes.values()), PREDICTIONS) as bar:
        bar.advance_to(sum(sizes.values()) - sum(unscored_sizes))
        for number, new_scores in with_progress(executor(_score_input, jobs), unscored_sizes, bar):
            write_scores(new_scores, parts[unscored[number]])
    results = [(*result_names(path), read_scores(part) or Scores()) for path, part in parts.items()]
    used = [*parts.values()]
    for benchmark in sorted(name for name, about in metadata.items() if about.ranks_answers):
        scoring = Scoring.for_model(places.MODELS / BASELINE, metadata[benchmark], params)
        folder = places.BENCHMARKS / benchmark
        by_name = score_baselines(folder, scoring)
        results += [(BASELINE, name, benchmark, of_name) for name, of_name in by_name.items()]
        used += [baselines_part(folder, scoring), letters_part(folder)]
    record_used("scores", used)
    for model, method, benchmark, table_scores in results:
        scores.setdefault(Path(model, f"{method}.json"), {})[benchmark] = table_scores
        rows = pd.DataFrame(to_rows({benchmark: table_scores}, model, method), columns=COMPARISON)
        values.append(select(select_main(rows, metadata[benchmark]), relation="macro"))
        main |= {(benchmark, *system) for system in main_variants(rows)}
    table = pd.concat([pd.DataFrame(columns=COMPARISON), *values])
    with replacing(places.SCORES) as folder:
        for file, content in scores.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(_as_json(content), encoding="utf-8")
    write_whole(places.SUMMARY, _as_json(_summarise(table, main)))
    with replacing(places.SWEEPS) as folder:
        folder.mkdir()
        for name, steps in _tabulate_sweeps(table).items():
            steps.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def _scoring_input(path: Path, metadata: Metadata, params: Params) -> ScoringInput:
    scoring = Scoring.for_model(places.MODELS / path.parent.parent.name, metadata, params)
    return path, places.BENCHMARKS / path.stem, scoring


def _input_files(path: Path, folder: Path, scoring: Scoring) -> tuple[Path, ...]:
    further = further_folders(path, folder, scoring)
    return (path, folder, *further, *([scoring.facts] if scoring.facts else []))


def _score_input(scoring_input: ScoringInput) -> Scores:
    return score_table(*scoring_input)


def _summarise(values: pd.DataFrame, main: set[System]) -> dict[str, dict[str, dict[str, float]]]:
    """Benchmark -> model -> method -> value of the variant that represents it."""
    content: dict[str, dict[str, dict[str, float]]] = {}
    for row in values.itertuples():
        if (row.benchmark, row.model, row.method) in main:
            method = row.method.partition(":")[0]
            content.setdefault(row.benchmark, {}).setdefault(row.model, {})[method] = row.value
    return content


def _tabulate_sweeps(values: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Tables `step, value` of sweeps, by `<benchmark>-<model>-<method>-<setting>`.

    If there is no sweep, a table without rows: git keeps no empty folder, so that the output would
    be missing in every clone.
    """
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in values.itertuples():
        if swept := sweep(row.method):
            setting, step = swept
            method = row.method.partition(":")[0]
            name = "-".join((row.benchmark, row.model, method, setting))
            lines.setdefault(name, []).append((step, row.value))
    lines = lines or {NO_SWEEPS: []}
    return {
        name: pd.DataFrame(sorted(steps), columns=["step", "value"])
        for name, steps in lines.items()
    }


def _as_json(content: Any) -> str:
    """JSON with one line per innermost map, so that git shows a changed result as one line."""
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False)
    return re.sub(r"{([^{}]*)}", lambda match: f"{{{' '.join(match[1].split())}}}", text) + "\n"
