"""`medprobe repro` runs several stages at a time, each after those it depends on."""

import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.pipeline import repro
from medprobe.pipeline.stale_stages import Stage, order_by_first_result

NEEDS = {
    "build": (),
    "train": (),
    "validate": ("build",),
    "probe": ("build", "train"),
    "score": ("probe", "validate"),
}
STAGES = {name: Stage("now", f"medprobe {name}", needs) for name, needs in NEEDS.items()}


class Recorder:
    """Stands in for DVC: takes down what runs, and what had ended before."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.before: dict[str, set[str]] = {}
        self.ended: set[str] = set()
        self.at_once = 0
        self._running = 0
        self._lock = threading.Lock()

    def __call__(self, arguments: list[str], _: Mapping[str, str], group: int) -> None:
        option, stage = arguments
        assert (option, group) == ("--single-item", 7)
        with self._lock:
            self.before[stage] = set(self.ended)
            self._running += 1
            self.at_once = max(self.at_once, self._running)
        if stage == self.failing:
            raise BadInput(stage, "it fails", "mend it")
        with self._lock:
            self._running -= 1
            self.ended.add(stage)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    new_recorder = Recorder()
    monkeypatch.setattr(repro, "_dvc", new_recorder)
    return new_recorder


@pytest.mark.parametrize("jobs", [2, 3])
def test_a_stage_runs_once_after_all_that_it_depends_on(recorder: Recorder, jobs: int) -> None:
    repro._run(STAGES, jobs, {}, 7, [])
    assert recorder.ended == {"build", "train", "validate", "probe", "score"}
    assert all(recorder.before[stage] >= {*needed} for stage, needed in NEEDS.items())
    assert recorder.at_once <= jobs


def test_first_results_come_order_by_first_result() -> None:
    """Before a model is probed, only what that needs has run; among equals, the file's order."""
    stages = {
        "train@a": Stage("now", "medprobe train --model a", ()),
        "train@b": Stage("now", "medprobe train --model b", ()),
        "build": Stage("now", "medprobe build", ()),
        "score": Stage("after build", "medprobe score", ("probe@a", "probe@b")),
        "probe@b": Stage("after build", ["medprobe probe", "medprobe track"], ("build", "train@b")),
        "probe@a": Stage("after build", ["medprobe probe", "medprobe track"], ("build", "train@a")),
    }
    assert order_by_first_result(stages) == [
        "build",
        "train@b",
        "probe@b",
        "train@a",
        "probe@a",
        "score",
    ]


def test_stages_are_taken_up_in_that_order(recorder: Recorder) -> None:
    repro._run(STAGES, 1, {}, 7, [])
    assert list(recorder.before) == order_by_first_result(STAGES)


def test_what_depends_on_a_failing_stage_does_not_run(recorder: Recorder) -> None:
    recorder.failing = "train"
    with pytest.raises(BadInput, match="train"):
        repro._run(STAGES, 2, {}, 7, [])
    assert not {"probe", "score"} & set(recorder.before)


def test_stages_that_wait_for_nothing_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for the other's begin: one after the other, neither would end."""
    both = threading.Barrier(2, timeout=60)
    monkeypatch.setattr(repro, "_dvc", lambda *_: both.wait())
    repro._run({name: STAGES[name] for name in ("build", "train")}, 2, {}, 7, [])


def test_stages_side_by_side_have_a_card_each(monkeypatch: pytest.MonkeyPatch) -> None:
    both, used = threading.Barrier(2, timeout=60), set()

    def run(arguments: list[str], variables: Mapping[str, str], group: int) -> None:
        used.add(variables["CUDA_VISIBLE_DEVICES"])
        both.wait()

    monkeypatch.setattr(repro, "_dvc", run)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    stages = {name: STAGES[name] for name in ("build", "train")}
    repro._run(stages, 2, {}, 7, repro.find_cards())
    assert used == {"2", "5"}


def test_a_stage_that_the_system_kills_is_explained(
    working_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("dvc.yaml").write_text("stages: {probe: {cmd: kill -9 $$, outs: [out]}}\n")
    subprocess.run(["dvc", "init", "--quiet", "--no-scm"], check=True)
    with repro.process_group() as group, pytest.raises(BadInput, match="lower --jobs or engine"):
        repro._dvc([], repro.environment(), group)
    assert "exited with -9" in capfd.readouterr().err


def test_dvc_does_not_run_where_nothing_is_left(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(repro, "find_stale_stages", lambda **_: {})
    monkeypatch.setattr(repro, "_dvc", lambda *_: pytest.fail("DVC ran"))
    repro.repro(jobs=2)
    assert capsys.readouterr().out == "Data and pipelines are up to date.\n"
    places.REPORTS.mkdir()
    (places.REPORTS / "index.html").write_text("<title>medprobe: a &amp; b are equal</title>")
    repro.repro(jobs=2)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "a & b are equal",
        "open reports/index.html",
    ]


def test_dvc_gives_no_advice_after_each_stage(
    working_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("dvc.yaml").write_text("stages: {score: {cmd: echo 7 > out, outs: [out]}}\n")
    subprocess.run(["git", "init", "--quiet"], check=True)
    subprocess.run(["dvc", "init", "--quiet"], check=True)
    with repro.process_group() as group:
        repro._dvc(["--single-item", "score"], repro.environment(), group)
        printed = "".join(capfd.readouterr())
        assert "Running stage 'score'" in printed
        assert "git add" not in printed and "dvc push" not in printed
