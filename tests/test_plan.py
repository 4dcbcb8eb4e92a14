"""What `medprobe plan` counts, against what models then read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import probing
import tiny
from medprobe import methods
from medprobe.commands import plan, trial
from medprobe.core import places
from medprobe.core.params import Params
from medprobe.core.tables import BenchmarkTables
from medprobe.engine.load import load
from medprobe.stages.probe import probe, ready

CASES = [
    ("fill_mask", "bert", "masked"),
    ("mask_average", "roberta", "masked"),
    ("contrastive", "bert", "masked"),
    ("perplexity", "bert", "masked"),
    ("perplexity", "gpt2", "causal"),
    ("rank_change", "bert", "masked"),
]
SETTINGS: dict[str, Any] = {"contrastive": {"sets": ["set-0"]}}


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
    with trial.reading() as read:
        probe("mine", method, "toy", params(method, kind))
    assert read.texts == sum(len(lengths or ()) for lengths in ahead) > 4
    tokens = sum(sum(lengths or ()) for lengths in ahead)
    assert read.tokens >= tokens if kind == "causal" else read.tokens == tokens  # padding, no mask


@pytest.mark.parametrize("method", ["contrastive", "xfactr"])
def test_a_stage_is_counted_and_timed_until_it_is_done(
    project: Any, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "starting", lambda modules: 1.0)
    project("bert")
    chosen, cmd = params(method, "masked"), f"probe --method {method} --model mine --benchmark toy"
    row = plan.Left("probe", "now", options=plan.options(f"medprobe {cmd}"))
    plan.measured(row, chosen)
    jobs = 4  # two subsets by two checkpoints, or two decodings
    assert row.parts == f"0 of {jobs}"
    assert row.checkpoints == (2 if method == "contrastive" else 1)
    assert row.seconds is not None and row.seconds > 2
    assert (row.texts is None) == (method == "xfactr")
    probe("mine", method, "toy", chosen)
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
    row = plan.Left("r", "now", options=plan.options("medprobe rewire --model mine --set set-1"))
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


def test_what_is_not_made_yet_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cmd = "medprobe probe --method fill_mask --model mine --benchmark toy"
    row = plan.Left("probe-fill_mask@mine-toy", "now", options=plan.options(cmd))
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
