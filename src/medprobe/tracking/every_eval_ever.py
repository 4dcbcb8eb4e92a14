"""Results in the form of Every Eval Ever, version 0.3, a schema that evaluation programs share."""

import json
import math
import time
from collections.abc import Iterator
from typing import Any, Final

from medprobe.metrics import Metric, catalog
from medprobe.tracking.shared import MEAN, BenchmarkRecord, ResultRecord, ResultsFile

VERSION: Final = "0.3.0"


def records(file: ResultsFile, organization: str) -> dict[str, str]:
    """Convert each result to a record, which is valid by the schema.

    Returns:
        Path -> JSON.

    Source:
        Every Eval Ever, arXiv 2606.14516.
    """
    created = f"{time.time():.0f}"
    return {
        f"{result.benchmark}/{result.model}/{result.method}.json": (
            json.dumps(_record(file, result, organization, created), indent=1) + "\n"
        )
        for result in file.results
    }


def _record(
    file: ResultsFile, result: ResultRecord, organization: str, created: str
) -> dict[str, Any]:
    imported = result.made.get("imported.tool")
    version = result.made.get("imported.tool_version", "unknown") if imported else file.medprobe
    about = {"deployment_type": "unknown", "model_availability": "unknown", "kind": result.kind}
    if not imported:
        about["deployment_type"] = "self_deployed"
    return {
        "schema_version": VERSION,
        "evaluation_id": f"{result.benchmark}/{result.method}/{result.model}/{created}",
        "retrieved_timestamp": created,
        "source_metadata": {
            "source_name": "medprobe",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": str(imported or "medprobe"),
            "version": str(version),
            "additional_details": {"scored_by": f"medprobe {file.medprobe}", "code": result.code},
        },
        "model_info": {
            "name": result.model,
            "id": result.model,
            "additional_details": {**about, **_texts(result.inputs)},
        },
        "evaluation_results": [*_evaluations(result, file.benchmarks[result.benchmark])],
    }


def _evaluations(result: ResultRecord, benchmark: BenchmarkRecord) -> Iterator[dict[str, Any]]:
    """One entry per variant, whole subset and metric: its mean over relations."""
    about = benchmark.metadata
    metrics = catalog()
    for variant, subset, name, numbers in result.means():
        if subset not in benchmark.queries:
            continue
        details = {
            "queries_sha256": benchmark.queries[subset],
            "candidates_sha256": benchmark.candidates[subset],
            "licence": about.licence,
            "citation": about.citation,
        }
        yield {
            "evaluation_result_id": f"{subset}/{result.method}:{variant}/{name}",
            "evaluation_name": f"{result.benchmark}/{subset}",
            "source_data": {
                "dataset_name": result.benchmark,
                "source_type": "other",
                "additional_details": details,
            },
            "metric_config": _metric(metrics[name], subset, result, variant),
            "score_details": _score(numbers),
        }


def _metric(metric: Metric, subset: str, result: ResultRecord, variant: str) -> dict[str, Any]:
    better = metric.better_on(subset)
    return {
        "evaluation_description": f"{metric.title}: {metric.source}",
        "metric_id": f"medprobe.{metric.name}",
        "metric_name": metric.title,
        "metric_unit": "proportion" if metric.share else "points",
        "lower_is_better": better == "lower",
        "score_type": "continuous",
        "min_score": _edge(metric.low),
        "max_score": _edge(metric.high),
        "additional_details": {
            "method": result.method,
            "variant": variant,
            "mean": MEAN,
            "better": better,
            **_texts(result.params),
        },
    }


def _edge(value: float) -> float | str:
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _score(numbers: dict[str, float]) -> dict[str, Any]:
    """A value, with its interval where it has one."""
    score: dict[str, Any] = {"score": numbers["value"]}
    uncertainty: dict[str, Any] = {}
    if {"low", "high"} <= numbers.keys():
        uncertainty["confidence_interval"] = {
            "lower": numbers["low"],
            "upper": numbers["high"],
            "method": "bootstrap over clusters of queries",
        }
    if "n" in numbers:
        uncertainty["num_samples"] = int(numbers["n"])
    return {**score, "uncertainty": uncertainty} if uncertainty else score


def _texts(content: dict[str, Any]) -> dict[str, str]:
    """The schema's further details are texts."""
    return {name: str(value) for name, value in content.items()}
