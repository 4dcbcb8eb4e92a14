"""After a kill or on a full disk the next command goes on, or says in one line what to do."""

import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from medprobe.cli import main
from medprobe.commands.repro import check_lock
from medprobe.core.errors import BadInput
from medprobe.metrics.splits import times_read
from medprobe.tracking import lineage, store

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
      md5: {n:032d}
    params:
      params.yaml:
        seed: {n}
    outs:
    - path: outputs/predictions/{n}.parquet
      hash: md5
      md5: {n:032d}
"""


def test_a_cut_lock_fails_no_probe(tmp_path: Path) -> None:
    text = LOCK.format("".join(STAGE.format(n=n) for n in range(30)))
    path = tmp_path / "dvc.lock"
    path.write_text(text)
    whole = lineage.hashes(path, tmp_path / "data.dvc")
    assert len(whole) == 30
    rng = random.Random(1)
    ends = [end for end, letter in enumerate(text, 1) if letter == "\n"]
    for end in [0, *rng.sample(ends, 60)]:  # at ends of lines, where a cut file may be YAML still
        path.write_text(text[:end])
        assert lineage.hashes(path, tmp_path / "data.dvc").items() <= whole.items()
        lineage.recorded_params(Path("outputs/predictions/3.parquet"), path)


@pytest.mark.parametrize("end", [300, 303, len(LOCK.format("")) + len("  probe@0:\n")])
def test_a_cut_lock_is_said_in_one_line(tmp_path: Path, end: int) -> None:
    text = LOCK.format("".join(STAGE.format(n=n) for n in range(3)))
    path = tmp_path / "dvc.lock"
    path.write_text(text)
    check_lock(path)
    path.write_text(text[:end])
    with pytest.raises(BadInput, match=r"dvc\.lock: cut, .* `git checkout dvc\.lock`"):
        check_lock(path)
    path.unlink()
    check_lock(path)


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
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-c", code]
    first = subprocess.Popen(command, cwd=tmp_path, text=True, **pipes)
    assert first.stdout and first.stdout.readline() == "in\n"
    second = subprocess.Popen(command, cwd=tmp_path, text=True, **pipes)
    assert second.stderr
    assert "another `medprobe repro` is running here; waiting" in second.stderr.readline()
    first.kill()  # the lock dies with it
    assert second.stdout and second.stdout.readline() == "in\n"
    second.communicate("\n")
    first.communicate()


def test_a_full_disk_under_mlflow_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    runner = CliRunner()
    with runner.isolated_filesystem(tmp_path):
        text = "{seed: 1, engine: {precision: float32}, rewire: {}, score: {}, track: {}}"
        Path("params.yaml").write_text(text)

        def full(_: Path) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(store, "_create", full)
        result = runner.invoke(main, ["track"])
    assert result.exit_code == 2
    assert "mlruns: No space left on device; make room" in result.output
    assert result.output.count("\n") == 1
