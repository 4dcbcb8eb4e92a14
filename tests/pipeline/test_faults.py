"""After a kill or on a full disk the next command goes on, or says in one line what to do."""

import errno
import hashlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE
from unittest.mock import Mock

import psutil
import pytest
from click.testing import CliRunner, Result
from dvc.repo import Repo
from safetensors import SafetensorError

from helpers import ROOT
from helpers.disk import small_files
from helpers.needed import SECTIONS
from helpers.project import Project, environment
from medprobe.cli import main
from medprobe.core import dvc_records
from medprobe.core.errors import BadInput
from medprobe.core.files import MARKER, ScratchFolder, replacing
from medprobe.core.places import PARTS
from medprobe.pipeline.clean import repair

TARGETS = (  # what is replaced: outputs of stages, and what stands beside them
    *("outputs/models/taught", "outputs/predictions/taught/xfactr/lama.parquet"),
    *("outputs/rewired/taught/set-0", "outputs/benchmarks/lama", "outputs/about/lama.json"),
    *("outputs/validation/lama", "outputs/tracked.json", "outputs/checked"),
    *("metrics/scores", "metrics/summary.json", "metrics/sweeps", "reports"),
    *("dvc.yaml", "dvc.lock", "data", "params.yaml"),
)


def contents(folder: Path) -> dict[str, str]:
    """SHA-256 of all results, but of those that say when they were made."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for place in ("outputs", "metrics", "reports")
        for path in (folder / place).rglob("*")
        if path.is_file()
        and not str(path.relative_to(folder)).startswith(("outputs/runs", "outputs/parts"))
        and path.name != "provenance.js"
    }


def processes(folder: Path) -> list[psutil.Process]:
    """The processes that run in a folder."""
    found = []
    for process in psutil.process_iter(["cwd", "status"]):
        if process.info["cwd"] == str(folder) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def test_a_killed_repro_ends_later_with_the_same_bytes(
    finished_project: Path, tmp_path: Path
) -> None:
    """It is stopped while it probes, by Ctrl-C and by kill -9."""
    project = Project.copy(finished_project, tmp_path / "project")
    folder = project.folder
    expected = contents(folder)
    for name in ("outputs/predictions", PARTS, "metrics", ".dvc/cache"):
        shutil.rmtree(folder / name)
    dvc_yaml = (folder / "dvc.yaml").read_text()
    (folder / "dvc.yaml").write_text(f"{dvc_yaml}# that is written again\n")

    def made() -> int:
        """How many results and finished parts there are by now."""
        walks = (os.walk(folder / name) for name in ("outputs/predictions", PARTS))
        return sum(".p" in file for walk in walks for *_, files in walk for file in files)

    def stop(how: Callable[["subprocess.Popen[bytes]"], None]) -> None:
        before = made()
        command = ["medprobe", "repro", "--jobs", "1"]
        process = subprocess.Popen(command, cwd=folder, env=environment(), process_group=0)
        while made() == before:
            assert process.poll() is None
            time.sleep(0.02)
        started = psutil.Process(process.pid).children(recursive=True)
        how(process)
        process.wait(timeout=60)
        assert process.returncode
        assert psutil.wait_procs(processes(folder), timeout=60)[1] == []
        psutil.wait_procs(started, timeout=60)  # for DVC, one that nobody has reaped still runs

    stop(lambda process: process.send_signal(signal.SIGINT))
    stop(lambda process: process.kill())
    project.works("medprobe", "repro", "--jobs", "1")
    assert contents(folder) == expected
    assert "up to date" in project.works("dvc", "status")
    assert not [*folder.rglob(".medprobe-*")]


PIPELINE = """\
stages:
  first: {cmd: cp code made && echo first >> ran, deps: [code], outs: [made]}
  second: {cmd: cp made copy && echo second >> ran, deps: [made], outs: [copy], params: [seed]}
"""


def test_a_cut_lock_is_named_and_without_it_dvc_runs_nothing_again(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it was cut after a whole line, DVC looks at the stage again, and nobody need care."""
    monkeypatch.setattr(dvc_records, "TRIES", 1)
    Path("dvc.yaml").write_text(PIPELINE)
    Path("params.yaml").write_text("seed: 1\n")
    Path("code").write_text("code")
    with Repo.init(no_scm=True) as repo:
        repo.reproduce()
    path = Path("dvc.lock")
    text = path.read_text()
    for end in range(text.index("stages:") + 7, len(text) + 1, 5):
        path.write_text(text[:end])
        try:
            repair()
        except BadInput as error:
            assert re.search(r"dvc\.lock: incomplete, .*delete it", str(error))
            assert not dvc_records.hashes()
            continue
        with Repo() as repo:
            assert {*repo.status()} <= {"first", "second"}
    path.unlink()
    for name in ("made", "copy"):
        Path(name).unlink()
    with Repo() as repo:
        repo.reproduce()
    assert path.read_text() == text
    assert Path("copy").read_text() == "code"
    assert Path("ran").read_text() == "first\nsecond\n"


def test_what_a_kill_left_half_made_is_removed(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among the outputs, and in the system's temporary folder."""
    monkeypatch.setenv("TMPDIR", str(working_folder))
    monkeypatch.setattr(tempfile, "tempdir", str(working_folder))
    code = """
from pathlib import Path
from medprobe.core.files import ScratchFolder, replacing
scratch = ScratchFolder()
with replacing(Path("outputs/models/taught")) as path:
    path.mkdir()
    print("in", flush=True)
    input()
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "in\n"
    used = ScratchFolder()
    repair()
    assert len([*working_folder.rglob(MARKER)]) == 3, "living processes use them"
    process.kill()
    process.communicate()
    repair()
    assert [*working_folder.rglob(MARKER)] == [used.folder / MARKER]
    used.remove()


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


def test_a_stage_that_has_lost_the_interrupt_is_killed(working_folder: Path) -> None:
    """As where a library that is being imported has caught it: one signal is enough."""
    stage = "{cmd: \"trap '' INT; echo in; sleep 1000\", outs: [out]}"
    Path("dvc.yaml").write_text(f"stages: {{probe: {stage}}}\n")
    subprocess.run(["dvc", "init", "--quiet", "--no-scm"], check=True)
    code = """
from medprobe.pipeline import repro
from medprobe.pipeline.stale_stages import Stage
repro.GRACE = 0.01
with repro.process_group() as group:
    repro._run({"probe": Stage("now", "", ())}, 1, repro.environment(), group, [])
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, text=True)
    assert process.stdout
    while process.stdout.readline() != "in\n":
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT


def test_a_second_repro_waits_and_says_so(tmp_path: Path) -> None:
    """Ctrl-C ends its waiting by one line; otherwise it runs when the first has ended."""
    (tmp_path / PARTS).mkdir(parents=True)
    probed = (
        "models: {masked: {bert: {}}}\nbenchmarks: {lama: {lama: {}}}\n"
        "methods: {masked: {fill_mask: {lama: {}}}}\n"
    )
    (tmp_path / "params.yaml").write_text(SECTIONS + probed)
    code = (
        "from medprobe.pipeline.repro import exclusive_lock\n"
        "with exclusive_lock():\n    print('in', flush=True)\n    input()\n"
    )
    waiting = "from medprobe.cli import main; main(['repro'])"

    def start(program: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", program]
        pipes = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
        return subprocess.Popen(command, cwd=tmp_path, text=True, **pipes)

    first = start(code)
    assert first.stdout and first.stdout.readline() == "in\n"
    second, third = start(code), start(waiting)
    for process in (second, third):
        assert process.stderr
        who = f"another `medprobe repro` is running here, process {first.pid}; waiting"
        assert who in process.stderr.readline()
    third.send_signal(signal.SIGINT)
    assert third.communicate(timeout=60)[1] == "stopped; stages keep what they have finished\n"
    assert third.returncode == 128 + signal.SIGINT
    first.kill()  # the lock dies with it
    assert second.stdout and second.stdout.readline() == "in\n"
    second.communicate("\n")
    first.communicate()


@pytest.fixture
def command_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[BaseException], Result]:
    """Run `medprobe sample`, in which something raises an error."""

    def run(error: BaseException) -> Result:
        monkeypatch.setattr("medprobe.pipeline.sample.sample", Mock(side_effect=error))
        runner = CliRunner()
        with runner.isolated_filesystem(tmp_path):
            Path("params.yaml").write_text(SECTIONS)
            return runner.invoke(main, ["sample"])

    return run


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "^stopped; stages keep what they have finished"),
        (
            MemoryError(),
            2,
            r"^Error: medprobe sample: out of memory; lower --jobs or engine\.token_",
        ),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"),
            *(2, "^Error: medprobe sample: out of memory; lower"),
        ),
        (
            ImportError("lib.so: failed to map segment from shared object"),
            *(2, "^Error: medprobe sample: out of memory"),
        ),
        (
            sqlite3.OperationalError("database or disk is full"),
            *(2, "the file system: No space left on device; make room"),
        ),
        (
            SafetensorError("Error while serializing: I/O error: No space left on device"),
            *(2, "the file system: No space left on device; make room"),
        ),
    ],
)
def test_a_stop_refused_memory_and_a_full_disk_are_one_line(
    command_fails: Callable[[BaseException], Result], error: BaseException, status: int, line: str
) -> None:
    result = command_fails(error)
    assert result.exit_code == status
    assert re.search(line, result.output)
    assert result.output.count("\n") == 1


def test_head_ends_a_command_without_a_line(
    command_fails: Callable[[BaseException], Result],
) -> None:
    result = command_fails(BrokenPipeError(errno.EPIPE, "Broken pipe"))
    assert (result.exit_code, result.output) == (1, "")


def test_a_stage_on_a_full_disk_ends_by_one_line_and_leaves_its_outputs_as_they_were(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("data/tables").mkdir(parents=True)
    Path("params.yaml").write_text(
        f"{SECTIONS}benchmarks: {{table: {{own: {{facts: tables/facts.csv}}}}}}\n"
    )

    def write(rows: int) -> None:
        facts = [f"drug {n},treats,ailment {n % 12},Drug {n} treats [Y] ." for n in range(rows)]
        lines = ["subject,relation,object,prompt", *facts]
        Path("data/tables/facts.csv").write_text("\n".join(lines))

    command = ["build", "--benchmark", "own"]
    write(36)
    assert CliRunner().invoke(main, command).exit_code == 0
    before = {path: path.read_bytes() for path in Path().rglob("outputs/**/*") if path.is_file()}
    write(20_000)
    with small_files(monkeypatch):
        result = CliRunner().invoke(main, command)
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert "outputs/benchmarks/own: No space left on device; make room and run" in result.output
    after = {path: path.read_bytes() for path in Path().rglob("outputs/**/*") if path.is_file()}
    assert after == before
