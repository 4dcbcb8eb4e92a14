"""MLflow, in one place: where the store is, and how a result gets into it once and only once.

One experiment a benchmark; one run a model and method; below it a child run for each variant and
replicate. A run carries the hash of the content it was made from (`medprobe.key`). The rule: a
result whose key is in the store is not logged again; a result with another key is a new run, and
the run before it stays, to be compared with, its `medprobe.state` changed from `current` to
`superseded`. A run without a key was stopped half-way, and one whose artefacts are gone belongs to
a store that was moved: both are replaced.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

STORE: Final = Path("mlruns")
KEY: Final = "medprobe.key"
STATE: Final = "medprobe.state"
BATCH: Final = 1000  # metrics that MLflow takes at once
LONGEST: Final = 500  # characters of a parameter that every MLflow server takes


@dataclass(frozen=True)
class Content:
    """What a run holds."""

    metrics: dict[str, float]
    params: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    parts: dict[str, tuple[dict[str, Any], dict[str, float]]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # artefacts: path -> text


@dataclass(frozen=True)
class Result:
    """What one model gave under one method on one benchmark; made only where it is not yet known.

    `key` is a hash of all that the content's numbers follow from.
    """

    benchmark: str
    model: str
    method: str
    key: str
    content: Callable[[], Content]


def connect() -> "MlflowClient":
    """A client of `MLFLOW_TRACKING_URI`, or of the SQLite store in `mlruns/`, made if need be."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("DO_NOT_TRACK", "true")
    from mlflow import MlflowClient

    uri = os.environ.get("MLFLOW_TRACKING_URI")
    if uri:
        return MlflowClient(uri, uri)
    uri = f"sqlite:///{STORE.absolute()}/mlflow.db"
    with _alone():
        with closing(sqlite3.connect(STORE / "mlflow.db")) as database:
            database.execute("PRAGMA journal_mode=WAL")
        client = MlflowClient(uri, uri)
        client.search_experiments(max_results=1)  # makes the tables: one process at a time
    return client


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the store's lock: of two processes that make or fill it at once, one waits."""
    STORE.mkdir(exist_ok=True)
    with (STORE / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def record(client: "MlflowClient", result: Result) -> bool:
    """Bring a result into the store, unless it is there. Returns whether a run was added."""
    with _alone():
        experiment = _experiment(client, result.benchmark)
        whole = []
        for run in _runs(client, experiment, result):
            if KEY in run.data.tags and _artefacts_there(run):
                whole.append(run)
            else:
                _delete(client, experiment, run)
        same = next((run for run in whole if run.data.tags[KEY] == result.key), None)
        current = same.info.run_id if same else _log(client, experiment, result)
        for run in whole:
            state = "current" if run.info.run_id == current else "superseded"
            if run.data.tags[STATE] != state:
                client.set_tag(run.info.run_id, STATE, state)
    return same is None


def _experiment(client: "MlflowClient", name: str) -> str:
    """The id of a benchmark's experiment. A local one that keeps its artefacts elsewhere was moved:
    it is put aside, since MLflow cannot change where an experiment's artefacts are."""
    place = None if os.environ.get("MLFLOW_TRACKING_URI") else (STORE / name).absolute().as_uri()
    found = client.get_experiment_by_name(name)
    usable = found and found.lifecycle_stage == "active"
    if found and usable and place in (None, found.artifact_location):
        return str(found.experiment_id)
    if found:
        if not usable:
            client.restore_experiment(found.experiment_id)
        client.rename_experiment(found.experiment_id, f"{name}, put aside ({found.experiment_id})")
        client.delete_experiment(found.experiment_id)
    return str(client.create_experiment(name, artifact_location=place))


def _runs(client: "MlflowClient", experiment: str, result: Result) -> "list[Run]":
    wanted = {"medprobe.role": "result", "model": result.model, "method": result.method}
    query = " and ".join(f"tags.`{name}` = '{value}'" for name, value in wanted.items())
    return list(client.search_runs([experiment], query))


def _artefacts_there(run: "Run") -> bool:
    uri = run.info.artifact_uri or ""
    return not uri.startswith("file:") or Path(uri.removeprefix("file://")).is_dir()


def _delete(client: "MlflowClient", experiment: str, run: "Run") -> None:
    query = f"tags.`mlflow.parentRunId` = '{run.info.run_id}'"
    for child in client.search_runs([experiment], query):
        client.delete_run(child.info.run_id)
    client.delete_run(run.info.run_id)


def _log(client: "MlflowClient", experiment: str, result: Result) -> str:
    """Log a run and its children; the key comes last, so that a run with a key is whole."""
    content = result.content()
    who = {"model": result.model, "method": result.method}
    tags = {**content.tags, **who, "medprobe.role": "result"}
    name = f"{result.model} · {result.method}"
    run = client.create_run(experiment, tags=tags, run_name=name).info.run_id
    _batch(client, run, content.metrics, {**who, **content.params})
    for part, (params, metrics) in content.parts.items():
        below = {**who, "medprobe.role": "part", "mlflow.parentRunId": run}
        child = client.create_run(experiment, tags=below, run_name=f"{name} · {part}").info.run_id
        _batch(client, child, metrics, {**who, **params})
        client.set_terminated(child)
    client.log_dict(run, {"params": content.params, "tags": tags}, "lineage.json")
    for path, text in content.files.items():
        client.log_text(run, text, path)
    client.set_tag(run, STATE, "current")
    client.set_tag(run, KEY, result.key)
    client.set_terminated(run)
    return str(run)


def _batch(
    client: "MlflowClient", run: str, metrics: dict[str, float], params: dict[str, Any]
) -> None:
    from mlflow.entities import Metric, Param

    now = int(time.time() * 1000)
    numbers = [Metric(name, value, now, 0) for name, value in metrics.items()]
    texts = [Param(name, str(value)[:LONGEST]) for name, value in params.items()]
    for start in range(0, max(len(numbers), 1), BATCH):
        client.log_batch(run, numbers[start : start + BATCH], texts[:100] if start == 0 else [])
