"""After a kill or on a full disk the next command goes on, or says in one line what to do."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE
from threading import Timer
from unittest.mock import Mock

import pandas as pd
import psutil
import pytest
import torch
from click.testing import CliRunner, Result
from dvc.exceptions import ReproductionError
from dvc.repo import Repo
from filelock import FileLock
from safetensors import SafetensorError

from helpers import ROOT
from helpers.disk import small_files
from helpers.needed import SECTIONS
from medprobe.cli import main
from medprobe.core import dvc_records, places
from medprobe.core.errors import BadInput
from medprobe.core.files import MARKER, ScratchFolder, replacing
from medprobe.engine.training_state import write_state
from medprobe.metrics.splits import times_read
from medprobe.pipeline.repair import CLAIMS, RUNS, check_lock, repair, wait_for_others
from medprobe.tracking import store

TARGETS = (  # what is replaced: outputs of stages, and what stands beside them
    *("outputs/models/taught", "outputs/predictions/taught/xfactr/lama.parquet"),
    *("outputs/rewired/taught/set-0", "outputs/benchmarks/lama", "outputs/about/lama.json"),
    *("outputs/validation/lama", "outputs/queries", "outputs/tracked.json", "outputs/checked"),
    *("metrics/scores", "metrics/summary.json", "metrics/sweeps", "reports"),
    *("dvc.yaml", "dvc.lock", "data", "params.yaml"),
)
HEAD = "subject_cui,relation,object_cui,times\n"


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


PIPELINE = """\
stages:
  first: {cmd: cp code made && echo first >> ran, deps: [code], outs: [made]}
  second: {cmd: cp made copy && echo second >> ran, deps: [made], outs: [copy], params: [seed]}
"""


@pytest.fixture
def pipeline(working_folder: Path) -> Path:
    """A pipeline of two stages that has run, without git."""
    (working_folder / "dvc.yaml").write_text(PIPELINE)
    (working_folder / "params.yaml").write_text("seed: 1\n")
    (working_folder / "code").write_text("code")
    with Repo.init(no_scm=True) as repo:
        repo.reproduce()
    return working_folder


def test_a_cut_lock_is_reported_where_dvc_fails_by_it(
    pipeline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it was cut after a whole line, DVC looks at the stage again, and nobody need care."""
    monkeypatch.setattr(dvc_records, "TRIES", 1)
    path = pipeline / "dvc.lock"
    text = path.read_text()
    hashes = dvc_records.hashes()
    assert len(hashes) == 2
    for end in range(text.index("stages:") + 7, len(text) + 1, 5):
        path.write_text(text[:end])
        try:
            check_lock()
        except BadInput as error:
            assert re.search(r"dvc\.lock: incomplete, .*delete it", str(error))
            assert not dvc_records.hashes()
            continue
        with Repo() as repo:
            assert {*repo.status()} <= {"first", "second"}
        assert dvc_records.hashes().items() <= hashes.items()


def test_without_its_lock_dvc_runs_nothing_again(pipeline: Path) -> None:
    path = pipeline / "dvc.lock"
    text = path.read_text()
    path.write_text(text[:-9])
    with pytest.raises(BadInput, match="delete it: DVC restores the results from its cache"):
        repair()
    path.unlink()
    for name in ("made", "copy"):
        Path(name).unlink()
    with Repo() as repo:
        repo.reproduce()
    assert path.read_text() == text
    assert Path("copy").read_text() == "code"
    assert Path("ran").read_text() == "first\nsecond\n"


def test_what_a_kill_left_half_made_is_removed(working_folder: Path) -> None:
    code = """
from pathlib import Path
from medprobe.core.files import MARKER, ScratchFolder, replacing
with replacing(Path("outputs/models/taught")) as path:
    path.mkdir()
    print("in", flush=True)
    input()
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "in\n"
    repair()
    assert len(list(Path("outputs/models").iterdir())) == 1, "a living process is making it"
    process.kill()
    process.communicate()
    repair()
    assert not list(Path("outputs/models").iterdir())


LOOK_ALIKES = (  # what people and other programs may have there, with a file in each
    *(".notes.20261101", ".dvc.original", ".backup.disabled", ".taught.abcd1234", ".medprobe"),
    *(".medprobe-12345678", ".medprobe-notes", ".medprobe-abcdefgh/work", ".cache"),
    *("outputs/.keep.original", "outputs/models/.taught.abcd_123", "outputs/.medprobe-mine"),
    *("outputs/models/.medprobe-12345678", "outputs/parts/.repro.original", "outputs/medprobe-1"),
    *("metrics/.scores.20261101", "metrics/.medprobe-old", "metrics/scores/.medprobe-12345678"),
    *("outputs/.medprobe-empty", "outputs/.tmp.xxxxxxxx", "outputs/predictions/.xfactr.original"),
)


def test_what_only_looks_like_ours_stays(working_folder: Path) -> None:
    for name in LOOK_ALIKES:
        (working_folder / name).mkdir(parents=True)
        (working_folder / name / "notes").write_text("mine")
    (working_folder / "outputs/.medprobe-empty/notes").unlink()
    for name, content in (("outputs/.medprobe-mine", b"mine"), (".medprobe-notes", b"\xff")):
        (working_folder / name / MARKER).write_bytes(content)
    (working_folder / ".medprobe-file").write_text("mine")
    before = sorted(working_folder.rglob("*"))
    repair()
    assert sorted(working_folder.rglob("*")) == before


def test_a_run_whose_record_was_never_written_is_run_again(pipeline: Path) -> None:
    """DVC alone fails where it finds a stage's folder of records empty, then and ever after."""
    for name in ("made", "copy", "dvc.lock"):
        Path(name).unlink()
    records = [*RUNS.glob("*/*/*")]
    for record in records:
        record.unlink()
    with Repo() as repo, pytest.raises(ReproductionError):
        repo.reproduce()
    repair()
    assert not any(record.parent.exists() for record in records)
    with Repo() as repo:
        assert [stage.addressing for stage in repo.reproduce()] == ["first", "second"]
    names = sorted(RUNS.rglob("*"))
    repair()
    assert sorted(RUNS.rglob("*")) == names


def test_claims_of_processes_that_are_gone_are_dropped(working_folder: Path) -> None:
    """DVC refuses to run after a cut record, and after one whose process number is in use again."""
    CLAIMS.parent.mkdir(parents=True)

    def write(process_id: int) -> None:
        holder = {"pid": process_id, "cmd": "dvc repro"}
        CLAIMS.write_text(json.dumps({"write": {"a": holder}, "read": {"b": [holder]}}))

    CLAIMS.write_text('{"write": {"outputs/')
    repair()
    assert not CLAIMS.exists()
    write(os.getpid())
    repair()
    assert CLAIMS.exists(), "its process runs"
    os.utime(CLAIMS, (0, 0))  # before this process began
    repair()
    assert not CLAIMS.exists()
    killed = subprocess.Popen([sys.executable, "-c", "input()"], stdin=PIPE)
    killed.kill()
    os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)  # nobody collects it yet
    write(killed.pid)
    repair()
    assert not CLAIMS.exists()
    killed.communicate()


def test_a_stage_whose_dvc_was_killed_is_stopped(working_folder: Path) -> None:
    """But no stage of a DVC that runs, and none that runs in another folder."""
    code = """
import os, subprocess, sys
command = [sys.executable, "-c", "import signal; print('in', flush=True); signal.pause()"]
stage = subprocess.Popen(command, env=os.environ | {"DVC_STAGE": "probe"}, cwd=sys.argv[2])
print(stage.pid, flush=True)
stage.wait()
"""

    def start(command: str, folder: Path) -> tuple[subprocess.Popen[str], psutil.Process]:
        words = [sys.executable, "-c", code, command, str(folder)]
        parent = subprocess.Popen(words, stdin=PIPE, stdout=PIPE, text=True)
        assert parent.stdout
        lines = {parent.stdout.readline().strip() for _ in range(2)}
        [number] = lines - {"in"}
        return parent, psutil.Process(int(number))

    (elsewhere := working_folder / "elsewhere").mkdir()
    parents, stages = zip(
        *(start("dvc", working_folder), start("other", elsewhere), start("other", working_folder)),
        strict=True,
    )
    repair()
    assert psutil.wait_procs(stages[2:], timeout=60)[1] == []
    assert [stage.is_running() for stage in stages[:2]] == [True, True]
    for parent in parents:
        parent.kill()
        parent.wait()
    repair()
    assert psutil.wait_procs(stages[:1], timeout=60)[1] == []
    assert stages[1].is_running()
    stages[1].kill()
    for parent in parents:
        parent.communicate()


def test_repro_waits_for_another_dvc_and_names_it(
    working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    CLAIMS.parent.mkdir(parents=True)
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=PIPE, text=True)
    holder = {"pid": other.pid, "cmd": "dvc repro"}
    CLAIMS.write_text(json.dumps({"write": {"a": holder}}))
    assert not wait_for_others(os.getpgid(other.pid)), "it is one of ours"
    ending = Timer(0.1, other.communicate, ["\n"])
    ending.start()
    assert wait_for_others(0)
    assert other.poll() == 0
    line = f"process {other.pid} (`dvc repro`) runs stages here; waiting until it ends\n"
    assert capsys.readouterr().err == line
    assert not wait_for_others(0)


def test_a_scratch_folder_of_a_killed_process_leaves_the_systems_temporary_folder(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(working_folder / "temporary"))
    (working_folder / "temporary").mkdir()
    code = """
import os, tempfile
from medprobe.core.files import ScratchFolder
tempfile.tempdir = "temporary"
(ScratchFolder().work / "weights").write_text("many")
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    used = ScratchFolder()
    assert len(list(Path("temporary").iterdir())) == 2
    repair()
    assert [path.name for path in Path("temporary").iterdir()] == [used.folder.name]
    used.remove()


def test_what_is_half_made_is_hidden_from_dvc_and_git(working_folder: Path) -> None:
    """Until it is removed it makes no stage stale, and no `git add --all` takes it along."""
    for name in (".gitignore", ".dvcignore"):
        shutil.copy(ROOT / name, working_folder)
    Path(".dvc").mkdir()
    Path(".dvc/config").touch()
    subprocess.run(["git", "init", "--quiet"], check=True)
    with ExitStack() as stack:
        paths = [stack.enter_context(replacing(Path(target))) for target in TARGETS]
        for path in paths:
            path.touch()
        command = ["git", "check-ignore", *(str(path) for path in paths)]
        output = subprocess.run(command, stdout=PIPE, text=True, check=False).stdout
        assert output.splitlines() == [str(path) for path in paths]
        with Repo() as repo:
            folders = [str(path.parents[1].resolve()) for path in paths]
            hidden = [repo.dvcignore.is_ignored_dir(folder) for folder in folders]
        assert hidden == [True] * len(paths)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_runs_on_when_repro_is_stopped(working_folder: Path, number: int) -> None:
    """Not even what a stage has started, whatever stops `medprobe repro` alone."""
    code = """
import subprocess, sys
from medprobe.pipeline.repro import process_group
with process_group() as group:
    inner = "import subprocess, sys; subprocess.run(['sleep', '1000'], stdin=subprocess.DEVNULL)"
    made = subprocess.Popen([sys.executable, "-c", inner], process_group=group)
    print("in", flush=True)
    made.wait()
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "in\n"
    process.send_signal(number)
    process.communicate(timeout=30)  # to the end of what is said: all that could are gone
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)


@pytest.mark.parametrize(
    "content", ["", "a,b\n1,2\n", f"{HEAD}C1,r,C2,many\n", f"{HEAD}é,r,C2,1\n"]
)
def test_facts_that_are_no_facts_are_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(BadInput, match=r"facts\.csv: not the facts that a model has read"):
        times_read(path, pd.DataFrame([("C1", "r", "C2")]))
    path.write_text(f"{HEAD}C1,r,C2,3\n")
    assert times_read(path, pd.DataFrame([("C1", "r", "C2"), ("C1", "r", "C3")]))[0] == 3


def test_a_second_repro_waits_and_says_so(tmp_path: Path) -> None:
    code = (
        "from medprobe.pipeline.repro import exclusive_lock\n"
        "with exclusive_lock():\n    print('in', flush=True)\n    input()\n"
    )
    pipes = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
    command = [sys.executable, "-c", code]
    first = subprocess.Popen(command, cwd=tmp_path, text=True, **pipes)
    assert first.stdout and first.stdout.readline() == "in\n"
    second = subprocess.Popen(command, cwd=tmp_path, text=True, **pipes)
    assert second.stderr
    who = f"another `medprobe repro` is running here, process {first.pid}; waiting"
    assert who in second.stderr.readline()
    first.kill()  # the lock dies with it
    assert second.stdout and second.stdout.readline() == "in\n"
    second.communicate("\n")
    first.communicate()


def test_a_repro_that_waits_for_another_is_stopped_by_one_line(tmp_path: Path) -> None:
    (tmp_path / places.PARTS).mkdir(parents=True)
    (tmp_path / "params.yaml").write_text(SECTIONS)
    with FileLock(tmp_path / places.REPRO):
        code = "from medprobe.cli import main; main(['repro'])"
        command = [sys.executable, "-c", code]
        waiting = subprocess.Popen(command, cwd=tmp_path, text=True, stderr=PIPE)
        assert waiting.stderr and "waiting until it ends" in waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        _, rest = waiting.communicate(timeout=60)
    assert rest == "stopped; what was finished is kept\n"
    assert waiting.returncode == 128 + signal.SIGINT


def test_ctrl_c_ends_a_repro_that_wrote_dvc_yaml_again(working_folder: Path) -> None:
    """What writes it imports polars, after whose import a waiting call is not interrupted."""
    code = """
import socket
from contextlib import nullcontext
from medprobe.pipeline import repro
ends = socket.socketpair()
repro.repair = lambda: None
repro.wait_for_others = lambda group: None
repro.find_stale_stages = lambda tidy: ["train"]
repro.write_outdated = lambda stages: bool(__import__("polars"))
repro.fork_server.start = lambda variables, group: nullcontext({})
repro._dvc = lambda *arguments: (print("in", flush=True), ends[0].recv(1))
repro.repro(1)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=PIPE, stderr=PIPE, text=True)
    assert process.stdout
    assert any(line == "in\n" for line in process.stdout)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode


@pytest.fixture
def tracking_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[BaseException], Result]:
    """Run `medprobe track`, whose store raises an error."""

    def run(error: BaseException) -> Result:
        monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
        monkeypatch.setattr(store, "_first_use", Mock(side_effect=error))
        runner = CliRunner()
        with runner.isolated_filesystem(tmp_path):
            Path("params.yaml").write_text(SECTIONS)
            return runner.invoke(main, ["track"])

    return run


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "stopped; what was finished is kept"),
        (MemoryError(), 2, "Error: medprobe track: out of memory; lower --jobs or engine.token_"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"),
            *(2, "Error: medprobe track: out of memory; lower"),
        ),
        (ImportError("lib.so: failed to map segment from shared object"), 2, "Error: medprobe tr"),
    ],
)
def test_a_stop_and_refused_memory_are_one_line(
    tracking_fails: Callable[[BaseException], Result], error: BaseException, status: int, line: str
) -> None:
    result = tracking_fails(error)
    assert result.exit_code == status
    assert result.output.startswith(line)
    assert result.output.count("\n") == 1


@pytest.mark.parametrize(
    "error",
    [
        sqlite3.OperationalError("database or disk is full"),
        SafetensorError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        ),
    ],
)
def test_a_full_disk_under_a_library_is_one_line(
    tracking_fails: Callable[[BaseException], Result], error: Exception
) -> None:
    result = tracking_fails(error)
    assert result.exit_code == 2
    assert "the file system: No space left on device; make room" in result.output
    assert result.output.count("\n") == 1


def test_what_torch_writes_says_when_there_is_no_room(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = {"model": torch.nn.Linear(300, 300).state_dict()}
    problem = r"File too large: 'outputs/parts/state.pt'"
    with small_files(monkeypatch), pytest.raises(OSError, match=problem):  # noqa: SIM117
        with replacing(Path("outputs/parts/state.pt")) as scratch:
            write_state(state, scratch)
    assert [*Path("outputs/parts").iterdir()] == []


def test_an_error_of_mlflows_database_is_raised_and_not_printed_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    client = store.connect()
    with sqlite3.connect("mlruns/mlflow.db") as database:
        database.execute("DROP TABLE metrics")
        database.execute("DROP TABLE runs")
    with pytest.raises(Exception, match="no such table"):
        client.search_runs(["0"])
    assert "Traceback" not in capfd.readouterr().err
