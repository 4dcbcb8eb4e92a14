"""Stage `track`: all results on disk into MLflow, again and again without doubling.

The probing stages call it for their own model and method. Results that came out of DVC's cache ran
no code and logged nothing: `medprobe track` brings them in, and fills a lost or moved store anew.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from medprobe import benchmarks as registry
from medprobe import lineage, metrics, places, tracking
from medprobe.errors import BadInput
from medprobe.files import replacing
from medprobe.keep import fingerprint
from medprobe.metrics.summary import metrics_of
from medprobe.params import Params
from medprobe.report import benchmark_numbers, paired_tests, template_free_run
from medprobe.report import context as rank_changes
from medprobe.report import diskne as fine_tuning
from medprobe.report.results import Results
from medprobe.report.sections import context, diskne, relations, sweeps
from medprobe.report.tables import COMPARISON, SIGNIFICANCE, rows_of
from medprobe.stages.score import FACTS, per_query, score_table, tables
from medprobe.tables import candidate_hash, read_table

Subsets = dict[str, dict[str, dict[str, dict[str, float]]]]  # of summary.Scores, one variant
Parts = dict[str, tuple[dict[str, Any], dict[str, float]]]

TRACKED = Path("outputs/tracked.json")
MEANS = ("macro", "micro", "weighted")
EDGES = {"low", "high", "std"}
SAMPLES = 20  # queries whose predictions are shown in a run
TEXT = ["prompt", "answers"]  # columns of queries that may be licensed


def track(params: Params, model: str | None = None, method: str | None = None) -> None:
    """Log every prediction table on disk, or those of one model and method that were just made.

    The whole run also logs each benchmark's paired tests and the comparison of template-based and
    template-free data sets, and writes `outputs/tracked.json`: the keys of all results, for DVC.
    """
    client, keys, fresh = tracking.connect(), {}, model is not None
    for name, under, table in tables(places.PREDICTIONS):
        if model in (None, name) and method in (None, under):
            key = _key(table, places.BENCHMARKS / table.stem, params)
            content = partial(_content, name, under, table, params, fresh)
            tracking.record(client, tracking.Result(table.stem, name, under, key, content))
            keys["/".join((table.stem, name, under))] = key
    if not fresh:
        for tested in paired_tests.runs(params, keys):
            tracking.record(client, tested)
        if (together := template_free_run.result(params, keys)) is not None:
            tracking.record(client, together)
        with replacing(TRACKED) as path:
            path.write_text(json.dumps(keys, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _content(model: str, method: str, table: Path, params: Params, fresh: bool) -> tracking.Content:
    """What there is to log of one prediction table. `fresh`: just made, so that params.yaml, not
    dvc.lock, says how."""
    benchmark, folder = table.stem, places.BENCHMARKS / table.stem
    scores = score_table(table, places.BENCHMARKS, params)
    found = pd.DataFrame(rows_of({benchmark: scores}, model, method), columns=COMPARISON)
    few = not registry.find(benchmark).METADATA.many_relations
    beside = sorted(table.parent.glob(f"{benchmark}-*.csv"))  # such as training curves
    recorded = None if fresh else lineage.recorded_params(table.parent)
    return tracking.Content(
        metrics=_metrics(scores.get("default", {}), relations=few, edges=True)
        | benchmark_numbers.of_run(folder, places.MODELS / model),
        params=recorded if recorded is not None else _params(method, params),
        tags=_tags(model, table, folder, params),
        parts=_parts(per_query(table, places.BENCHMARKS)) or _scored_parts(table, params),
        files={
            "scores.csv": found.to_csv(index=False, float_format="%.6g"),
            **_figures(found, benchmark, model, params),
            **_tables(table, folder, params),
            **{path.name: path.read_text(encoding="utf-8") for path in beside},
        },
    )


def _key(table: Path, folder: Path, params: Params) -> str:
    """Hash of all that the numbers follow from: predictions, benchmark, rules of scoring."""
    files = [table, *sorted(folder.glob("*.parquet")), *([FACTS] if FACTS.is_file() else [])]
    code = Path(metrics.__file__).parent
    text = f"{fingerprint([*files, code])} {params.score!r} {params.seed} {params.track!r}"
    return hashlib.sha256(text.encode()).hexdigest()


def _metrics(variant: Subsets, relations: bool, edges: bool) -> dict[str, float]:
    """A variant's numbers as `<subset>/<relation>/<metric>`: means, with or without their
    intervals (`edges`), and `relations` too."""
    named: dict[str, float] = {}
    for subset, by_relation in variant.items():
        for relation, by_metric in by_relation.items():
            if not relations and relation not in MEANS:
                continue
            for metric, numbers in by_metric.items():
                name = f"{subset}/{relation}/{metric}"
                named[name] = numbers["value"]
                there = EDGES & numbers.keys() if edges and relation in MEANS else set()
                named |= {f"{name}.{edge}": numbers[edge] for edge in there}
    return {_legal(name): number for name, number in named.items()}


def _legal(name: str) -> str:
    """A metric's name with the characters that MLflow takes."""
    return "".join(c if c.isalnum() or c in "_-.:/ " else "_" for c in name)


def _params(method: str, params: Params) -> dict[str, Any]:
    content = params.model_dump(mode="json", include={"seed", "engine"})
    content["methods"] = {method: params.methods.get(method, {})}
    return lineage.flat(content)


def _tags(model: str, table: Path, folder: Path, params: Params) -> dict[str, str]:
    hashes = lineage.inputs(model, table.stem, lineage.hashes())
    stage = lineage.stage(table.parent)
    made = hashes.get(f"outputs/models/{model}", "unknown")
    kind, revision = "unknown", "unknown"
    with suppress(BadInput):  # predictions of a model that params.yaml no longer names
        kind, entry = params.models.find(model)
        revision = entry.revision or f"dvc:{made}"
    sets: dict[str, str] = {}
    if (folder / "candidates.parquet").is_file():
        candidates = pd.read_parquet(folder / "candidates.parquet", columns=["subset", "name"])
        for subset, part in candidates.groupby("subset", sort=True):
            sets[f"candidates.{subset}"] = candidate_hash(part["name"])
    return {
        "stage": stage,
        "kind": kind,
        "mlflow.source.git.commit": lineage.commit(),
        "mlflow.source.name": f"medprobe {stage}",
        "model.revision": revision,
        **{f"dvc.{path}": md5 for path, md5 in hashes.items()},
        **sets,
    }


def _parts(values: pd.DataFrame) -> Parts:
    """The means of each variant and replicate, where there are several."""
    if values.empty or len(values[["variant", "replicate"]].drop_duplicates()) < 2:
        return {}
    columns, keys = metrics_of(values), ["variant", "replicate", "subset"]
    relation = values.groupby([*keys, "relation"], sort=True)[columns].mean()
    means = {
        "macro": relation.groupby(level=keys, sort=True).mean(),
        "micro": values.groupby(keys, sort=True)[columns].mean(),
    }
    parts: Parts = {}
    for mean, table in means.items():
        for (variant, replicate, subset), row in table.iterrows():
            name, params = _part(variant, replicate)
            named = parts.setdefault(name, (params, {}))[1]
            named |= {_legal(f"{subset}/{mean}/{metric}"): float(row[metric]) for metric in columns}
    return parts


def _scored_parts(table: Path, params: Params) -> Parts:
    """The means of each variant and replicate, where the benchmark has a score of its own: that
    score of the part alone."""
    module, folder = registry.find(table.stem), places.BENCHMARKS / table.stem
    if not hasattr(module, "score"):
        return {}
    quick = params.model_copy(update={"score": params.score.model_copy(update={"bootstrap": 1})})
    parts: Parts = {}
    predictions = read_table(table, ["variant", "replicate"])
    for (variant, replicate), rows in predictions.groupby(["variant", "replicate"], sort=True):
        name, about = _part(variant, replicate)
        scores = module.score(rows, folder, quick)
        parts[name] = (
            about,
            _metrics(scores.get(about["variant"], {}), relations=False, edges=False),
        )
    return parts if len(parts) > 1 else {}


def _part(variant: str, replicate: str) -> tuple[str, dict[str, str]]:
    """A part's name, and what to call it by."""
    about = {"variant": variant or "default", "replicate": replicate}
    return " · ".join(word for word in about.values() if word), about


def _figures(found: pd.DataFrame, benchmark: str, model: str, params: Params) -> dict[str, str]:
    """The report's drawings of this one result."""
    drawn = _analyses(benchmark, params)
    results = Results(
        comparison=found,
        significance=pd.DataFrame(columns=SIGNIFICANCE),
        benchmarks={benchmark: registry.find(benchmark).METADATA},
        analyses={name: table[table["model"] == model] for name, table in drawn},
    )
    if found.empty or not results.subsets(benchmark):
        return {}
    for section in (relations, sweeps, context, diskne):
        section.section(results, benchmark)
    return {f"figures/{name.replace(':', '-')}.svg": svg for name, svg in results.figures.items()}


def _analyses(benchmark: str, params: Params) -> Iterator[tuple[str, pd.DataFrame]]:
    """What else is drawn of this benchmark: how ranks move in one context, how losses fall."""
    if benchmark == rank_changes.BENCHMARK:
        table = rank_changes.trajectory(
            places.PREDICTIONS, places.BENCHMARKS, names=params.track.text
        )
        yield "context-trajectory", table
    if benchmark == fine_tuning.BENCHMARK:
        yield "diskne-curves", fine_tuning.curves(places.PREDICTIONS)


def _tables(table: Path, folder: Path, params: Params) -> dict[str, str]:
    """The main variant's ranks, and those of a few queries; text only where params.yaml says so:
    names and prompts may be licensed."""
    predictions = pd.read_parquet(table)
    if "query_id" not in predictions or "rank" not in predictions:
        return {}
    if "variant" in predictions:
        main = predictions[predictions["variant"] == predictions["variant"].min()]
        predictions = main[main["replicate"] == main["replicate"].min()]
    columns = ["query_id", "rank", "prediction_id", "score", "hit"]
    queries = pd.read_parquet(folder / "queries.parquet")
    if params.track.text:
        columns.append("prediction")
    elif "prediction_id" in predictions:  # where names are all there is, they serve as ids
        own = predictions["prediction_id"] != predictions["prediction"]
        predictions["prediction_id"] = predictions["prediction_id"].where(own, "")
    top = predictions[[column for column in columns if column in predictions]]
    asked = top["query_id"].drop_duplicates()
    chosen = asked.iloc[:: max(1, len(asked) // SAMPLES)].head(SAMPLES)
    samples = top[top["query_id"].isin(chosen)].merge(
        queries[["query_id", "subset", "relation", *(TEXT if params.track.text else [])]],
        on="query_id",
        how="left",
    )
    return {
        "top_k.csv": top.to_csv(index=False, float_format="%.6g"),
        "samples.csv": samples.to_csv(index=False, float_format="%.6g"),
    }
