"""The MLflow store: made whole, by one process, and each result in it once."""

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from helpers.store import make_store
from medprobe.tracking import store as tracking_store
from medprobe.tracking.store import (
    STATE,
    URI,
    Content,
    Dataset,
    NotLogged,
    PendingRun,
    connect,
    record,
)


def runs(name: str = "made_up", role: str = "result") -> list[Any]:
    """The runs of single models."""
    client = connect()
    experiment = client.get_experiment_by_name(name)
    query = f"tags.`medprobe.role` = '{role}' and tags.model != 'all'"
    return list(client.search_runs([experiment.experiment_id], query))


@pytest.fixture
def empty(working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store without runs, to work in."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    make_store(working_folder)
    return working_folder


DATABASE = Path("mlruns/mlflow.db")


def _make_noise() -> None:
    DATABASE.write_bytes(os.urandom(5_000))


def _damage_middle() -> None:
    content = bytearray(DATABASE.read_bytes())
    middle = slice(len(content) // 3, len(content) // 2)
    content[middle] = os.urandom(len(content[middle]))
    DATABASE.write_bytes(content)


def _change_schema() -> None:
    with sqlite3.connect(DATABASE) as connection:
        connection.execute("update alembic_version set version_num = 'another'")


def _drop_runs() -> None:
    with sqlite3.connect(DATABASE) as connection:
        connection.execute("drop table runs")


def _make_file() -> None:
    shutil.rmtree("mlruns")
    Path("mlruns").write_text("", encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_make_noise, "file is not a database"),
        (_damage_middle, "malformed"),
        (_change_schema, "schema"),
        (_drop_runs, "no such column"),
        (_make_file, "File exists"),
    ],
)
def test_a_store_that_cannot_be_used_is_one_line(
    damage: Callable[[], None], reason: str, empty: Path
) -> None:
    damage()
    with pytest.raises(NotLogged, match=reason) as caught:
        record(connect(), PendingRun("b", "m", "f", "key", lambda: Content({"a": 1.0})))
    line = str(caught.value)
    assert line.startswith("mlruns: not logged to MLflow: ")
    assert line.endswith("; `medprobe track` logs it later")


def test_a_server_that_is_not_reached_is_named_without_its_password(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv(URI, "http://me:secret@127.0.0.1:9")
    with pytest.raises(NotLogged, match="not logged to MLflow") as caught:
        connect()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "package"),
    [
        ("postgresql+psycopg://me:secret@127.0.0.1:9/db", "psycopg"),
        ("mysql+pymysql://me:secret@127.0.0.1:9/db", "pymysql"),
    ],
)
def test_a_database_without_its_driver_is_named_without_its_password(
    empty: Path, monkeypatch: pytest.MonkeyPatch, uri: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as where it is not installed
    monkeypatch.setenv(URI, uri)
    with pytest.raises(NotLogged, match=f"not logged to MLflow: .*{package}") as caught:
        connect()
    assert "secret" not in str(caught.value)


def test_an_error_in_what_is_logged_is_no_error_of_the_store(empty: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        record(connect(), PendingRun("b", "m", "f", "key", lambda: Content({"a": 1 / 0})))


def test_a_run_that_was_stopped_half_way_does_not_count(empty: Path) -> None:
    def broken() -> Content:
        return Content({"a": 1.0}, files={"../outside": "x"})

    client = connect()
    with pytest.raises(Exception, match="Invalid artifact path"):
        record(client, PendingRun("b", "m", "f", "key", broken))
    assert record(client, PendingRun("b", "m", "f", "key", lambda: Content({"a": 1.0})))
    assert not record(client, PendingRun("b", "m", "f", "key", lambda: Content({"a": 1.0})))
    assert sorted(run.info.status for run in runs("b")) == ["FINISHED", "KILLED"]


def test_what_mlflow_cuts_is_whole_in_the_artefact(empty: Path) -> None:
    params = {f"p{number}": "x" * 7000 for number in range(150)}
    record(connect(), PendingRun("b", "m", "f", "key", lambda: Content({"a": 1.0}, params=params)))
    (run,) = runs("b")
    assert len(run.data.params) == 2 + 150
    (file,) = Path("mlruns").rglob("lineage.json")
    assert json.loads(file.read_text())["params"] == params


def test_an_experiment_that_was_deleted_comes_back(empty: Path) -> None:
    result = PendingRun("b", "m", "f", "key", lambda: Content({"a": 1.0}))
    record(client := connect(), result)
    client.delete_experiment(client.get_experiment_by_name("b").experiment_id)
    record(client, result)
    assert len(runs("b")) == 1


class Killed(BaseException):
    """What ends the process of a `DyingClient`."""


class DyingClient:
    """A client that ends its process before the call of a number, and says whether it did."""

    def __init__(self, client: MlflowClient, calls: int) -> None:
        self.client, self.left = client, calls

    def __getattr__(self, name: str) -> Any:
        self.left -= 1
        if self.left < 0:
            raise Killed
        return getattr(self.client, name)


def test_a_run_is_current_when_it_is_finished(empty: Path) -> None:
    """Logging is killed before each call of MLflow, and what it left is superseded later."""
    content = Content({"a": 1.0}, children={"part": Content({"b": 2.0})}, files={"a.csv": "a\n1\n"})
    client, calls, ended = connect(), 0, False
    record(client, PendingRun("b", "m", "f", "key", lambda: content))
    while not ended:
        result = PendingRun("b", f"m{calls}", "f", "key", lambda: content)
        try:
            record(DyingClient(client, calls), result)  # type: ignore[arg-type]
            ended = True
        except Killed:
            current = [run for run in runs("b") if run.data.tags.get(STATE) == "current"]
            assert {run.info.status for run in current} == {"FINISHED"}
            record(client, result)
        calls += 1
    assert calls > 10
    states = [(run.data.tags["model"], run.data.tags[STATE], run.info.status) for run in runs("b")]
    assert sorted(state for state in states if state[1] == "current") == sorted(
        (f"m{i}", "current", "FINISHED") for i in ["", *range(calls)]
    )
    assert {of[1:] for of in states} == {("current", "FINISHED"), ("superseded", "KILLED")}
    of_runs = {run.info.run_id: run.data.tags[STATE] for run in runs("b")}
    for part in runs("b", "part"):
        assert part.data.tags[STATE] == of_runs[part.data.tags["mlflow.parentRunId"]]


def test_a_team_has_experiments_of_its_own(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDPROBE_EXPERIMENT_PREFIX", "team/")
    content = Content({"a": 1.0}, checkpoint=Dataset("outputs/models/m", "m1"))
    assert record(connect(), PendingRun("b", "m", "f", "key", lambda: content))
    assert not record(connect(), PendingRun("b", "m", "f", "key", lambda: content))
    assert len(runs("team/b")) == 1
    assert connect().get_experiment_by_name("b") is None


def test_on_a_server_the_results_of_others_stay(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{empty}/mlruns/mlflow.db")
    monkeypatch.setenv("MLFLOW_ARTIFACT_ROOT", str(empty))
    for user in ("one", "other"):
        monkeypatch.setattr(tracking_store, "user", lambda user=user: user)
        result = PendingRun("b", "m", "f", f"key of {user}", lambda: Content({"a": 1.0}))
        assert record(connect(), result)
    assert {run.data.tags[STATE] for run in runs("b")} == {"current"}
    assert len(runs("b")) == 2


def test_an_experiment_of_dvc_logs_to_the_projects_store(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for below in ("x", "standalone/x"):
        copy = tmp_path / ".dvc/tmp/exps" / below
        copy.mkdir(parents=True)
        monkeypatch.chdir(copy)
        assert tracking_store.folder() == tmp_path / "mlruns"
    record(connect(), PendingRun("b", "m", "f", "key", lambda: Content({"a": 1.0})))
    monkeypatch.chdir(tmp_path)
    assert not record(connect(), PendingRun("b", "m", "f", "key", lambda: Content({"a": 1.0})))
    (run,) = runs("b")
    assert run.info.artifact_uri.startswith((tmp_path / "mlruns/b").as_uri())
    assert not list((tmp_path / ".dvc").rglob("mlruns"))


def test_processes_that_start_together_make_one_store(empty: Path) -> None:
    shutil.rmtree("mlruns")
    fork = get_context("fork")
    barrier = fork.Barrier(2)

    def log(model: str) -> None:
        barrier.wait()
        record(connect(), PendingRun("b", model, "f", "key", lambda: Content({"a": 1.0})))

    processes = [fork.Process(target=log, args=[name]) for name in ("first", "second")]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert sorted(run.info.run_name for run in runs("b")) == ["first · f", "second · f"]


def test_a_store_is_made_whole_or_not_at_all(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)

    def stopped(client: MlflowClient, max_results: int) -> None:
        assert not Path("mlruns/mlflow.db").exists()
        Path(client.tracking_uri.removeprefix("sqlite:///")).write_text("half")
        raise KeyboardInterrupt

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(MlflowClient, "search_experiments", stopped)
        connect()
    assert {path.name for path in Path("mlruns").iterdir()} == {".lock"}
    assert len(connect().search_experiments()) == 1


def test_an_error_of_mlflows_database_is_raised_and_not_printed_as_well(
    working_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    client = connect()
    with sqlite3.connect("mlruns/mlflow.db") as database:
        database.execute("DROP TABLE metrics")
        database.execute("DROP TABLE runs")
    with pytest.raises(Exception, match="no such table"):
        client.search_runs(["0"])
    assert "Traceback" not in capfd.readouterr().err
