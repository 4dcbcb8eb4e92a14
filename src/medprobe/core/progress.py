"""Progress of long work, with the time it still takes, on standard error."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

SECOND: Final = 1.0
MINUTE: Final = 60 * SECOND
CLEAR: Final = "\r\x1b[2K"  # a terminal's line


class Progress:
    """How many units of work are done, such as steps, and how fast."""

    def __init__(
        self, title: str, total: int | None, unit: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.title, self.total, self.unit, self.clock = title, total, unit, clock
        self.detail = ""
        self.created = self.start = clock()
        self.initial_count: int | None = None  # units done by earlier runs
        self.count = 0

    def advance_to(self, count: int, detail: str = "") -> None:
        """Record that `count` units are done. The first call sets where and when work starts."""
        if self.initial_count is None:
            self.initial_count, self.start = count, self.clock()
        self.count, self.detail = count, detail

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the remaining units take at the rate so far; None while it is unknown."""
        if self.total is None or self.initial_count is None or self.count == self.initial_count:
            return None
        seconds_per_unit = (self.clock() - self.start) / (self.count - self.initial_count)
        return seconds_per_unit * (self.total - self.count)

    def __str__(self) -> str:
        """The units done and the time left, in one line."""
        amount = f"{self.count:,} of {self.total:,} {self.unit}" if self.total is not None else ""
        elapsed = f"{duration(self.clock() - self.created)} so far"
        time_left = elapsed if self.seconds_left is None else f"{duration(self.seconds_left)} left"
        return f"{self.title}: {', '.join(filter(None, [amount, self.detail, time_left]))}"


# Called by `report_progress`. A context variable, since the stage that listens and the batch that
# reports are far apart: an argument would go through all methods and all of the engine.
listener: Final[ContextVar[Callable[[int, str], None] | None]] = ContextVar(
    "listener", default=None
)


def report_progress(amount: int, unit: str) -> None:
    """Report that `amount` more units of the current part are done, to the listener, if any."""
    if on_report := listener.get():
        on_report(amount, unit)


def with_progress(
    results: Iterable[tuple[int, Any]], sizes: Sequence[int], progress: Progress
) -> Iterator[tuple[int, Any]]:
    """Pass an executor's results through and advance `progress` as jobs end.

    A job that runs in this process may report parts of itself by `report_progress`, which count at
    once if they are in the unit of `progress`. Other units are shown beside it. A job that has
    ended counts with its full size.
    """
    finished = progress.count
    limit = finished + sum(sizes)

    others: Counter[str] = Counter()

    def on_report(amount: int, unit: str) -> None:
        if unit == progress.unit:
            progress.advance_to(min(progress.count + amount, limit))
        else:
            others[unit] += amount
        progress.detail = ", ".join(f"{count:,} {name}" for name, count in others.items())

    token = listener.set(on_report)
    try:
        for index, result in results:
            yield index, result
            finished += sizes[index]
            progress.advance_to(finished)
    finally:
        listener.reset(token)


@contextmanager
def show_progress(title: str, total: int | None = None, unit: str = "parts") -> Iterator[Progress]:
    """Show the progress of the work in the block on standard error.

    A terminal shows one line that is rewritten each second; a file gets a line each minute.
    The block reports by `advance_to`.
    """
    progress, end, terminal = Progress(title, total, unit), threading.Event(), sys.stderr.isatty()

    def write_lines() -> None:
        while not end.wait(SECOND if terminal else MINUTE):
            line = f"{CLEAR}{progress}" if terminal else f"{progress}\n"
            print(line, end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=write_lines, daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        end.set()
        thread.join()
        if terminal:
            print(CLEAR, end="", file=sys.stderr, flush=True)


def print_above(line: str) -> None:
    """Print a line on standard error, above the line of progress that a terminal shows."""
    clear = CLEAR if sys.stderr.isatty() else ""
    print(f"{clear}{line}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return a time in words.

    >>> duration(42), duration(150), duration(3700)
    ('42 s', '2 min', '1 h 2 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
