"""How far long work is, with the time it still takes, by a clock of the test's own."""

from collections.abc import Iterator
from itertools import repeat

import pytest

from medprobe.core import parts
from medprobe.core.parts import Job, Pace, counted, local, progress, tell, until, watching


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_rest_takes_as_long_as_what_was_done() -> None:
    clock = Clock()
    work = Pace("rewire", 200, "steps", clock)
    clock.now += 7  # a model is loaded, which no step needs again
    work.at(0)
    assert work.left is None
    assert str(work) == "rewire: 0 of 200 steps, 7 s so far"
    clock.now += 60
    work.at(50, "loss 0.250")
    assert work.left == 180
    assert str(work) == "rewire: 50 of 200 steps, loss 0.250, 3 min left"


def test_what_an_earlier_run_has_done_says_nothing_of_the_rate() -> None:
    clock = Clock()
    work = Pace("train", 1000, "steps", clock)
    work.at(900)
    clock.now += 10
    work.at(950)
    assert work.left == 10


def test_where_nobody_knows_the_end_it_says_what_was_spent() -> None:
    clock = Clock()
    work = Pace("build medlama", None, "parts", clock)
    clock.now += 125
    assert str(work) == "build medlama: 2 min so far"


def test_a_line_is_said_each_time_that_the_end_was_waited_for_in_vain() -> None:
    answers: Iterator[bool] = iter([False, False, False, True])
    said: list[int] = []
    until(lambda: next(answers), lambda: said.append(1))
    assert len(said) == 3


def test_without_a_terminal_there_is_a_line_each_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(ended: object, say: object) -> None:
        assert callable(say)
        for _ in repeat(None, 2):
            say()

    monkeypatch.setattr(parts, "until", twice)
    with progress("score", 3, "tables") as now:
        now.at(0)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("score: ") and line.endswith("so far") for line in lines)


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("score", 1, "tables") as now:
        now.at(0)
        now.at(1)
    assert capsys.readouterr().err == ""


def test_who_watches_may_stop_the_work() -> None:
    seen: list[int] = []

    def watch(work: Pace) -> None:
        seen.append(work.done)
        if work.done == 2:
            raise InterruptedError

    token = watching.set(watch)
    try:
        with pytest.raises(InterruptedError), progress("work", 9) as now:
            for done in range(9):
                now.at(done)
    finally:
        watching.reset(token)
    assert seen == [0, 1, 2]


def test_parts_tell_what_of_them_is_done_in_the_unit_of_their_stage() -> None:
    def work(more: int) -> int:
        tell(2, "tokens")
        tell(100, "queries")
        tell(more, "tokens")
        return more

    seen: list[int] = []
    token = watching.set(lambda pace: seen.append(pace.done))
    try:
        with progress("probe", 12, "tokens") as now:
            now.at(0)
            found = counted(local(work, [Job("few", 2), Job("too many", 50)]), [5, 7], now)
            assert dict(found) == {0: 2, 1: 50}
            tell(1, "tokens")  # of nothing that is counted
    finally:
        watching.reset(token)
    assert seen == [0, 2, 4, 5, 7, 12, 12]
