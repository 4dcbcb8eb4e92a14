"""Which stages `medprobe plan` says are left, and how long they took before."""

import pytest

from medprobe.core.params import Params
from medprobe.pipeline import plan, timings
from medprobe.pipeline.stale_stages import Stage


def probing(model: str, benchmark: str) -> Stage:
    options = f"--method fill_mask --model {model} --benchmark {benchmark}"
    return Stage("now", [f"medprobe probe {options}", "medprobe track"], ())


pytestmark = pytest.mark.usefixtures("working_folder")


def test_a_stage_takes_as_long_as_all_its_commands_took(monkeypatch: pytest.MonkeyPatch) -> None:
    timings.write("probe", 5.0)  # by hand, not as a stage
    monkeypatch.setenv("DVC_STAGE", "probe-fill_mask@a-small")
    timings.write("probe", 99.0)
    timings.write("probe", 4.0)
    timings.write("track", 1.5)
    assert timings.read_seconds("probe-fill_mask@a-small") == 5.5
    assert timings.read_seconds("train@a") is None


def test_what_certainly_runs_stands_apart_from_what_may(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    score = Stage("after probe-fill_mask@a-small", "medprobe score", ("probe-fill_mask@a-small",))
    stages = {"score": score, "probe-fill_mask@a-small": probing("a", "small")}
    monkeypatch.setattr(plan, "find_stale_stages", lambda: stages)
    monkeypatch.setenv("DVC_STAGE", "probe-fill_mask@a-small")
    timings.write("probe", 100.0)
    plan.plan(Params())
    assert capsys.readouterr().out.splitlines() == [
        plan.CERTAIN,
        "probe-fill_mask@a-small      2 min",
        "1 stage; one after another they take 2 min",
        "",
        plan.POSSIBLE,
        "score                      unknown  after probe-fill_mask@a-small",
        "1 stage; 1 of unknown time",
        "",
    ]
    monkeypatch.setattr(plan, "find_stale_stages", dict)
    plan.plan(Params())
    assert capsys.readouterr().out == "All stages are up to date.\n"
