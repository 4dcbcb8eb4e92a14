"""Who does the jobs of a stage: this process, others beside it, or the workers of a cluster."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from medprobe.core.errors import text

PR_SET_PDEATHSIG: Final = 1  # of Linux


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


def processes(work: Callable[[Any], Any], jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
    """The executor that does the jobs in other processes, one for each core: for work in Python
    alone, of which a process uses one core.

    The processes are spawned, not forked. Progress, Arrow and OpenBLAS run threads here, and a fork
    copies the locks that these hold, but not the threads that would release them. So `work`, the
    arguments and the results must go by pickle.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    if (workers := min(cores, len(jobs))) < 2:
        yield from local(work, jobs)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _prepare, (text.get(),)) as pool:
        numbers = {pool.submit(work, job.argument): number for number, job in enumerate(jobs)}
        try:
            for future in as_completed(numbers):
                yield numbers[future], future.result()
        except BaseException:
            for worker in active_children():
                worker.terminate()
            raise


def _prepare(may_quote: bool) -> None:
    """A worker leaves Ctrl-C to its parent, does not outlive it, and quotes no more in errors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    text.set(may_quote)


def in_order(results: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """What an executor gives, in the order of the jobs; what came too early is held."""
    early: dict[int, Any] = {}
    expected = 0
    for number, result in results:
        early[number] = result
        while expected in early:
            yield expected, early.pop(expected)
            expected += 1
