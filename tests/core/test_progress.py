"""How far long work is, with the time it still takes, by a clock of the test's own."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers import probing, tiny
from medprobe import methods
from medprobe.core import places
from medprobe.core.executor import Job, in_this_process
from medprobe.core.params import Params
from medprobe.core.progress import (
    Progress,
    listener,
    report_progress,
    show_progress,
    with_progress,
)
from medprobe.core.tables import BenchmarkTables
from medprobe.pipeline.stages.probe import prepare


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_rest_takes_as_long_as_what_was_done() -> None:
    clock = Clock()
    work = Progress("rewire", 200, "steps", clock)
    clock.now += 7  # a model is loaded, which no step needs again
    work.advance_to(0)
    assert work.seconds_left is None
    assert str(work) == "rewire: 0 of 200 steps, 7 s so far"
    clock.now += 60
    work.advance_to(50, "loss 0.250")
    assert work.seconds_left == 180
    assert str(work) == "rewire: 50 of 200 steps, loss 0.250, 3 min left"


def test_what_an_earlier_run_has_done_says_nothing_of_the_rate() -> None:
    clock = Clock()
    work = Progress("train", 1000, "steps", clock)
    work.advance_to(900)
    clock.now += 10
    work.advance_to(950)
    assert work.seconds_left == 10


def test_where_nobody_knows_the_end_it_says_what_was_spent() -> None:
    clock = Clock()
    work = Progress("build medlama", None, "parts", clock)
    clock.now += 125
    assert str(work) == "build medlama: 2 min so far"


def test_without_a_terminal_there_is_a_line_each_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medprobe.core.progress.MINUTE", 0.01)
    lines: list[str] = []
    with show_progress("score", 3, "tables"):
        while len(lines) < 2:
            lines += capsys.readouterr().err.splitlines()
    assert all(line.startswith("score: ") and line.endswith("so far") for line in lines)


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("score", 1, "tables") as now:
        now.advance_to(0)
        now.advance_to(1)
    assert capsys.readouterr().err == ""


class Recorded(Progress):
    """A pace that remembers what it was told."""

    def __init__(self, total: int) -> None:
        super().__init__("probe", total, "tokens")
        self.seen: list[int] = []

    def advance_to(self, count: int, detail: str = "") -> None:
        super().advance_to(count, detail)
        self.seen.append(count)


def test_parts_report_progress_in_the_unit_of_their_stage() -> None:
    def work(more: int) -> int:
        report_progress(2, "tokens")
        report_progress(100, "queries")
        report_progress(more, "tokens")
        return more

    now = Recorded(12)
    now.advance_to(0)
    results = with_progress(
        in_this_process(work, [Job("few", 2), Job("too many", 50)]), [5, 7], now
    )
    assert dict(results) == {0: 2, 1: 50}
    report_progress(1, "tokens")  # of nothing that is counted
    assert now.seen == [0, 2, 4, 5, 7, 12, 12]


ARCHITECTURES = {"masked": "bert", "causal": "gpt2", "seq2seq": "t5"}
READING = [  # the methods that know beforehand how many tokens they read
    (name, ARCHITECTURES[kind], kind)
    for name in methods.list_names()
    if "reads" in vars(methods.find(name))
    for kind in methods.find(name).KINDS
    if kind in ARCHITECTURES
]


@pytest.mark.parametrize("case", READING)
def test_a_method_reports_the_tokens_that_it_announced(
    case: tuple[str, str, str],
    tiny_model: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the token; of causal models, whose texts are padded, a little more."""
    method, arch, kind = case
    monkeypatch.chdir(tmp_path)
    places.MODELS.mkdir(parents=True)
    (places.MODELS / "mine").symlink_to(tiny_model(arch))
    tiny.model(arch, places.REWIRED / "mine/set-0/step-5", 1)
    queries = probing.queries()
    queries["shown"] = [[]] * len(queries)
    BenchmarkTables(queries, probing.candidates()).write(places.BENCHMARKS / "toy")
    settings = {"sets": ["set-0"]} if method == "contrastive" else {}
    params_content = {
        "models": {kind: {"mine": {}}},
        "methods": {kind: {method: {"toy": settings}}},
    }
    work = prepare("mine", method, "toy", Params.model_validate(params_content))
    ahead = [
        work.prober.reads(work.tasks[n], group.pass_)
        for group in work.task_groups()
        for n in group.tasks
    ]
    if None in ahead:
        pytest.skip("only a run of this kind of model can tell")
    heard: Counter[str] = Counter()
    token = listener.set(lambda amount, unit: heard.update({unit: amount}))
    for group in work.task_groups():
        work(group)
    listener.reset(token)
    expected_total = sum(sum(lengths or ()) for lengths in ahead)
    assert expected_total > 0
    assert expected_total <= heard["tokens"] <= (1.05 if kind == "causal" else 1) * expected_total
