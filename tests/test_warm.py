"""Warm starts: what runs in a fork of the server is what a process of its own would have done."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from dvc import lock
from filelock import FileLock

from medprobe import warm
from medprobe.warm import dvc as warm_dvc
from project import ROOT, environment


def cold() -> dict[str, str]:
    return environment() | {warm.SOCKET: ""}


def test_a_command_has_the_streams_and_status_of_its_caller(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def ran(*command: str, env: dict[str, str]) -> tuple[int, str, str]:
        done = subprocess.run(
            ["medprobe", *command],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    assert warm.run("medprobe", ["--version"], environment()) == 0
    assert capfd.readouterr().out.startswith("medprobe, version")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    for command in (["list", "papers"], ["build", "--benchmark", "none"], ["nonsense"]):
        assert ran(*command, env=environment()) == ran(*command, env=cold())


def test_what_is_not_served_is_left_to_a_cold_start() -> None:
    assert warm.run("medprobe", ["--help"], cold()) is None
    assert warm.run("medprobe", ["--help"], environment() | {"OMP_NUM_THREADS": "7"}) is None
    assert warm.run("python", ["--version"], environment()) is None
    assert warm.run("medprobe", ["--help"], environment() | {warm.SOCKET: "/none"}) is None


FORKED = """
import sys
from importlib.metadata import entry_points
from types import SimpleNamespace
from dvc.stage import run
from medprobe.warm import dvc as warm_dvc

class Shell(Exception):
    pass

def shell(*command, **how):
    raise Shell(command[0][-1])

environment = {"PATH": "/none"}
[script] = entry_points(group="console_scripts", name="medprobe")
warm_dvc.fork_commands(environment, script)
run.subprocess = SimpleNamespace(Popen=shell)
for command, more in [
    ("medprobe --version", {}),
    ("medprobe list papers # a comment", {"DVC_STAGE": "a@b"}),
    ("medprobe nonsense", {}),
    ("medprobe build", {}),
    ("medprobe --version && medprobe --version", {}),
    ("medprobe --version > there", {}),
    ("medprobe list $HOME", {}),
    ("python --version", {}),
    ("medprobe --version", {"OMP_NUM_THREADS": "7"}),
]:
    sys.stdout.flush()
    try:
        run._run("sh", command, cwd=".", env={**environment, **more})
        print("went well")
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_dvc_runs_our_commands_in_forks_and_all_else_by_a_shell(tmp_path: Path) -> None:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    said = subprocess.run(
        [sys.executable, "-c", FORKED],
        cwd=tmp_path,
        env=cold(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    ).stdout
    version, *told = said.splitlines()
    assert version.startswith("medprobe, version") and told[0] == "went well"
    assert any("Context Variance" in line for line in told)
    status = "StageCmdFailedError failed to run: medprobe {}, exited with 2".format
    assert "No such command 'nonsense'" in said and status("nonsense") in told
    assert "Missing option '--benchmark'" in said and status("build") in told
    assert told.count("went well") == 2
    assert told[-5:] == [
        "Shell medprobe --version && medprobe --version",
        "Shell medprobe --version > there",
        "Shell medprobe list $HOME",
        "Shell python --version",
        "Shell medprobe --version",
    ]


def test_a_killed_client_takes_its_command_along(tmp_path: Path) -> None:
    """The command waits for a lock that this test holds."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    (tmp_path / "outputs/parts").mkdir(parents=True)
    lock = FileLock(tmp_path / "outputs/parts/.repro.lock")
    with lock:
        waiting = subprocess.Popen(
            ["medprobe", "repro"],
            cwd=tmp_path,
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert waiting.stderr
        assert "waiting" in waiting.stderr.readline()
        waiting.kill()
        assert waiting.stderr.read() == ""  # at its end: nobody holds the other end any more


def test_the_server_is_quiet_as_the_package_is() -> None:
    """Variables that the package sets before it imports a library are set in the server too."""
    text = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert dict(re.findall(r'environ\.setdefault\("(\w+)", "(\w+)"\)', text)) == warm.QUIET


def test_dvc_writes_the_same_lock_where_it_reads_and_writes_it_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dvc.utils.serialize import _yaml

    (tmp_path / warm_dvc.KEPT).mkdir(parents=True)
    lock = (ROOT / "dvc.lock").read_text()
    first = next(iter(_yaml.loads_yaml(lock)["stages"]))
    long = "medprobe probe " + "--an-option with-words " * 9
    records: list[dict[str, Any]] = [
        {"score": {"cmd": "medprobe score", "params": {"rate": 1e-05, "on": True, "text": "1: #"}}},
        {"a@b-c": {"cmd": [long, long]}, first: {"cmd": "other"}},
        {},
    ]

    def rewritten(name: str, content: str, record: dict[str, Any]) -> str:
        """A file after DVC has taken down stages in it."""
        (tmp_path / name).write_text(content)
        with _yaml.modify_yaml(tmp_path / name) as read:
            read["stages"].update(deepcopy(record))
        return (tmp_path / name).read_text()

    before = [rewritten("dvc.lock", lock, record) for record in records]
    odd = "schema: '2.0'\nstages:\n  a:\n    cmd: b\ndatasets: []\n"
    odd_before = rewritten("dvc.lock", odd, records[0])
    monkeypatch.setattr(_yaml, "parse_yaml_for_update", _yaml.parse_yaml_for_update)
    monkeypatch.setattr(_yaml, "_dump", dump := Mock(wraps=_yaml._dump))
    warm_dvc.write_changes()
    assert [rewritten("dvc.lock", lock, record) for record in records] == before
    assert {len(call.args[0]) for call in dump.call_args_list} == {1}  # never the whole
    assert type(_yaml.parse_yaml_for_update(lock, "dvc.lock")) is dict  # the fast way was taken
    assert rewritten("dvc.lock", odd, records[0]) == odd_before
    commented = "# a comment\nstages: {}\n"
    assert rewritten("dvc.yaml", commented, records[0]).startswith("# a comment\n")


def test_dvc_parses_a_file_once_for_each_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dvc.utils import strictyaml

    (tmp_path / warm_dvc.KEPT).mkdir(parents=True)
    monkeypatch.setattr(strictyaml, "parse_yaml", parse := Mock(wraps=strictyaml.parse_yaml))
    warm_dvc.keep_parsed()

    def read(name: str, text: str) -> tuple[Any, int]:
        """The content, and how often it was parsed."""
        before = parse.call_count
        (tmp_path / name).write_text(text)
        return strictyaml.load(str(tmp_path / name))[0], parse.call_count - before

    lock = (ROOT / "dvc.lock").read_text()
    whole, parsed = read("dvc.lock", lock)
    assert parsed == 1
    assert read("dvc.lock", lock) == (whole, 0)
    pipeline, _ = read("dvc.yaml", (ROOT / "dvc.yaml").read_text())
    assert "stages" in pipeline and read("dvc.lock", lock) == (whole, 0)
    assert read("dvc.lock", "stages: {}\n") == ({"stages": {}}, 1)
    assert read("params.yaml", "a: 1\n") == read("params.yaml", "a: 1\n") == ({"a": 1}, 1)
    assert read("dvc.lock", "{1: 2}\n") == read("dvc.lock", "{1: 2}\n") == ({1: 2}, 1)  # no JSON
    read("dvc.lock", lock)
    [kept] = (tmp_path / warm_dvc.KEPT).glob("*lock*")
    for damaged in (kept.read_text().replace("medprobe build", "medprobe built"), "", "5\n5"):
        kept.write_text(damaged)
        assert read("dvc.lock", lock) == (whole, 1)


def test_what_dvc_wrote_it_need_not_parse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dvc.utils.serialize import _yaml

    (tmp_path / warm_dvc.KEPT).mkdir(parents=True)
    for name in ("parse_yaml_for_update", "_dump"):
        monkeypatch.setattr(_yaml, name, getattr(_yaml, name))
    warm_dvc.write_changes()
    place = tmp_path / "dvc.lock"
    shutil.copy(ROOT / "dvc.lock", place)
    with _yaml.modify_yaml(place) as read:
        read["stages"]["score"] = {"cmd": "a", "params": {"rate": 1e-05, "on": True, "no": "no"}}
    text = place.read_text()
    content = warm_dvc._parsed(text, str(place), Mock(side_effect=AssertionError))
    assert content == _yaml.loads_yaml(text)


def test_dvc_asks_for_its_lock_again_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "DEFAULT_TIMEOUT", lock.DEFAULT_TIMEOUT)
    path = str(tmp_path / "lock")
    held, waits = lock.Lock(path), []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        held.unlock()

    monkeypatch.setattr(lock.time, "sleep", wait)
    warm_dvc.shorten_waits()
    held.lock()
    lock.Lock(path, wait=True).lock()
    assert waits == [pytest.approx(0.02)]


@pytest.mark.parametrize(
    ("module", "name", "way"),
    [
        ("dvc.utils.strictyaml", "parse_yaml", warm_dvc.keep_parsed),
        ("dvc.utils.serialize._yaml", "_dump", warm_dvc.write_changes),
        ("dvc.stage.run", "_run", partial(warm_dvc.fork_commands, {}, Mock())),
        ("mlflow.store.db.utils", "_get_latest_schema_revision", warm.know_revision),
        (
            "transformers.conversion_mapping",
            "get_checkpoint_conversion_mapping",
            warm.know_conversions,
        ),
    ],
)
def test_a_name_that_a_library_no_longer_has_stops_nothing(
    module: str, name: str, way: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    library, others = import_module(module), Mock()
    monkeypatch.delattr(library, name)
    before = {**vars(library)}
    warm.hasten(way, others)
    others.assert_called_once_with()
    assert vars(library) == before  # as it was: nothing is half changed


def test_mlflow_looks_for_its_latest_tables_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.store.db import utils

    look = Mock(wraps=utils._get_latest_schema_revision)
    monkeypatch.setattr(utils, "_get_latest_schema_revision", look)
    warm.know_revision()
    assert utils._get_latest_schema_revision() == utils._get_latest_schema_revision()
    look.assert_called_once_with()
    assert utils._get_latest_schema_revision() == look()


@pytest.mark.parametrize(("forgets", "said"), [("", "at the exit\n"), ("warm.forget_exits()", "")])
def test_what_libraries_do_at_the_exit_is_left_out(forgets: str, said: str) -> None:
    code = f"""
import sys, weakref
from medprobe import warm
weakref.finalize(sys.modules["weakref"], print, "at the exit")
{forgets}
"""
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == said


def test_make_keeps_compiled_modules_whatever_the_environment_says() -> None:
    told = ["make", "--no-print-directory", "--eval", "told: ; @env", "told"]
    variables = environment() | {"PYTHONDONTWRITEBYTECODE": "1"}
    said = subprocess.run(
        told, cwd=ROOT, env=variables, capture_output=True, text=True, check=True
    ).stdout
    assert "PATH=" in said
    assert "PYTHONDONTWRITEBYTECODE" not in said
