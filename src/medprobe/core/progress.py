"""How far long work is, and how long the rest will take, on standard error."""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

SECOND: Final = 1.0
MINUTE: Final = 60 * SECOND


class Pace:
    """How far work is, and how fast: `done` of `total` units, such as steps; None where nobody can
    know it."""

    def __init__(
        self, title: str, total: int | None, unit: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.title, self.total, self.unit, self.clock = title, total, unit, clock
        self.about = ""
        self.made = self.begin = clock()
        self.first: int | None = None  # units that were done before this time
        self.done = 0

    def at(self, done: int, about: str = "") -> None:
        """So much is done. The first call says where the work begins, and when."""
        if self.first is None:
            self.first, self.begin = done, self.clock()
        self.done, self.about = done, about

    @property
    def left(self) -> float | None:
        """The seconds that the rest takes at the rate so far; None while none is known."""
        if self.total is None or self.first is None or self.done == self.first:
            return None
        each = (self.clock() - self.begin) / (self.done - self.first)
        return each * (self.total - self.done)

    def __str__(self) -> str:
        """What is done, and how long the rest takes, in one line."""
        known = f"{self.done:,} of {self.total:,} {self.unit}" if self.total is not None else ""
        spent = f"{duration(self.clock() - self.made)} so far"
        rest = spent if self.left is None else f"{duration(self.left)} left"
        return f"{self.title}: {', '.join(filter(None, [known, self.about, rest]))}"


# What hears how much more of a part is done, and in what unit.
hearing: Final[ContextVar[Callable[[int, str], None] | None]] = ContextVar("hearing", default=None)


def tell(amount: int, unit: str) -> None:
    """So much more of the part under way is done: whoever makes parts says it to its stage."""
    if hear := hearing.get():
        hear(amount, unit)


def counted(
    results: Iterable[tuple[int, Any]], sizes: Sequence[int], now: Pace
) -> Iterator[tuple[int, Any]]:
    """What an executor gives, while `now` counts what is done: of parts made in this process as
    they `tell` it in the unit of `now`, of others when they end. `sizes` are those of the jobs."""
    ended = now.done
    most = ended + sum(sizes)

    def hear(amount: int, unit: str) -> None:
        if unit == now.unit:
            now.at(min(now.done + amount, most))

    token = hearing.set(hear)
    try:
        for number, result in results:
            yield number, result
            ended += sizes[number]
            now.at(ended)
    finally:
        hearing.reset(token)


@contextmanager
def progress(title: str, total: int | None = None, unit: str = "parts") -> Iterator[Pace]:
    """Says on standard error how far the work in the block is, as this tells by `at`: a line a
    minute, on a terminal one line that is written anew each second."""
    now, ended, terminal = Pace(title, total, unit), threading.Event(), sys.stderr.isatty()

    def say() -> None:
        print(f"\r\x1b[2K{now}" if terminal else now, end="" if terminal else "\n", file=sys.stderr)
        sys.stderr.flush()

    wait = partial(ended.wait, SECOND if terminal else MINUTE)
    thread = threading.Thread(target=until, args=(wait, say), daemon=True)
    thread.start()
    try:
        yield now
    finally:
        ended.set()
        thread.join()
        if terminal:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def until(ended: Callable[[], bool], say: Callable[[], None]) -> None:
    """Say it each time that `ended`, which waits for the end, has waited in vain."""
    while not ended():
        say()


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(42), duration(150), duration(3700)
    ('42 s', '2 min', '1 h 2 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
