"""MLflow, in one place: where the store is, and how a result gets into it once and only once.

One experiment a benchmark; one run a model and method; below it a child run for each variant and
replicate. A run carries the hash of the content it was made from (`medprobe.key`). The rule: a
result whose key is in the store is not logged again; a result with another key is a new run, and
the run before it stays, to be compared with, its `medprobe.state` changed from `current` to
`superseded`. A run without a key was stopped half-way, and one whose artefacts are gone belongs to
a store that was moved: both are replaced.
"""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filelock import FileLock

from medprobe.core.errors import BadInput
from medprobe.tracking.lineage import user

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Param, Run

PREFIX: Final = (
    "MEDPROBE_EXPERIMENT_PREFIX"  # before experiments' names, on a server that is shared
)
KEY: Final = "medprobe.key"
NOTE: Final = "mlflow.note.content"
STATE: Final = "medprobe.state"
BATCH: Final = 1000  # metrics that MLflow takes at once
PARAMS: Final = 100  # parameters that it takes at once
LONGEST: Final = 6000  # characters of a parameter


@dataclass(frozen=True)
class Dataset:
    """An input of a run: its path, and DVC's hash as its digest."""

    path: str
    digest: str


@dataclass(frozen=True)
class Content:
    """What a run holds."""

    metrics: dict[str, float]
    params: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    parts: dict[str, tuple[dict[str, Any], dict[str, float]]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # artefacts: path -> text
    series: dict[str, Sequence[tuple[int, float]]] = field(default_factory=dict)  # by step
    datasets: Sequence[Dataset] = ()
    checkpoint: Dataset | None = None  # the model that was probed
    note: str = ""  # what the run is, in Markdown
    begin: int | None = None  # of the work itself, milliseconds since 1970
    end: int | None = None


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

    @property
    def name(self) -> str:
        """`<benchmark>/<model>/<method>`."""
        return "/".join((self.benchmark, self.model, self.method))


def folder() -> Path:
    """The folder of the local store. A DVC experiment that runs in a temporary copy of the project
    logs to the project's own."""
    here = Path.cwd()
    for path in here.parents:
        if path.parts[-3:] == (".dvc", "tmp", "exps"):
            return path.parents[2] / "mlruns"
    return here / "mlruns"


def connect() -> "MlflowClient":
    """A client of `MLFLOW_TRACKING_URI`, or of the SQLite store in `mlruns/`, made if need be."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("DO_NOT_TRACK", "true")
    from mlflow import MlflowClient

    uri = os.environ.get("MLFLOW_TRACKING_URI")
    if uri:
        return MlflowClient(uri, uri)
    database = folder() / "mlflow.db"
    with _alone():
        if not database.is_file():
            _create(database)
    uri = f"sqlite:///{database}"
    return MlflowClient(uri, uri)


def _create(database: Path) -> None:
    """Make the store's tables beside it and put them in its place: a half-made store stays broken,
    so there is none."""
    from mlflow import MlflowClient

    scratch = database.with_name(".making")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    uri = f"sqlite:///{scratch / database.name}"
    MlflowClient(uri, uri).search_experiments(max_results=1)
    with closing(sqlite3.connect(scratch / database.name)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    os.replace(scratch / database.name, database)
    shutil.rmtree(scratch, ignore_errors=True)


def _alone() -> FileLock:
    """The store's lock: of two processes that make or fill it at once, one waits."""
    folder().mkdir(exist_ok=True)
    return FileLock(folder() / ".lock")


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
        before = next((run for run in whole if run.data.tags[STATE] == "current"), None)
        current = same.info.run_id if same else _log(client, experiment, result, before)
        for run in whole:
            state = "current" if run.info.run_id == current else "superseded"
            if run.data.tags[STATE] != state:
                client.set_tag(run.info.run_id, STATE, state)
                client.update_run(run.info.run_id, name=_name(result, state))
    return same is None


def _experiment(client: "MlflowClient", name: str) -> str:
    """The id of a benchmark's experiment. A local one that keeps its artefacts elsewhere was moved:
    it is put aside, since MLflow cannot change where an experiment's artefacts are."""
    place = None if os.environ.get("MLFLOW_TRACKING_URI") else (folder() / name).as_uri()
    name = os.environ.get(PREFIX, "") + name
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
    if os.environ.get("MLFLOW_TRACKING_URI"):  # where others' results of the same names may be
        wanted["mlflow.user"] = user()
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


def _name(result: Result, state: str = "current") -> str:
    """What a run goes by in lists."""
    return f"{result.model} · {result.method}" + ("" if state == "current" else f" ({state})")


def _log(client: "MlflowClient", experiment: str, result: Result, before: "Run | None") -> str:
    """Log a run and its children, which takes the place of the run `before`; the key comes last, so
    that a run with a key is whole."""
    content = result.content()
    who = {"model": result.model, "method": result.method}
    params = _params({**who, **content.params})
    parts = {part: _params({**who, **about}) for part, (about, _) in content.parts.items()}
    tags = {**content.tags, **who, "medprobe.role": "result", "mlflow.user": user()}
    tags |= {NOTE: content.note + _replaced(before)} if content.note else {}
    name = _name(result)
    made = client.create_run(experiment, start_time=content.begin, tags=tags, run_name=name)
    run = made.info.run_id
    model = _logged_model(client, experiment, result.model, content.checkpoint)
    _batch(client, run, {**_once(content.metrics), **content.series}, params, model)
    _inputs(client, run, content.datasets, model)
    for part, (_, metrics) in content.parts.items():
        below = {**who, "medprobe.role": "part", "mlflow.parentRunId": run}
        child = client.create_run(experiment, tags=below, run_name=f"{name} · {part}").info.run_id
        _batch(client, child, _once(metrics), parts[part], model)
        client.set_terminated(child)
    client.log_dict(run, {"params": content.params, "tags": tags}, "lineage.json")
    for path, text in content.files.items():
        client.log_text(run, text, path)
    client.set_tag(run, STATE, "current")
    client.set_tag(run, KEY, result.key)
    client.set_terminated(run, end_time=content.end)
    return str(run)


def _replaced(before: "Run | None") -> str:
    """Which run a new one replaced, and what that had, for its note."""
    if before is None:
        return "\nIt is the first run of this model and method here.\n"
    day = datetime.fromtimestamp(before.info.start_time / 1000, UTC).date().isoformat()
    numbers = sorted(before.data.metrics.items())[:1]
    had = "".join(f", which had {name} {value:.3f}" for name, value in numbers)
    link = f"#/experiments/{before.info.experiment_id}/runs/{before.info.run_id}"
    return f"\nIt replaced the [run of {day}]({link}){had}.\n"


def _logged_model(
    client: "MlflowClient", experiment: str, name: str, checkpoint: Dataset | None
) -> str | None:
    """The id of MLflow's record of a checkpoint, made where it is the experiment's first."""
    if checkpoint is None:
        return None
    digest = checkpoint.digest
    query = f"name = '{name}' AND tags.`dvc.md5` = '{digest}'"
    for known in client.search_logged_models([experiment], query, max_results=1):
        return str(known.model_id)
    tags = {"dvc.md5": digest, "dvc.path": checkpoint.path}
    made = client.create_logged_model(experiment, name, tags=tags, model_type="external")
    client.finalize_logged_model(made.model_id, "READY")
    return str(made.model_id)


def _batch(
    client: "MlflowClient",
    run: str,
    series: Mapping[str, Sequence[tuple[int, float]]],
    params: "list[Param]",
    model: str | None,
) -> None:
    """Log numbers by step and parameters, as many at once as MLflow takes."""
    from mlflow.entities import Metric

    now = int(time.time() * 1000)
    numbers = [
        Metric(name, value, now, step, model_id=model)
        for name, steps in series.items()
        for step, value in steps
    ]
    for start in range(0, len(numbers), BATCH):
        client.log_batch(run, metrics=numbers[start : start + BATCH])
    for start in range(0, len(params), PARAMS):
        client.log_batch(run, params=params[start : start + PARAMS])


def _params(params: Mapping[str, Any]) -> "list[Param]":
    """Parameters as MLflow takes them. Raises BadInput for one that it would cut."""
    from mlflow.entities import Param

    for name, value in params.items():
        if (length := len(str(value))) > LONGEST:
            problem = f"{length} characters, MLflow takes {LONGEST}"
            raise BadInput(f"parameter {name}", problem, "shorten it in params.yaml")
    return [Param(name, str(value)) for name, value in params.items()]


def _once(metrics: Mapping[str, float]) -> dict[str, list[tuple[int, float]]]:
    return {name: [(0, value)] for name, value in metrics.items()}


def _inputs(
    client: "MlflowClient", run: str, datasets: Sequence[Dataset], model: str | None
) -> None:
    from mlflow.entities import Dataset as Logged
    from mlflow.entities import DatasetInput, LoggedModelInput

    listed = [DatasetInput(Logged(one.path, one.digest, "dvc", one.path)) for one in datasets]
    models = [LoggedModelInput(model)] if model else None
    if listed or models:
        client.log_inputs(run, datasets=listed, models=models)
