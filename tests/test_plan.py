"""What `medprobe plan` counts, against what models then read."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import made_up
import probing
import tiny
from medprobe import methods
from medprobe.commands import plan, trial
from medprobe.commands.todo import Stage
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.core.parts import watching
from medprobe.core.tables import BenchmarkTables
from medprobe.engine.load import load
from medprobe.methods import Method
from medprobe.stages.probe import probe, ready
from project import ROOT

CASES = [
    ("fill_mask", "bert", "masked"),
    ("mask_average", "roberta", "masked"),
    ("contrastive", "bert", "masked"),
    ("perplexity", "bert", "masked"),
    ("perplexity", "gpt2", "causal"),
    ("rank_change", "bert", "masked"),
]
SETTINGS: dict[str, Any] = {"contrastive": {"sets": ["set-0"]}}


def row_of(stage: str, cmd: str) -> plan.Left:
    return plan.Left(stage, "now", options=Stage("now", cmd, ()).options)


def params(method: str, kind: str) -> Params:
    return Params.model_validate(
        {
            "models": {kind: {"mine": {}}},
            "methods": {kind: {method: {"toy": SETTINGS.get(method, {})}}},
        }
    )


@pytest.fixture
def project(tiny_model: Callable[[str], Path], tmp_path: Path, monkeypatch: Any) -> Any:
    """`project(arch)`: a model `mine`, rewired once, and a benchmark `toy` of two subsets, the
    smaller with fewer names."""
    monkeypatch.chdir(tmp_path)

    def make(arch: str) -> None:
        places.MODELS.mkdir(parents=True)
        (places.MODELS / "mine").symlink_to(tiny_model(arch))
        tiny.model(arch, places.REWIRED / "mine/set-0/step-5", 1)
        queries = probing.queries()
        hard = queries[:2].assign(subset="hard", query_id=["h0", "h1"])
        names = probing.candidates()
        queries["shown"] = [[]] * len(queries)
        BenchmarkTables(
            pd.concat([queries, hard.assign(shown=[[]] * 2)], ignore_index=True),
            pd.concat([names, names[:6].assign(subset="hard")], ignore_index=True),
        ).write(places.BENCHMARKS / "toy")

    return make


@pytest.mark.parametrize(("method", "arch", "kind"), CASES)
def test_texts_and_tokens_are_those_that_a_stage_then_reads(
    project: Any, method: str, arch: str, kind: str
) -> None:
    project(arch)
    probing = ready("mine", method, "toy", params(method, kind))
    prober, jobs = probing.prober, trial.jobs(probing)
    ahead = [prober.reads(job.task, job.pass_) for job in jobs]
    told: list[int] = []
    watch = watching.set(lambda now: told.append(now.done))
    with trial.reading() as read:
        probe("mine", method, "toy", params(method, kind))
    watching.reset(watch)
    assert read.texts == sum(len(lengths or ()) for lengths in ahead) > 4
    tokens = sum(sum(lengths or ()) for lengths in ahead)
    assert read.tokens >= tokens if kind == "causal" else read.tokens == tokens  # padding, no mask
    assert (told[0], told[-1]) == (0, tokens) and told == sorted(told)
    assert len(told) > 1 + len(probing.parts())  # of batches too, not only of what is ended


@pytest.mark.parametrize("method", ["contrastive", "xfactr"])
def test_a_stage_is_counted_and_timed_until_it_is_done(
    project: Any, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "starting", lambda modules: 1.0)
    project("bert")
    chosen, cmd = params(method, "masked"), f"probe --method {method} --model mine --benchmark toy"
    row = row_of("probe", f"medprobe {cmd}")
    plan.measured(row, chosen)
    jobs = 4  # two subsets by two checkpoints, or two decodings
    assert row.parts == f"0 of {jobs}"
    assert row.checkpoints == (2 if method == "contrastive" else 1)
    assert row.seconds is not None and row.seconds > 2
    assert row.exact == (method == "contrastive")  # what a decoding reads, only decoding tells
    with trial.reading() as read:
        probe("mine", method, "toy", chosen)
    assert 0.5 < (row.tokens or 0) / read.tokens < 2
    plan.measured(row, chosen)
    assert row.parts == f"{jobs} of {jobs}" and not row.texts and not row.checkpoints


def test_rewiring_is_counted_by_its_steps(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from medprobe.stages.rewire import rewire

    monkeypatch.setattr(plan, "starting", lambda modules: 1.0)
    project("bert")
    places.SENTENCES.mkdir(parents=True)
    lines = ["entecavir may be able to prevent hepatitis b infection "] * 6
    (places.SENTENCES / "set-1.txt").write_text("\n".join(lines))
    chosen = Params.model_validate(
        {
            "models": {"masked": {"mine": {}}},
            "sentence_sets": {"set-1": {"rewire": {"steps": 3}}},
            "rewire": {"batch": 4, "checkpoint_every": 2},
        }
    )
    row = row_of("r", "medprobe rewire --model mine --set set-1")
    plan.measured(row, chosen)
    with trial.reading() as read:
        rewire("mine", "set-1", chosen)
    one = read.tokens - (row.tokens or 0)  # one text tells what a token takes
    assert read.texts - 1 == row.texts == 2 * (4 + 2 + 4)
    assert 0 < one < 30
    assert row.checkpoints == 2 and row.passes == 3


def test_models_within_models_are_read_once(tiny_model: Callable[[str], Path]) -> None:
    ids = torch.tensor([[5, 6, 7], [5, 6, 0]])
    heads: dict[str, Any] = {"bert": "encoder", "gpt2": "causal", "t5": "seq2seq"}
    for arch, head in heads.items():
        model = load(tiny_model(arch), head)
        more = {"decoder_input_ids": ids[:, :1]} if arch == "t5" else {}
        mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
        with trial.reading() as read, torch.no_grad():
            model.model(input_ids=ids, attention_mask=mask, **more)
        assert (read.passes, read.texts) == (1, 2)
        assert read.tokens == (2 if arch == "t5" else 5)


class Clock:
    """Stands for the module `time`: nobody waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Slow(Method):
    """Takes a tenth of a second for each query, the first time ten seconds more; or for each row to
    train on, and a second for each training."""

    def __init__(self, clock: Clock, trains: bool = False, fewest: int = 1) -> None:
        self.clock, self.trains, self.fewest = clock, trains, fewest
        self.asked = 0

    def predict(self, task: methods.Task, pass_: str) -> pd.DataFrame:
        rows = len(task.tables["train"]) if self.trains else len(task.queries)
        if rows < self.fewest:
            raise BadInput("a", "too few")
        more = 1.0 if self.trains else 0.0 if self.asked else 10.0
        self.asked += rows
        self.clock.now += 0.1 * rows + more
        return pd.DataFrame()

    def smaller(self, task: methods.Task, share: float) -> methods.Task | None:
        if not self.trains:
            return None
        size = round(share * len(task.tables["train"]))
        return replace(task, tables={"train": task.tables["train"].head(size)})


@pytest.mark.parametrize("trains", [False, True])
def test_all_of_it_takes_what_a_little_says(trains: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(trial, "time", clock)
    prober, rows = Slow(clock, trains), pd.DataFrame({"query_id": range(6400)})
    task = methods.Task("a", rows.head(0) if trains else rows, rows, 10, {"train": rows})
    jobs = [trial.Job("", task, Path("a")), trial.Job("", task, Path("b"))]
    took, _ = trial.foreseen(prober, jobs, [None, None], 20.0)
    assert took == pytest.approx(2 * (640 + trains))
    assert prober.asked < 1000


def test_two_queries_that_take_long_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(trial, "time", clock)
    prober, rows = Slow(clock), pd.DataFrame({"query_id": range(100)})
    task = methods.Task("a", rows, rows, 10)
    took, _ = trial.foreseen(prober, [trial.Job("", task, Path("a"))], [None], 0.05)
    assert took == pytest.approx(10)
    assert prober.asked == 2


def test_what_cannot_be_asked_in_part_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(trial, "time", clock)
    prober, rows = Slow(clock, fewest=100), pd.DataFrame({"query_id": range(100)})
    task = methods.Task("a", rows, rows, 10)
    trial.foreseen(prober, [trial.Job("", task, Path("a"))], [None], 20.0)
    assert prober.asked == 100


def test_stages_without_models_are_counted_by_themselves_and_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from medprobe.stages.score import score
    from medprobe.stages.significance import significance

    monkeypatch.setattr(plan, "starting", lambda modules: 1.0)
    made_up.project(tmp_path, monkeypatch)
    chosen = Params.model_validate(
        {
            "models": {"masked": {"taught": {}, "untaught": {}}},
            "score": {"bootstrap": 10},
            "benchmarks": {"medlama": {"made_up": {}}},
        }
    )
    shutil.copytree(ROOT / "expectations", "expectations")
    Path("expectations/medlama/sources.json").unlink()  # a table that is not made up
    files = {*tmp_path.rglob("*")}
    work = {
        "score": "960 predictions",
        "significance": "2 readings of tables",
        "track": "2 of 2 results",
        "validate --benchmark made_up": "47 checks",
    }
    for cmd, known in work.items():
        row = row_of(cmd, f"medprobe {cmd}")
        plan.measured(row, chosen)
        assert (row.work, row.when) == (known, "now")
        assert row.seconds is not None and row.seconds > 1
    kept = tmp_path / "outputs/parts"  # finished parts, which the stages themselves then find
    assert {*tmp_path.rglob("*")} - files <= {
        kept,
        *kept.glob("scores-*.json"),
        *kept.glob("*.code"),
    }
    score(chosen)
    significance(chosen)
    row = row_of("compare", "medprobe compare")
    plan.measured(row, chosen)
    assert row.work == "2 readings of tables"
    assert row.seconds is not None
    assert not Path("reports").exists() and not places.QUERIES.exists()


def test_a_model_that_stands_in_the_name_of_its_stage_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        "medprobe.stages.train.train", lambda model, params, out: asked.append(model)
    )
    plan.measured(row_of("train-continued@further", "medprobe train"), Params())
    plan.measured(row_of("train@first", "medprobe train --model first"), Params())
    assert asked == ["further", "first"]


def test_a_build_is_tried_on_the_heads_of_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "starting", lambda modules: 1.0)
    monkeypatch.chdir(tmp_path)
    Path("data/tables").mkdir(parents=True)
    facts = [f"drug {i},treats,fever {i % 40}" for i in range(1000)]
    Path("data/tables/a.csv").write_text("\n".join(["subject,relation,object", *facts]) + "\n")
    Path("data/tables/p.csv").write_text("relation,template\ntreats,[X] might treat [Y] .\n")
    settings = {"facts": "tables/a.csv", "prompts": "tables/p.csv"}
    chosen = Params.model_validate({"benchmarks": {"table": {"drugs": settings}}})
    row = row_of("b", "medprobe build --benchmark drugs")
    plan.measured(row, chosen)
    assert row.work.endswith("of sources, 1,000 queries")
    assert row.seconds is not None and row.seconds > 1
    assert not Path("outputs").exists()
    large = Path("data/tables/a.csv")
    with trial.heads(Path("data"), [large], 2000) as (data, share):
        head = (data / "tables/a.csv").read_text()
    assert large.read_text().startswith(head) and head.endswith("\n")
    assert share == len(head) / large.stat().st_size and 2000 <= len(head) < 2030


def test_what_is_not_made_yet_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cmd = "medprobe probe --method fill_mask --model mine --benchmark toy"
    row = row_of("probe-fill_mask@mine-toy", cmd)
    plan.measured(row, params("fill_mask", "masked"))
    assert plan.shown(row).endswith("inputs are not made yet")


def test_what_memory_a_stage_takes_is_kept_for_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert plan.planned("probe@a") is None
    plan.keep([plan.Left("probe@a", "now", memory=5), plan.Left("score", "after probe@a")])
    assert (plan.planned("probe@a"), plan.planned("score")) == (5, None)


def test_methods_say_what_they_read_or_nothing() -> None:
    told = {name for name in methods.names() if "reads" in vars(methods.find(name))}
    assert {case[0] for case in CASES} == told
