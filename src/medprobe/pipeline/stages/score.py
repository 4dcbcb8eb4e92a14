"""Stage `score`: every number of the results that `params.yaml` names, and the tests of models."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe import methods
from medprobe.core import places
from medprobe.core.executor import Executor, Job, in_this_process
from medprobe.core.files import replacing, write_whole
from medprobe.core.params import Params
from medprobe.core.parts import record_used
from medprobe.core.progress import show_progress, with_progress
from medprobe.core.tables import BASELINE, BenchmarkTables, Metadata, count_rows, result_names
from medprobe.core.variants import curve
from medprobe.metrics import Evaluated, Scores, Scoring
from medprobe.metrics.baselines import baselines_part, letters_values, score_baselines
from medprobe.metrics.letters import letters_part
from medprobe.metrics.pairs import above_control
from medprobe.metrics.results import (
    COMPARISON,
    PREDICTIONS,
    average_by_query,
    evaluate_table,
    further_folders,
    main_results,
    main_variants,
    part_files,
    prediction_tables,
    read_evaluated,
    scores_part,
    select,
    select_main,
    select_systems,
    to_rows,
    write_evaluated,
)
from medprobe.metrics.significance import (
    LETTERS,
    SIGNIFICANCE,
    Field,
    correct_controls,
    significance,
)

# A prediction table, its benchmark's folder, and how it is scored.
ScoringInput = tuple[Path, Path, Scoring]
NO_SWEEPS: Final = "none"
System = tuple[str, str, str]  # a benchmark, a model, and a method or `<method>:<variant>`


def score(params: Params, executor: Executor = in_this_process) -> None:
    """Score all predictions, and test which models differ.

    Writes all scores, `metrics/scores/<model>/<method>.json`; for `dvc metrics` and `dvc plots`
    those of main results, `metrics/main.json`, of all methods, `metrics/summary.json`, and of
    sweeps, `metrics/sweeps/`; and the tests, `outputs/significance.parquet`.

    A file of scores is a map: benchmark -> variant ("default" for the main one) -> subset ->
    relation or a mean of relations -> metric -> value, low, high, n and, over replicates, std.
    Beside the models it has what is reached without looking at a subject, as the model `baseline`.
    """
    about = {path.stem: path for path in sorted(places.ABOUT.glob("*.json"))}
    metadata = {name: Metadata.read(about[name]) for name in about.keys() & params.benchmark_names}
    evaluated, used = _evaluate_tables(params, metadata, executor)
    results = [(*result_names(path), found.scores) for path, found in evaluated.items()]
    for benchmark in sorted(name for name, about in metadata.items() if about.ranks_answers):
        scoring = Scoring.for_model(places.MODELS / BASELINE, metadata[benchmark], params)
        folder = places.BENCHMARKS / benchmark
        by_name = score_baselines(folder, scoring)
        results += [(BASELINE, name, benchmark, of_name) for name, of_name in by_name.items()]
        used += [baselines_part(folder, scoring), letters_part(folder)]
    record_used("scores", used)
    scores: dict[Path, dict[str, Scores]] = {}
    rows: dict[str, list[pd.DataFrame]] = {}
    for model, method, benchmark, of_table in results:
        scores.setdefault(Path(model, f"{method}.json"), {})[benchmark] = of_table
        numbers = to_rows({benchmark: of_table}, model, method)
        rows.setdefault(benchmark, []).append(pd.DataFrame(numbers, columns=COMPARISON))
    comparison = {name: pd.concat(tables) for name, tables in rows.items()}
    with replacing(places.SCORES) as folder:
        for file, content in scores.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(_as_json(content), encoding="utf-8")
    _write_methods(comparison, metadata)
    _write_tests(comparison, metadata, evaluated, params)


def _evaluate_tables(
    params: Params, metadata: Mapping[str, Metadata], executor: Executor
) -> tuple[dict[Path, Evaluated], list[Path]]:
    """What is computed of each prediction table, and the files of outputs/parts that it is in."""
    paths = prediction_tables(places.PREDICTIONS, params)
    inputs = {path: _scoring_input(path, metadata[path.stem], params) for path in paths}
    parts = {path: scores_part(*inputs[path]) for path in paths}
    sizes = {path: count_rows(path) for path in paths}
    evaluated = {path: read_evaluated(part) for path, part in parts.items()}
    unscored = [path for path, found in evaluated.items() if found is None]
    unscored_sizes = [sizes[path] for path in unscored]
    jobs = [Job(f"score {path}", inputs[path], _input_files(*inputs[path])) for path in unscored]
    with show_progress("score", sum(sizes.values()), PREDICTIONS) as bar:
        bar.advance_to(sum(sizes.values()) - sum(unscored_sizes))
        for number, found in with_progress(executor(_evaluate, jobs), unscored_sizes, bar):
            path = unscored[number]
            write_evaluated(found, parts[path])
            evaluated[path] = found
    whole = {path: found for path, found in evaluated.items() if found is not None}
    return whole, [file for part in parts.values() for file in part_files(part)]


def _scoring_input(path: Path, metadata: Metadata, params: Params) -> ScoringInput:
    scoring = Scoring.for_model(places.MODELS / path.parent.parent.name, metadata, params)
    return path, places.BENCHMARKS / path.stem, scoring


def _input_files(path: Path, folder: Path, scoring: Scoring) -> tuple[Path, ...]:
    further = further_folders(path, folder, scoring)
    return (path, folder, *further, *([scoring.facts] if scoring.facts else []))


def _evaluate(scoring_input: ScoringInput) -> Evaluated:
    return evaluate_table(*scoring_input)


def _write_methods(
    comparison: Mapping[str, pd.DataFrame], metadata: Mapping[str, Metadata]
) -> None:
    """Write the main metric of every method, and that of sweeps by setting."""
    values = [pd.DataFrame(columns=COMPARISON)]
    main: set[System] = set()
    for benchmark, rows in comparison.items():
        for _, of_result in rows.groupby(["model", rows["method"].str.partition(":")[0]]):
            values.append(select(select_main(of_result, metadata[benchmark]), relation="macro"))
            main |= {(benchmark, *system) for system in main_variants(of_result)}
    table = pd.concat(values)
    write_whole(places.SUMMARY, _as_json(_summarise(table, main)))
    with replacing(places.SWEEPS) as folder:
        folder.mkdir()
        for name, steps in _tabulate_sweeps(table).items():
            steps.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def _write_tests(
    comparison: Mapping[str, pd.DataFrame],
    metadata: Mapping[str, Metadata],
    evaluated: Mapping[Path, Evaluated],
    params: Params,
) -> None:
    """Write the main results and their tests."""
    kinds = {name: kind for kind, models in params.models.by_kind().items() for name in models}
    preference = {
        name: methods.find(name).ASK_PRIORITY.get("rank", 0)
        for by_name in params.methods.values()
        for name in by_name
    }
    tests, main = [pd.DataFrame(columns=SIGNIFICANCE)], {}
    for benchmark, rows in sorted(comparison.items()):
        own = rows[rows["model"] != BASELINE]
        if own.empty:
            continue
        chosen = main_results(own, metadata[benchmark], params, preference)
        field = Field.of(own, metadata[benchmark], chosen, kinds)
        values, shuffled = _by_system(evaluated, benchmark)
        if metadata[benchmark].ranks_answers:
            scoring = Scoring.for_model(places.MODELS / BASELINE, metadata[benchmark], params)
            tables = BenchmarkTables.read(places.BENCHMARKS / benchmark)
            by_letters = average_by_query(letters_values(tables, scoring))
            values[BASELINE, LETTERS] = by_letters
        tests.append(significance(values, field, params.score, shuffled))
        main[benchmark] = select(
            select_systems(select_main(own, metadata[benchmark]), {*chosen.items()}),
            relation="macro",
        )
    every = pd.concat([table for table in tests if len(table)] or tests, ignore_index=True)
    every = correct_controls(every)
    with replacing(places.SIGNIFICANCE) as path:
        every.to_parquet(path, index=False)
    write_whole(places.MAIN, json.dumps(rounded(_describe_main(main, every)), indent=1) + "\n")


def _by_system(
    evaluated: Mapping[Path, Evaluated], benchmark: str
) -> tuple[dict[tuple[str, str], pd.DataFrame], dict[tuple[str, str], pd.DataFrame]]:
    """The paired values and the controls' tests of each system of a benchmark."""
    values: dict[tuple[str, str], pd.DataFrame] = {}
    controls: dict[tuple[str, str], pd.DataFrame] = {}
    for path, found in evaluated.items():
        model, method, name = result_names(path)
        if name != benchmark:
            continue
        for tables, of in ((values, found.paired), (controls, found.controls)):
            for variant, rows in of.groupby("variant") if len(of) else ():
                tables[model, f"{method}:{variant}" if variant else method] = rows
    return values, controls


def _describe_main(
    main: Mapping[str, pd.DataFrame], tests: pd.DataFrame
) -> dict[str, dict[str, dict[str, Any]]]:
    """Benchmark -> model -> its method, the main metric with its interval, and its control."""
    above = above_control(tests)
    content: dict[str, dict[str, dict[str, Any]]] = {}
    for benchmark, rows in main.items():
        for row in rows.sort_values("model").itertuples():
            numbers = {
                row.metric: row.value,
                f"{row.metric}_low": row.low,
                f"{row.metric}_high": row.high,
                **above.get((benchmark, row.model, row.method), {}),
            }
            content.setdefault(benchmark, {})[row.model] = {
                "method": row.method,
                "subset": row.subset,
                **{name: x for name, x in numbers.items() if math.isfinite(x)},
            }
    return content


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
        method, _, variant = row.method.partition(":")
        if point := curve(variant):
            setting, step = point
            name = "-".join((row.benchmark, row.model, method, setting))
            lines.setdefault(name, []).append((step, row.value))
    lines = lines or {NO_SWEEPS: []}
    return {
        name: pd.DataFrame(sorted(steps), columns=["step", "value"]).map(rounded)
        for name, steps in lines.items()
    }


def rounded(content: Any) -> Any:
    """Numbers with five significant digits, also in maps: further ones differ between machines.

    >>> rounded({"value": 0.0123456789, "n": 123456})
    {'value': 0.012346, 'n': 123456}
    """
    if isinstance(content, dict):
        return {key: rounded(value) for key, value in content.items()}
    is_whole = not isinstance(content, float) or content.is_integer()
    return content if is_whole else float(f"{content:.5g}")


def _as_json(content: Any) -> str:
    """JSON with one line per innermost map, so that git shows a changed result as one line."""
    text = json.dumps(rounded(content), indent=1, sort_keys=True, allow_nan=False)
    return re.sub(r"{([^{}]*)}", lambda match: f"{{{' '.join(match[1].split())}}}", text) + "\n"
