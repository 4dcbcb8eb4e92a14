"""What MLflow records of one result.

It has numbers, parameters, tables, drawings, and what the result was made from. All of it is read
from the files of the result, so it can be logged again at any time.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow.parquet as pq

from medprobe import metrics
from medprobe.core import dvc_records, lineage, places
from medprobe.core.params import Params
from medprobe.core.spreadsheets import csv_text
from medprobe.core.tables import (
    AHEAD,
    BenchmarkTables,
    Metadata,
    candidate_hash,
    count_rows,
    list_replicates,
    lists_outranking,
    metric_of_predictions,
    read_predictions,
    read_table,
    result_names,
    whole_table,
)
from medprobe.core.variants import swept_settings
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.results import (
    COMPARISON,
    cached,
    is_compared,
    primary_metric,
    scores_key,
    to_rows,
)
from medprobe.report.benchmark_numbers import of_run
from medprobe.report.sections import SingleResult, draw_result, find_sections
from medprobe.tracking.headlines import by_step, headlines, legal, main_variant, note, select_means
from medprobe.tracking.store import Content, Dataset, PendingRun

LAYOUT: Final = 7  # of what a run holds: another number logs all results again
COLUMN_TYPES: Final = {"int64": "long", "double": "double", "bool": "boolean"}  # MLflow's words
SAMPLES: Final = 20  # queries whose predictions are shown in a run
UNTAGGED: Final = ("begin", "end", "key", "notes")  # of a result's record
TEXT: Final = ["prompt", "answers"]  # columns of queries that may be licensed


def run_of_table(path: Path, params: Params) -> PendingRun:
    """The run of a prediction table."""
    model, method, benchmark = result_names(path)
    return PendingRun(
        benchmark,
        model,
        method,
        key=_key(path, params),
        content=partial(_content, path, params),
        about=_describe(Metadata.read(places.ABOUT / f"{benchmark}.json")),
    )


def _describe(metadata: Metadata) -> str:
    title = metrics.catalog()[metadata.primary_metric].title
    about = metadata.description[:1].upper() + metadata.description[1:]
    lines = [about, f"Main metric: {title}", f"Licence: {metadata.licence}"]
    return "\n\n".join([*lines, metadata.citation])


def _key(path: Path, params: Params) -> str:
    metadata, scoring = _scoring(path, params)
    scores = scores_key(path, places.BENCHMARKS / path.stem, scoring)
    tags = metadata.published or ""
    return hashlib.sha256(f"{LAYOUT} {scores} {params.track!r}{tags}".encode()).hexdigest()


def _scoring(path: Path, params: Params) -> tuple[Metadata, Scoring]:
    """What the benchmark of a prediction table is, and how the table is scored."""
    model, _, benchmark = result_names(path)
    metadata = Metadata.read(places.ABOUT / f"{benchmark}.json")
    return metadata, Scoring.for_model(places.MODELS / model, metadata, params)


def _rows(path: Path, scores: Scores) -> pd.DataFrame:
    model, method, benchmark = result_names(path)
    return pd.DataFrame(to_rows({benchmark: scores}, model, method), columns=COMPARISON)


def scored_rows(path: Path, params: Params) -> tuple[pd.DataFrame, Metadata]:
    """The numbers of a prediction table as rows of the comparison, and what its benchmark is."""
    metadata, scoring = _scoring(path, params)
    return _rows(path, cached(path, places.BENCHMARKS / path.stem, scoring).scores), metadata


def _content(path: Path, params: Params) -> Content:
    model, method, benchmark = result_names(path)
    folder = places.BENCHMARKS / benchmark
    metadata, scoring = _scoring(path, params)
    scores = cached(path, folder, scoring).scores
    rows = _rows(path, scores)
    notes = sorted(path.parent.glob(f"{benchmark}-*.csv"))  # such as training curves
    origin = lineage.record(places.RUNS / model / method / f"{benchmark}.json", path)
    settings: dict[str, Any] = origin.pop("settings", None) or lineage.probing_settings(
        method, params.choices(model, method, benchmark), params
    )
    result = SingleResult(rows, metadata, path, folder, params.track.text, settings)
    series: dict[str, Sequence[tuple[int, float]]] = {**by_step(rows, metadata)}
    further: list[str] = []
    for section in find_sections():
        further += section.inputs(result)
        for name, steps in section.series(result).items():
            series[legal(f"series/{name}")] = steps
    inputs = read_inputs(model, benchmark, further)
    checkpoint = f"outputs/models/{model}"
    commit = lineage.commit()
    main = rows[rows["method"] == main_variant(rows)]
    return Content(
        metrics=headlines(main, metadata, edges=True),
        params=settings,
        tags=_tags(path, params, commit, origin, inputs) | _main_metric(main, metadata),
        children=_parts(path, metadata, scoring, scores),
        files={
            "scores.csv": csv_text(rows, "%.6g"),
            "statistics.csv": csv_text(of_run(folder, places.MODELS / model)),
            **_tables(path, folder, params.track.text),
            **{note.name: note.read_text(encoding="utf-8") for note in notes},
            **draw_result(result),
        },
        series=series,
        datasets=[_dataset(name, md5) for name, md5 in inputs.items() if name != checkpoint],
        checkpoint=Dataset(checkpoint, inputs[checkpoint]),
        note=note(rows, metadata, {"code": commit, **inputs}),
        begin=origin.get("begin"),
        end=origin.get("end"),
    )


def read_inputs(model: str, benchmark: str, further: Iterable[str]) -> dict[str, str]:
    """Return the hashes of what probing a model on a benchmark reads.

    `further` are other outputs that the result was made from. A hash that DVC does not have is
    `unknown`; for data, `dvc_records.NOT_PINNED`.
    """
    paths = [f"outputs/benchmarks/{benchmark}", f"outputs/models/{model}", *further]
    hash_by_path = dvc_records.hashes()
    recorded = {path: hash_by_path.get(path, lineage.UNKNOWN) for path in paths}
    return {"data": dvc_records.data_hash()} | recorded


def _dataset(name: str, md5: str) -> Dataset:
    """An input; of a benchmark, the columns and size of its queries."""
    queries = Path(name) / "queries.parquet"
    if not queries.is_file():
        return Dataset(name, md5, "sources" if name == "data" else "rewired checkpoints")
    with whole_table(queries):
        table = pq.read_schema(queries)
    columns = {column.name: COLUMN_TYPES.get(str(column.type), "string") for column in table}
    return Dataset(name, md5, "evaluation", columns, count_rows(queries))


def _tags(
    path: Path, params: Params, commit: str, origin: dict[str, Any], inputs: dict[str, str]
) -> dict[str, str]:
    model, _, benchmark = result_names(path)
    kind, revision = params.models.kind(model), f"dvc:{inputs[f'outputs/models/{model}']}"
    if model in params.fetch:
        revision = params.fetch[model].revision or revision
    about = {name: str(value) for name, value in origin.items() if name not in UNTAGGED}
    published = Metadata.read(places.ABOUT / f"{benchmark}.json").published
    return {
        "stage": "probe",
        "kind": kind,
        "mlflow.source.git.commit": commit,
        "mlflow.source.name": "medprobe probe",
        "model.revision": revision,
        **{f"dvc.{name}": md5 for name, md5 in inputs.items()},
        **{f"made.{name}": value for name, value in about.items()},
        **{f"published.{source}": verdict for source, verdict in published.items()},
        **_candidates(places.BENCHMARKS / benchmark),
    }


def _main_metric(rows: pd.DataFrame, metadata: Metadata) -> dict[str, str]:
    """The metric that runs are sorted by on MLflow's pages."""
    means = select_means(rows)
    return {} if means.empty else {"metric": primary_metric(means, metadata)}


def _candidates(folder: Path) -> dict[str, str]:
    """The hash of each subset's candidates; results with the same one can be compared."""
    candidates = read_table(folder / "candidates.parquet", ["subset", "name"])
    return {
        f"candidates.{subset}": candidate_hash(part["name"])
        for subset, part in candidates.groupby("subset", sort=True)
    }


def _parts(
    path: Path, metadata: Metadata, scoring: Scoring, variant_scores: Scores
) -> dict[str, Content]:
    """The metrics of each variant, and of its replicates, where there are several.

    A setting of a sweep is one point of a line, the mean over its replicates: a sweep over ten
    sentence sets would have hundreds of runs that nobody opens. `variant_scores` are the scores of
    the variants.
    """
    tables = BenchmarkTables.read(places.BENCHMARKS / path.stem)
    scorer = metrics.find(metric_of_predictions(path))
    quick = replace(scoring, params=scoring.params.model_copy(update={"bootstrap": 1}), facts=None)
    replicates = list_replicates(path)
    several = {name for name, own in replicates.items() if is_compared(name) and len(own) > 1}
    scores_of = {
        (name, own[0] if len(own) == 1 else ""): variant_scores
        for name, own in replicates.items()
        if name not in several
    }
    for of_variant in read_predictions(path, several.__contains__):
        for (variant, replicate), rows in of_variant.groupby(["variant", "replicate"]):
            scores_of[variant, replicate] = scorer.score(rows, tables, quick)
    parts: dict[str, Content] = {}
    for variant, replicate in sorted(scores_of):
        about = {"variant": variant or "default", "replicate": replicate}
        varied = swept_settings(variant)  # so that runs can be drawn over them
        scores = scores_of[variant, replicate]
        own = {name: scores[name] for name in scores if name == about["variant"]}
        numbers = headlines(_rows(path, own), metadata, edges=False)
        parts[" · ".join(filter(None, about.values()))] = Content(numbers, about | varied)
    return parts if len(parts) > 1 else {}


def _tables(path: Path, folder: Path, text: bool) -> dict[str, str]:
    """Return the main variant's ranks, and those of a few queries.

    They have text only if params.yaml says so, since names and prompts may be licensed.
    """
    main = next(read_predictions(path))
    main = main[main["replicate"] == main["replicate"].min()].copy()
    columns = ["query_id", "rank", "prediction_id", "score", "hit"]
    columns += [AHEAD] if lists_outranking(main) else []
    if text:
        columns.append("prediction")
    else:  # where names are all there is, they serve as ids
        has_id = main["prediction_id"] != main["prediction"]
        main["prediction_id"] = main["prediction_id"].where(has_id, "")
    top = main[columns]
    query_ids = top["query_id"].drop_duplicates()
    chosen = query_ids.iloc[:: max(1, len(query_ids) // SAMPLES)].head(SAMPLES)
    fields = ["query_id", "subset", "relation", *(TEXT if text else [])]
    queries = read_table(folder / "queries.parquet", fields)
    samples = top[top["query_id"].isin(chosen)].merge(queries[fields], on="query_id", how="left")
    return {
        "top_k.csv": csv_text(top, "%.6g"),
        "samples.csv": csv_text(samples, "%.6g"),
    }
