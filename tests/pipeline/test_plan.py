"""Which stages `medprobe plan` says are left, and how long it says that they take."""

import json
from pathlib import Path

import pandas as pd
import pytest

from medprobe.core import places
from medprobe.core.params import Params
from medprobe.pipeline import plan, timings
from medprobe.pipeline.stale_stages import Stage


def probing(model: str, benchmark: str) -> Stage:
    options = f"--method fill_mask --model {model} --benchmark {benchmark}"
    return Stage("now", [f"medprobe probe {options}", "medprobe track"], ())


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark of ten queries and one of twenty; no stage has run, and no rate is remembered."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plan, "_device", lambda wanted: "this cpu")
    for name, size in (("small", 10), ("large", 20)):
        folder = places.BENCHMARKS / name
        folder.mkdir(parents=True)
        pd.DataFrame({"query_id": range(size)}).to_parquet(folder / "queries.parquet")
    plan._queries.cache_clear()
    plan._rates.cache_clear()


def record(model: str, benchmark: str, seconds: float, device: str = "this cpu") -> None:
    path = places.RUNS / model / "fill_mask" / f"{benchmark}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"seconds": seconds, "device": device}))


def estimate_time(name: str, stage: Stage) -> plan.Time | None:
    return plan.estimate_time(name, stage, Params())


def test_a_stage_takes_as_long_as_all_its_commands_took(monkeypatch: pytest.MonkeyPatch) -> None:
    timings.write("probe", 5.0)  # by hand, not as a stage
    monkeypatch.setenv("DVC_STAGE", "probe-fill_mask@a-small")
    timings.write("probe", 99.0)
    timings.write("probe", 4.0)
    timings.write("track", 1.5)
    record("a", "small", 3.0)
    assert estimate_time("probe-fill_mask@a-small", probing("a", "small")) == plan.Time(5.5)
    assert estimate_time("train@a", Stage("now", "medprobe train", ())) is None


def test_a_record_beside_predictions_says_it_too() -> None:
    record("a", "small", 3.0)
    assert estimate_time("probe-fill_mask@a-small", probing("a", "small")) == plan.Time(3.0)


def test_a_stage_that_never_ran_goes_by_the_rate_of_its_model_then_of_its_method() -> None:
    record("a", "small", 3.0)
    record("b", "small", 5.0)
    record("c", "small", 1000.0, device="another")
    large = {model: estimate_time("probe", probing(model, "large")) for model in ("a", "new")}
    assert large == {"a": plan.Time(6.0, measured=False), "new": plan.Time(8.0, measured=False)}
    assert estimate_time("probe", probing("a", "not-built")) is None


def test_queries_of_families_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [f"q{i}" for i in range(5)]
    table = pd.DataFrame({"query_id": ids, "family_id": ["", "", "q0", "q0", "q0"]})
    table.to_parquet(places.BENCHMARKS / "small" / "queries.parquet")
    stages = {"a": probing("a", "small"), "b": probing("b", "large"), "c": probing("c", "unbuilt")}
    monkeypatch.setattr(plan, "find_stale_stages", lambda: stages)
    plan.plan(Params())
    lines = [line for line in capsys.readouterr().out.splitlines() if "families" in line]
    assert lines == ["3 of the 5 queries of small are of families."]


def test_what_certainly_runs_stands_apart_from_what_may(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    score = Stage("after probe-fill_mask@a-small", "medprobe score", ("probe-fill_mask@a-small",))
    stages = {"score": score, "probe-fill_mask@a-small": probing("a", "small")}
    monkeypatch.setattr(plan, "find_stale_stages", lambda: stages)
    record("a", "small", 100.0)
    plan.plan(Params())
    assert capsys.readouterr().out.splitlines() == [
        plan.CERTAIN,
        "probe-fill_mask@a-small           2 min",
        "1 stage; one after another they take 2 min",
        "",
        plan.POSSIBLE,
        "score                           unknown  after probe-fill_mask@a-small",
        "1 stage; 1 of unknown time",
        "",
    ]
    monkeypatch.setattr(plan, "find_stale_stages", dict)
    plan.plan(Params())
    assert capsys.readouterr().out == "All stages are up to date.\n"
