"""Long work in parts: an executor does them, here or elsewhere, and finished ones are kept, so that
a stopped stage goes on where it stopped; how far it is, it says."""

import ctypes
import hashlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import pandas as pd

from medprobe.core.code import ROOT, closure
from medprobe.core.files import replacing
from medprobe.core.places import PARTS

LIBRARIES: Final = Path("requirements.lock")  # the versions of the libraries that compute
PR_SET_PDEATHSIG: Final = 1  # of Linux
SECOND: Final = 1.0
MINUTE: Final = 60 * SECOND


class Job(NamedTuple):
    """One call of a piece of work. Paths are relative to the project's folder."""

    name: str  # in errors
    argument: Any
    reads: tuple[Path, ...] = ()  # files and folders that it needs there
    writes: tuple[Path, ...] = ()  # and that it leaves
    again: tuple[Any, ...] = ()  # the arguments instead, after it has cost a worker, or two


class Executor(Protocol):
    """Calls `work` with the argument of each job, wherever that is.

    Gives `(number of the job, result)` in the order in which they end. A worker elsewhere gets a
    copy of `work` by pickle, keeps it from job to job, and does one job at a time.
    """

    def __call__(
        self, work: Callable[[Any], Any], jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any]]: ...


def local(work: Callable[[Any], Any], jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
    """The executor that does the jobs in this process, one after another."""
    for number, job in enumerate(jobs):
        yield number, work(job.argument)


def forked(work: Callable[[Any], Any], jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
    """The executor that does the jobs in forks of this process, one on each core that it may use:
    for work in Python alone, of which a core does one thing at a time. `work` may be any function;
    results must go by pickle. As `local` where systems' own libraries may not bear a fork."""
    if sys.platform != "linux" or len(jobs) < 2:
        yield from local(work, jobs)
        return
    _forking.append((work, jobs))
    try:
        cores = min(len(os.sched_getaffinity(0)), len(jobs))
        with get_context("fork").Pool(cores, _follow) as pool:
            yield from pool.imap_unordered(_in_fork, range(len(jobs)))
    finally:
        _forking.pop()


_forking: Final[list[tuple[Callable[[Any], Any], Sequence[Job]]]] = []  # what forks find to do


def _follow() -> None:
    """A fork leaves Ctrl-C to its parent, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _in_fork(number: int) -> tuple[int, Any]:
    work, jobs = _forking[-1]
    return number, work(jobs[number].argument)


def in_order(results: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """What an executor gives, in the order of the jobs; what came too early is held."""
    early: dict[int, Any] = {}
    expected = 0
    for number, result in results:
        early[number] = result
        while expected in early:
            yield expected, early.pop(expected)
            expected += 1


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
        if watch := watching.get():
            watch(self)

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


Watch = Callable[[Pace], None]
# What hears of all progress beside people: it may stop the work by an exception.
watching: Final[ContextVar[Watch | None]] = ContextVar("watching", default=None)
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


def kept(folder: Path, key: Any, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """The table that `compute` gives, from `folder` where it was made before under the same
    `key` (see `part`)."""
    path = part(folder, key)
    if path.is_file():
        return pd.read_parquet(path)
    table = compute()
    keep(table, path)
    return table


def part(folder: Path, key: Any) -> Path:
    """Where the part with this `key` is kept in `folder`.

    `key` is anything JSON can say, and must name all that the part depends on.
    """
    digest = hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()
    return folder / f"{digest[:32]}.parquet"


def keep(table: pd.DataFrame, path: Path) -> None:
    """Write a part."""
    with replacing(path) as scratch:
        table.to_parquet(scratch, index=False)


def code_fingerprint(module: str, plugins: Mapping[str, Collection[str]] | None = None) -> str:
    """SHA-256 over all that a module's numbers follow from, its data and parameters aside: its
    import closure, and the versions of the libraries that compute. To read all imports takes
    longer than to see that no file has changed: it is remembered in outputs/parts."""
    lock = [LIBRARIES] if LIBRARIES.is_file() else []
    files = [*lock, *(path for path in ROOT.rglob("*") if path.suffix != ".pyc")]
    changed = tuple((path, path.stat().st_mtime_ns) for path in files if path.is_file())
    chosen = {name: sorted(some) for name, some in (plugins or {}).items()}
    known = part(PARTS, [_contents(changed), module, chosen]).with_suffix(".code")
    if known.is_file():
        return known.read_text(encoding="utf-8")
    found = fingerprint([*closure(module, plugins=plugins), *lock])
    if PARTS.is_dir():
        with replacing(known) as scratch:
            scratch.write_text(found, encoding="utf-8")
    return found


@cache
def _contents(changed: tuple[tuple[Path, int], ...]) -> str:
    """The fingerprint of files that were last changed then."""
    return fingerprint(path for path, _ in changed)


def fingerprint(paths: Iterable[Path]) -> str:
    """SHA-256 over the names and contents of files, and of all files below folders."""
    total = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                total.update(_name(file, path).encode())
                with file.open("rb") as stream:
                    total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def _name(file: Path, below: Path) -> str:
    return file.relative_to(ROOT if file.is_relative_to(ROOT) else below).as_posix()


def table_fingerprint(table: pd.DataFrame) -> str:
    """SHA-256 over a table's columns and values, in their order."""
    return hashlib.sha256(table.to_json(orient="split", index=False).encode()).hexdigest()
