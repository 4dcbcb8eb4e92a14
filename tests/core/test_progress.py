"""How far long work is, with the time it still takes, by a clock of the test's own."""

import pytest

from medprobe.core.executor import Job, in_this_process
from medprobe.core.progress import Progress, report_progress, show_progress, with_progress


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
    assert now.detail == ""


def test_what_is_counted_in_another_unit_stands_beside() -> None:
    """Texts that a method has read, where its queries end together."""

    def work(_: None) -> None:
        report_progress(64, "texts")
        seen.append(str(now).rpartition(",")[0])
        report_progress(1_000, "texts")
        seen.append(str(now).rpartition(",")[0])

    seen: list[str] = []
    now = Progress("probe", 12, "queries")
    now.advance_to(0)
    assert [*with_progress(in_this_process(work, [Job("one", None)]), [12], now)] == [(0, None)]
    assert seen == ["probe: 0 of 12 queries, 64 texts", "probe: 0 of 12 queries, 1,064 texts"]
