"""After a kill or on a full disk the next command goes on, or says in one line what to do."""

import errno
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace
from unittest.mock import Mock

import pandas as pd
import psutil
import pytest
import torch
import yaml
from click.testing import CliRunner
from dvc.repo import Repo
from safetensors import SafetensorError

from medprobe.cli import main
from medprobe.commands.mend import CLAIMS, RUNS, check_lock, mend
from medprobe.core import files
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.engine import rewiring
from medprobe.metrics.splits import times_read
from medprobe.sample import training
from medprobe.tracking import lineage, store

ROOT = Path(__file__).parents[1]
TARGETS = (  # what is replaced: outputs of stages, and what stands beside them
    *("outputs/models/taught", "outputs/predictions/taught/xfactr/lama.parquet"),
    *("outputs/rewired/taught/set-0", "outputs/benchmarks/lama", "outputs/about/lama.json"),
    *("outputs/validation/lama", "outputs/queries", "outputs/tracked.json", "outputs/checked"),
    *("metrics/scores", "metrics/summary.json", "metrics/sweeps", "reports"),
    *("dvc.yaml", "dvc.lock", "data", "params.yaml"),
)
HEAD = "subject_cui,relation,object_cui,times\n"
LOCK = """\
schema: '2.0'
stages:
{}"""
STAGE = """\
  probe@{n}:
    cmd: medprobe probe --method m --model {n}
    deps:
    - path: outputs/models/{n}
      hash: md5
      md5: a{n:031d}
      size: 1234
    params:
      params.yaml:
        seed: {n}
    outs:
    - path: outputs/predictions/{n}.parquet
      hash: md5
      md5: a{n:031d}
      size: 1234
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_lock_cut_anywhere_is_mended(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No record is believed of which anything is missing, and no probe fails by its lineage."""
    monkeypatch.setattr(lineage, "TRIES", 1)
    text = LOCK.format("".join(STAGE.format(n=n) for n in range(8)))
    path = Path("dvc.lock")
    path.write_text(text)
    mend()
    assert path.read_text() == text
    whole = lineage.hashes()
    assert len(whole) == 8
    records = yaml.safe_load(text)["stages"]
    for end in range(0, len(text), 17):
        path.write_text(text[:end])
        found = lineage.hashes()
        if lineage.whole(text[:end]) != text[:end]:
            with pytest.raises(BadInput, match=r"dvc\.lock: cut, .* `medprobe repro` mends it"):
                check_lock()
        mend()
        check_lock()
        kept = yaml.safe_load(path.read_text())["stages"] if path.exists() else {}
        assert kept == {name: records[name] for name in list(records)[: len(kept)]}
        assert len(kept) >= text[:end].count("\n  probe@") - 1
        assert found == {name: whole[name] for name in list(whole)[: len(kept)]}
        lineage.recorded_params(Path("outputs/predictions/3.parquet"))
    assert not list(here.glob(".*"))


def test_what_a_kill_left_half_made_is_removed(here: Path) -> None:
    code = """
from pathlib import Path
from medprobe.core.files import replacing
with replacing(Path("outputs/models/taught")) as path:
    path.mkdir()
    print("in", flush=True)
    input()
"""
    Path("outputs/parts").mkdir(parents=True)
    Path("outputs/parts/.repro.lock").touch()
    process = subprocess.Popen([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "in\n"
    Path(".dvc/tmp").mkdir(parents=True)
    CLAIMS.write_text('{"read": {"outputs/mo')
    mend()
    assert not CLAIMS.exists()
    assert len(list(Path("outputs/models").iterdir())) == 1, "a living process is making it"
    process.kill()
    process.communicate()
    mend()
    assert not list(Path("outputs/models").iterdir())
    assert Path("outputs/parts/.repro.lock").exists()


def test_claims_of_the_dead_are_dropped_though_nobody_waited_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    CLAIMS.parent.mkdir(parents=True)
    dead = subprocess.Popen(["true"])
    while psutil.Process(dead.pid).status() != psutil.STATUS_ZOMBIE:
        pass
    ended, living = ({"pid": pid, "cmd": "dvc repro"} for pid in (dead.pid, os.getpid()))
    claims = {"write": {"a": ended, "b": living}, "read": {"c": [ended], "d": [ended, living]}}
    CLAIMS.write_text(json.dumps(claims))
    mend()
    assert json.loads(CLAIMS.read_text()) == {"write": {"b": living}, "read": {"d": [living]}}
    dead.wait()


@pytest.mark.parametrize("left", [[], [".half.tmp"]])
def test_a_run_whose_record_was_never_finished_is_run_again(here: Path, left: list[str]) -> None:
    """DVC alone fails where it finds a stage's folder of records empty, then and ever after."""
    Path("dvc.yaml").write_text("stages: {train: {cmd: cp code made, deps: [code], outs: [made]}}")
    Path("code").write_text("code")
    with Repo.init(no_scm=True) as repo:
        repo.reproduce()
    for path in ("made", "dvc.lock"):
        Path(path).unlink()
    (record,) = RUNS.glob("*/*/*")
    record.unlink()
    for name in left:
        (record.parent / name).write_text("cmd: cp co")
    mend()
    assert not record.parent.exists()
    with Repo() as repo:
        assert [stage.addressing for stage in repo.reproduce()] == ["train"]
    assert Path("made").read_text() == "code"
    (kept,) = RUNS.glob("*/*/*")
    mend()
    assert kept.exists()


def test_what_is_half_made_is_hidden_from_dvc_and_git(here: Path) -> None:
    """Until it is removed it makes no stage stale, and no `git add --all` takes it along."""
    for name in (".gitignore", ".dvcignore"):
        shutil.copy(ROOT / name, here)
    Path(".dvc").mkdir()
    Path(".dvc/config").touch()
    subprocess.run(["git", "init", "--quiet"], check=True)
    with ExitStack() as stack:
        made = [stack.enter_context(replacing(Path(target))) for target in TARGETS]
        for path in made:
            path.touch()
        command = ["git", "check-ignore", *(str(path) for path in made)]
        shown = subprocess.run(command, stdout=PIPE, text=True, check=False).stdout
        assert shown.splitlines() == [str(path) for path in made]
        with Repo() as repo:
            hidden = [repo.dvcignore.is_ignored_dir(str(path.parent.resolve())) for path in made]
        assert hidden == [True] * len(made)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_runs_on_when_repro_is_stopped(here: Path, number: int) -> None:
    """Not even what a stage has started, whatever stops `medprobe repro` alone."""
    code = """
import subprocess, sys
from medprobe.commands.repro import one_group
with one_group() as group:
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
        "from medprobe.commands.repro import alone\n"
        "with alone():\n    print('in', flush=True)\n    input()\n"
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    runner = CliRunner()
    with runner.isolated_filesystem(tmp_path):
        text = "{seed: 1, engine: {precision: float32}, rewire: {}, score: {}, track: {}}"
        Path("params.yaml").write_text(text)

        def full(_: Path) -> None:
            raise error

        monkeypatch.setattr(store, "_create", full)
        result = runner.invoke(main, ["track"])
    assert result.exit_code == 2
    assert "the file system: No space left on device; make room" in result.output
    assert result.output.count("\n") == 1


def test_what_torch_writes_says_when_there_is_no_room(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FULL", {errno.EFBIG})  # a limit stands in for the disk
    network = torch.nn.Linear(300, 300)
    adam = torch.optim.Adam(network.parameters())
    loaded = SimpleNamespace(model=Mock(), tokenizer=Mock())
    loaded.model.save_pretrained = loaded.tokenizer.save_pretrained = lambda path: path.mkdir(
        exist_ok=True
    )
    network(torch.zeros(300)).sum().backward()
    adam.step()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: 'outputs/parts/step-1'"):
            rewiring._keep(loaded, adam, [], Path("outputs/parts/step-1"))
        with pytest.raises(OSError, match=r"File too large: 'outputs/parts/state.pt'"):
            training._save(Path("outputs/parts/state.pt"), 1, {"model": network}, random.Random(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [*Path("outputs/parts").iterdir()] == []
