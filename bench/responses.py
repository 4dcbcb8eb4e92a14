"""Responses of a model, as lm-evaluation-harness logs them."""

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from medprobe.core.errors import BadInput

SAMPLES: Final = "samples_*.jsonl"  # the logs of lm-eval, one file per task
RESULTS: Final = "results_*.json"  # what lm-eval records of a run
LM_EVAL: Final = "lm-eval"
AGAIN: Final = "run lm-eval with --log_samples"


@dataclass(frozen=True)
class Response:
    """The response of a model to one query.

    Args:
        where: File and line, for errors.
        task: The name of the task.
        query_id: The query's id, where the log has it.
        context: The text before the choices.
        choices: The texts that were scored, each with its log-likelihood.
        texts: The texts that the model wrote, where it wrote.
    """

    where: str
    task: str
    query_id: str | None
    context: str = ""
    choices: tuple[tuple[str, float], ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Log:
    """The responses of one run, and its origin.

    Args:
        responses: All of them.
        origin: Program, version, model, date and files, by name.
        tasks: What the tasks say of themselves, by task: their `metadata`.
    """

    responses: list[Response]
    origin: dict[str, str]
    tasks: dict[str, dict[str, Any]]


def read(path: Path) -> Log:
    """Read the log of a run of lm-evaluation-harness 0.4: a folder, or one of its samples_*.jsonl.

    Raises:
        BadInput: It is neither, or a line of it is damaged.
    """
    samples = sorted(path.rglob(SAMPLES)) if path.is_dir() else []
    if path.is_file() and path.match(SAMPLES):
        samples = [path]
    if not samples:
        remedy = f"{AGAIN}, or write a table: CSV, TSV or parquet"
        raise BadInput(path, f"neither {SAMPLES} nor a folder with such files", remedy)
    _check_one_run(path, samples)
    responses = [response for file in samples for response in _lm_eval_responses(file)]
    ranked = [{score for _, score in x.choices} for x in responses if len(x.choices) > 1]
    if ranked and all(len(scores) == 1 for scores in ranked):
        problem = "all choices of each query have the same log-likelihood"
        raise BadInput(path, problem, "ask a model or a server that gives log-likelihoods")
    records = sorted(
        file for folder in {path.parent for path in samples} for file in folder.glob(RESULTS)
    )
    run = _json(records[-1]) if records else {}
    config = run.get("config") or {}
    name = _model_of(run)
    origin = {"tool": LM_EVAL, "tool_version": run.get("lm_eval_version"), "model": _public(name)}
    origin |= {"model_revision": config.get("model_revision"), "date": _day(run.get("date"))}
    origin |= {"dtype": config.get("model_dtype"), "limit": config.get("limit")}
    configs = run.get("configs") or {}
    tasks = {task: content.get("metadata") or {} for task, content in configs.items()}
    return Log(responses, _texts(origin) | file_hashes(samples), tasks)


def _model_of(run: dict[str, Any]) -> str:
    """The model that a run's record names; "" where it names none."""
    arguments = (run.get("config") or {}).get("model_args")
    pretrained = arguments.get("pretrained") if isinstance(arguments, dict) else None
    return str(run.get("model_name") or pretrained or "")


def _check_one_run(path: Path, samples: list[Path]) -> None:
    """Raise BadInput where a folder has two runs of a task, or runs of two models."""
    remedy = "give the folder or file of one run"
    files: dict[str, Path] = {}
    for file in samples:
        task = _task_of(file)
        if task in files:
            problem = f"two runs of the task {task}, {files[task].name} and {file.name}"
            raise BadInput(path, problem, remedy)
        files[task] = file
    folders = {file.parent for file in samples}
    records = (record for folder in folders for record in folder.glob(RESULTS))
    models = sorted({model for record in records if (model := _public(_model_of(_json(record))))})
    if len(models) > 1:
        raise BadInput(path, f"runs of two models, {models[0]} and {models[1]}", remedy)


def _task_of(file: Path) -> str:
    return file.name.removeprefix("samples_").rpartition("_")[0]


def _lm_eval_responses(path: Path) -> Iterator[Response]:
    """One response per line; a sample that several filters passed is logged several times."""
    seen = set()
    task = _task_of(path)
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            where = f"{path}, line {number}"
            try:
                sample = json.loads(line)
                if sample["doc_id"] in seen:
                    continue
                seen.add(sample["doc_id"])
                yield _lm_eval_response(sample, where, task)
            except (
                *(ValueError, KeyError, TypeError, IndexError, AttributeError),
                RecursionError,  # JSON that is nested too deep
            ):
                raise BadInput(where, "no sample of lm-eval", AGAIN) from None


def _lm_eval_response(sample: dict[str, Any], where: str, task: str) -> Response:
    requests = [sample["arguments"][f"gen_args_{i}"] for i in range(len(sample["arguments"]))]
    doc = sample["doc"]
    query = doc.get("query_id") or doc.get("id")
    query_id, context = str(query) if query else None, str(requests[0]["arg_0"])
    if isinstance(requests[0]["arg_1"], str):  # log-likelihoods of choices
        pairs = zip(requests, sample["resps"], strict=True)
        choices = tuple((request["arg_1"], float(response[0][0])) for request, response in pairs)
        if not all(-math.inf < score <= 0 for _, score in choices):
            problem = "a log-likelihood is not a number, or above 0"
            raise BadInput(where, problem, "score the model again, in float32")
        return Response(where, task, query_id, context, choices=choices)
    return Response(where, task, query_id, context, texts=tuple(map(str, sample["resps"][0])))


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise BadInput(path, "not JSON", "give what the program wrote") from None
    return content if isinstance(content, dict) else {}


def _public(name: str) -> str:
    """A model's name, without the path of a folder, which names a person's machine.

    >>> _public("/home/ada/models/mine"), _public("org/model")
    ('mine', 'org/model')
    """
    path = Path(name)
    return path.name if path.is_absolute() or name.startswith((".", "~")) else name


def _day(seconds: float | None) -> str | None:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}" if seconds else None


def _texts(origin: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in origin.items() if value not in (None, "")}


def file_hashes(files: list[Path]) -> dict[str, str]:
    """The SHA-256 of each file."""
    return {f"sha256.{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
