"""Results in the form of the model hub: files for the folder `.eval_results` of a model."""

from typing import Any

import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

from medprobe.core.errors import BadInput
from medprobe.metrics import catalog
from medprobe.tracking.lineage import UNKNOWN
from medprobe.tracking.shared import ResultsFile


def entries(file: ResultsFile, organization: str) -> dict[str, str]:
    """Convert the main metric of each result.

    Args:
        file: Results of one or several projects.
        organization: The account on the hub that has the benchmarks as data sets.

    Returns:
        Path -> YAML, an entry per subset. Each method and variant has a file, since the hub takes
        one value per task and file.

    Raises:
        BadInput: The account is not known.
    """
    if organization == UNKNOWN:
        problem = "the hub finds a benchmark by the account that has its data set"
        raise BadInput("merge --format eval-results", problem, "give --organization")
    files = {}
    for result in file.results:
        metric = file.benchmarks[result.benchmark].metadata.primary_metric
        by_variant: dict[str, list[EvalResultEntry]] = {}
        for variant, subset, name, numbers in result.means():
            if name == metric and "/" not in subset:
                entry = EvalResultEntry(
                    dataset_id=f"{organization}/{result.benchmark}",
                    task_id=subset,
                    value=numbers["value"],
                    notes=_notes(result.method, variant, metric, numbers, result.made),
                )
                by_variant.setdefault(variant, []).append(entry)
        for variant, listed in by_variant.items():
            ending = "" if variant == "default" else f"-{variant}"
            name = f"{result.benchmark}-{result.method}{ending}"
            path = f"{result.model}/.eval_results/{name}.yaml"
            files[path] = yaml.safe_dump(eval_result_entries_to_yaml(listed), sort_keys=False)
    return files


def _notes(
    method: str, variant: str, metric: str, numbers: dict[str, float], run: dict[str, Any]
) -> str:
    """How the value was made: the form has no fields for it."""
    name = method if variant == "default" else f"{method}:{variant}"
    parts = [f"{catalog()[metric].title} by {name}"]
    if {"low", "high"} <= numbers.keys():
        parts.append(f"interval {numbers['low']:.4f} to {numbers['high']:.4f}")
    if "n" in numbers:
        parts.append(f"{int(numbers['n'])} queries")
    if tool := run.get("imported.tool"):
        parts.append(f"answers from {tool}")
    return ", ".join(parts)
