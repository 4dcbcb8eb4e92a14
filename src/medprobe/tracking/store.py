"""MLflow: where the store is, and how a result is logged once.

One experiment a benchmark; one run a model and method; below it a child run for each variant and
replicate. The experiment `all benchmarks` has one run a model. The tag `medprobe.key` of a run is a
hash of what the run was made from. A result is skipped where a finished run has its key; else it is
a new run. Of the runs of a model and method, the tag `medprobe.state` is `current` for one and
`superseded` for those before it. Where params.yaml no longer names a result, its run is `gone`,
until the result comes back. What an experiment of DVC's logs in a copy of the project is of state
`experiment`, under the experiment's name. Child runs have the state of their parent.
"""

import json
import logging
import os
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filelock import FileLock

from medprobe.core.environment import find_cause
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.lineage import user

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

URI: Final = "MLFLOW_TRACKING_URI"
PREFIX: Final = "MEDPROBE_EXPERIMENT_PREFIX"  # of experiments' names, on a shared server
KEY: Final = "medprobe.key"
STATE: Final = "medprobe.state"
EXPERIMENT: Final = "dvc.experiment"  # the name of the experiment of DVC's that logged in a copy
CURRENT: Final = f"tags.`medprobe.role` = 'result' and tags.`{STATE}` = 'current'"
NOTE: Final = "mlflow.note.content"
CONTEXT: Final = "mlflow.data.context"
LONGEST_REASON: Final = 160  # characters of what MLflow says of a store that it cannot use
RETRIES: Final = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"  # MLflow's own 7 take minutes each time


class NotLogged(BadInput):
    """The store cannot be used: damaged, locked, of another version of MLflow, or not reached."""


@dataclass(frozen=True)
class Dataset:
    """An input of a run: its path, and DVC's hash as its digest."""

    path: str
    digest: str
    context: str = ""  # what the run uses it for
    columns: Mapping[str, str] = field(default_factory=dict)  # of its main table: name -> type
    rows: int | None = None  # of this table


@dataclass(frozen=True)
class Content:
    """What a run holds."""

    metrics: dict[str, float]
    params: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    children: "dict[str, Content]" = field(default_factory=dict)  # child runs by name
    files: dict[str, str] = field(default_factory=dict)  # artefacts: path -> text
    series: dict[str, Sequence[tuple[int, float]]] = field(default_factory=dict)  # by step
    datasets: Sequence[Dataset] = ()
    checkpoint: Dataset | None = None  # the model that was probed
    note: str = ""  # what the run is, in Markdown
    begin: int | None = None  # of the work itself, milliseconds since 1970
    end: int | None = None


@dataclass(frozen=True)
class PendingRun:
    """A run that is logged unless the store has one of its key: of one result, or over several.

    Attributes:
        key: A hash of all that the content follows from.
        content: Makes what the run holds; called only where its key is not logged yet.
        late: Metrics that need the results of other stages, logged when they are there.
        about: What the benchmark is, in Markdown, for the experiment's description.
    """

    benchmark: str
    model: str
    method: str
    key: str
    content: Callable[[], Content]
    late: Mapping[str, float] = field(default_factory=dict)
    about: str = ""

    @property
    def name(self) -> str:
        """`<benchmark>/<model>/<method>`."""
        return "/".join((self.benchmark, self.model, self.method))


def folder() -> Path:
    """The folder of the local store.

    A DVC experiment that runs in a temporary copy of the project logs to the project's own.
    """
    here = Path.cwd()
    for path in here.parents:
        if path.parts[-3:] == (".dvc", "tmp", "exps"):
            return path.parents[2] / "mlruns"
    return here / "mlruns"


def _experiment_here() -> str:
    """The experiment of DVC's that runs in this copy of a project; empty in the project itself."""
    return os.environ.get("DVC_EXP_NAME", "-") if folder().parent != Path.cwd() else ""


def connect() -> "MlflowClient":
    """A client of `MLFLOW_TRACKING_URI`, or of the SQLite store in `mlruns/`."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("DO_NOT_TRACK", "true")
    os.environ.setdefault(RETRIES, "2")
    logging.getLogger("mlflow.store").setLevel(logging.CRITICAL)  # prints what it raises as well
    database = folder() / "mlflow.db"
    uri = os.environ.get(URI) or f"sqlite:///{database}"
    with usable(), _first_use():
        from mlflow import MlflowClient

        if not os.environ.get(URI) and not database.exists():
            with replacing(database) as scratch:  # a kill would leave half its tables
                MlflowClient(f"sqlite:///{scratch}").search_experiments(max_results=1)
        client = MlflowClient(uri)
        client.search_experiments(max_results=1)
    return client


@contextmanager
def usable() -> Iterator[None]:
    """Raise `NotLogged` for what MLflow, its database or the network refuse within the block.

    A package that a database or a store of files needs may be missing.

    What is wrong with the content of a run is another error.
    """
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, OSError, ImportError) as error:
        line = find_cause(error) or str(error).strip().partition("\n")[0] or type(error).__name__
        if uri := os.environ.get(URI):  # which may hold a password
            line = line.replace(uri.rstrip("/"), f"${URI}")
        reason = textwrap.shorten(line, LONGEST_REASON, placeholder=" …")
        where = f"${URI}" if uri else "mlruns"
        raise NotLogged(
            where, f"not logged to MLflow: {reason}", "`medprobe track` logs it later"
        ) from error


def _first_use() -> FileLock:
    """A lock for what MLflow creates at first use: tables, experiments, models and data sets.

    Of two processes that create the same at once, one fails.
    """
    folder().mkdir(exist_ok=True)
    return FileLock(folder() / ".lock")


@usable()
def mark_gone(client: "MlflowClient", is_named: Callable[[str, str, str], bool]) -> None:
    """Mark the current runs of a benchmark, model and method that params.yaml no longer names.

    Nothing is marked on a server, where other projects log too, nor by an experiment of DVC's in a
    copy of the project, whose params.yaml is another one.
    """
    if os.environ.get(URI) or _experiment_here():
        return
    prefix = os.environ.get(PREFIX, "")
    for experiment in client.search_experiments():
        if not experiment.name.startswith(prefix):
            continue
        for run in client.search_runs([experiment.experiment_id], CURRENT):
            model, method = run.data.tags["model"], run.data.tags["method"]
            if not is_named(experiment.name.removeprefix(prefix), model, method):
                _mark(client, run, "gone")


@usable()
def record(client: "MlflowClient", result: PendingRun) -> bool:
    """Log a result unless its key is there, and mark the runs that it supersedes.

    The run is marked current when all of it is there. What a killed process left half-logged is
    superseded too. An experiment in a copy of the project leaves all other runs as they are.
    """
    with _first_use():
        experiment = _experiment(client, result.benchmark, result.about)
    runs = _runs(client, experiment, result)
    own = [run for run in runs if _experiment_of(run) == _experiment_here()]
    finished = [run for run in runs if run.info.status == "FINISHED"]
    same = next((run for run in finished if run.data.tags.get(KEY) == result.key), None)
    if same and same not in own and _experiment_here():
        return False
    current = same.info.run_id if same else _log(client, experiment, result)
    logged = same.data.metrics if same else {}
    for name, value in result.late.items():
        if logged.get(name) != value:
            client.log_metric(current, name, value)
    for run in own if same in own else [client.get_run(current), *own]:
        state = "superseded"
        if run.info.run_id == current:
            state = "experiment" if _experiment_here() else "current"
        if run.info.status == "RUNNING":
            client.set_terminated(run.info.run_id, "KILLED")
        if run.data.tags.get(STATE) != state:
            _mark(client, run, state)
    return same is None


def _experiment(client: "MlflowClient", benchmark: str, about: str) -> str:
    """The id of a benchmark's experiment, which gets a description if there is one."""
    name = os.environ.get(PREFIX, "") + benchmark
    place = None if os.environ.get(URI) else (folder() / benchmark).as_uri()
    tags = {NOTE: about} if about else {}
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return client.create_experiment(name, place, tags)
    if about and experiment.tags.get(NOTE) != about:
        client.set_experiment_tag(experiment.experiment_id, NOTE, about)
    if experiment.lifecycle_stage == "deleted":
        client.restore_experiment(experiment.experiment_id)
    if place not in (None, experiment.artifact_location):
        problem = f"its files are those of another place, {experiment.artifact_location}"
        raise NotLogged("mlruns", problem, "delete mlruns/, and `medprobe track` fills it again")
    return str(experiment.experiment_id)


def _runs(client: "MlflowClient", experiment: str, result: PendingRun) -> "list[Run]":
    """The runs of a result's model and method; on a server, of this user alone."""
    tags = {"medprobe.role": "result", "model": result.model, "method": result.method}
    if os.environ.get(URI):
        tags["mlflow.user"] = user()
    query = " and ".join(f"tags.`{name}` = '{value}'" for name, value in tags.items())
    return list(client.search_runs([experiment], query))


def _experiment_of(run: "Run") -> str:
    """The experiment in a copy that a run is of; empty of the project's own, or once applied."""
    waits = run.data.tags.get(STATE) in (None, "experiment")
    return run.data.tags.get(EXPERIMENT, "") if waits else ""


def _mark(client: "MlflowClient", run: "Run", state: str) -> None:
    """Give a run its state as a tag, and in its name, after all its children have it."""

    def suffix(state: str | None) -> str:
        return f" ({run.data.tags[EXPERIMENT] if state == 'experiment' else state})"

    query = f"tags.`mlflow.parentRunId` = '{run.info.run_id}'"
    children = client.search_runs([run.info.experiment_id], query)
    for marked in (*children, run):
        name = (marked.info.run_name or "").removesuffix(suffix(marked.data.tags.get(STATE)))
        name += "" if state == "current" else suffix(state)
        client.set_tag(marked.info.run_id, STATE, state)
        client.update_run(marked.info.run_id, name=name)


def _log(client: "MlflowClient", experiment: str, result: PendingRun) -> str:
    """Log a run and its children, and give its id. It is finished when all of it is there."""
    content = result.content()
    name = f"{result.model} · {result.method}"
    system = {"model": result.model, "method": result.method}
    system |= {EXPERIMENT: here} if (here := _experiment_here()) else {}
    tags = {**content.tags, **system, "medprobe.role": "result", "mlflow.user": user()}
    tags |= {KEY: result.key}
    tags |= {NOTE: content.note} if content.note else {}
    with _first_use():
        model = _logged_model(client, experiment, result.model, content.checkpoint)
    run = _create_run(client, experiment, name, tags, content, model=model)
    for part, numbers in content.children.items():
        tags_of_part = {**system, "medprobe.role": "part", "mlflow.parentRunId": run}
        tags_of_part |= {NOTE: f"**{part}** of the run {name}."}
        of_part = replace(numbers, datasets=content.datasets)
        title = f"{name} · {part}"
        child = _create_run(client, experiment, title, tags_of_part, of_part, model=model)
        client.set_terminated(child)
    client.log_dict(run, {"params": content.params, "tags": tags}, "lineage.json")
    for path, text in content.files.items():
        client.log_text(run, text, path)
    client.set_terminated(run, end_time=content.end)
    return run


def _create_run(
    client: "MlflowClient",
    experiment: str,
    name: str,
    tags: dict[str, str],
    content: Content,
    *,
    model: str | None,
) -> str:
    """Create a run with its parameters, numbers and inputs, and give its id.

    Numbers without a series are at step 0. All are of the data set with columns, and of `model`,
    the id of MLflow's record of the checkpoint.
    """
    from mlflow.entities import Metric, Param

    run = str(client.create_run(experiment, content.begin, tags, name).info.run_id)
    data = next((item for item in content.datasets if item.columns), None)
    measured = {"dataset_name": data.path, "dataset_digest": data.digest} if data else {}
    now = int(time.time() * 1000)
    series = {**{key: [(0, value)] for key, value in content.metrics.items()}, **content.series}
    metrics = [
        Metric(key, value, now, step, model_id=model, **measured)
        for key, steps in series.items()
        for step, value in steps
    ]
    settings = {"model": tags["model"], "method": tags["method"], **content.params}
    params = [Param(key, str(value)) for key, value in settings.items()]
    client.log_batch(run, metrics=metrics, params=params)
    with _first_use():
        _log_inputs(client, run, content.datasets, model)
    return run


def _logged_model(
    client: "MlflowClient", experiment: str, name: str, checkpoint: Dataset | None
) -> str | None:
    """The id of MLflow's record of a checkpoint, made where the experiment has none of it."""
    if checkpoint is None:
        return None
    query = f"name = '{name}' AND tags.`dvc.md5` = '{checkpoint.digest}'"
    for model in client.search_logged_models([experiment], query, max_results=1):
        return str(model.model_id)
    tags = {"dvc.md5": checkpoint.digest, "dvc.path": checkpoint.path}
    model = client.create_logged_model(experiment, name, tags=tags, model_type="external")
    client.finalize_logged_model(model.model_id, "READY")
    return str(model.model_id)


def _log_inputs(
    client: "MlflowClient", run: str, datasets: Sequence[Dataset], model: str | None
) -> None:
    from mlflow import entities

    inputs = []
    for data in datasets:
        columns = [{"name": name, "type": kind} for name, kind in data.columns.items()]
        schema = json.dumps({"mlflow_colspec": columns}) if columns else None
        profile = json.dumps({"num_rows": data.rows}) if data.rows is not None else None
        entity = entities.Dataset(data.path, data.digest, "dvc", data.path, schema, profile)
        tags = [entities.InputTag(CONTEXT, data.context)] if data.context else []
        inputs.append(entities.DatasetInput(entity, tags))
    models = [entities.LoggedModelInput(model)] if model else []
    if inputs or models:
        client.log_inputs(run, datasets=inputs, models=models)
