"""Results in the form of the model hub: files for the folder `.eval_results` of a model."""

from collections.abc import Iterator
from typing import Any

from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

from medprobe.metrics import catalog
from medprobe.tracking.every_eval_ever import MEAN
from medprobe.tracking.shared import ResultsFile


def entries(file: ResultsFile, organization: str) -> Iterator[tuple[str, str, list[dict]]]:
    """Convert the main metric of each result.

    Args:
        file: Results of one or several projects.
        organization: The account on the hub that has the benchmarks as data sets.

    Yields:
        Model, a name for the file, and its content: an entry per subset. Each method and variant
        has a file, since the hub takes one value per task and file.
    """
    for result in file.results:
        name = file.benchmarks[result.benchmark].metadata.primary_metric
        for variant, by_subset in result.scores.items():
            values: dict[str, dict[str, Any]] = {
                subset: relations[MEAN][name]
                for subset, relations in by_subset.items()
                if "/" not in subset and name in relations.get(MEAN, {})
            }
            listed = [
                EvalResultEntry(
                    dataset_id=f"{organization}/{result.benchmark}",
                    task_id=subset,
                    value=numbers["value"],
                    notes=_notes(result.method, variant, name, numbers, result.made),
                )
                for subset, numbers in values.items()
            ]
            ending = "" if variant == "default" else f"-{variant}"
            if listed:
                path = f"{result.benchmark}-{result.method}{ending}"
                yield result.model, path, eval_result_entries_to_yaml(listed)


def _notes(
    method: str, variant: str, metric: str, numbers: dict[str, float], run: dict[str, Any]
) -> str:
    """How the value was made: the form has no fields for it."""
    name = method if variant == "default" else f"{method}:{variant}"
    parts = [f"{catalog()[metric].title if metric in catalog() else metric} by {name}"]
    if {"low", "high"} <= numbers.keys():
        parts.append(f"interval {numbers['low']:.4f} to {numbers['high']:.4f}")
    if "n" in numbers:
        parts.append(f"{int(numbers['n'])} queries")
    if tool := run.get("imported.tool"):
        parts.append(f"answers from {tool}")
    return ", ".join(parts)
