"""Executors run the jobs of a stage: in this process, in other processes, or on a cluster."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from medprobe.core.errors import quoting

PR_SET_PDEATHSIG: Final = 1  # of Linux
START_SECONDS: Final = 4.0  # about what a process needs to import the libraries


class Job(NamedTuple):
    """One call of the work function, in the project's folder or in another process there."""

    name: str  # in errors
    argument: Any
    reads: tuple[Path, ...] = ()  # files and folders that it needs
    retry_arguments: tuple[Any, ...] = ()  # of the 2nd and 3rd try, after a worker was lost


class Executor(Protocol):
    """What calls `work` with the argument of each job, wherever that is.

    Yields `(index of the job, result)` in the order in which the jobs end. A worker on another
    machine shares the project's folder. It gets a pickled copy of `work`, keeps it from job to job,
    and does one job at a time.
    """

    def __call__(
        self, work: Callable[[Any], Any], jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any]]:
        """Run the jobs."""
        ...


def count_cores() -> int:
    """Return the number of cores that are available to this process."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def in_this_process(work: Callable[[Any], Any], jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
    """Run the jobs in this process, one after another (an `Executor`)."""
    for index, job in enumerate(jobs):
        yield index, work(job.argument)


def in_processes(work: Callable[[Any], Any], jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
    """Run the jobs in other processes, one for each core (an `Executor`).

    Meant for work in pure Python, of which a process uses one core only. Other processes take over
    what this one has not begun after `START_SECONDS`. They are spawned, not forked: progress, Arrow
    and OpenBLAS run threads here, and a fork copies the locks that these hold, but not the threads
    that would release them. So `work`, the arguments and the results must be picklable.
    """
    cores = count_cores()
    remaining = dict(enumerate(jobs))
    end = time.monotonic() + START_SECONDS
    while remaining and (min(cores, len(remaining)) < 2 or time.monotonic() < end):
        index = next(iter(remaining))
        yield index, work(remaining.pop(index).argument)
    if not remaining:
        return
    workers = min(cores, len(remaining))
    with ProcessPoolExecutor(
        workers, get_context("spawn"), _initialise_worker, (quoting.get(),)
    ) as pool:
        indices = {pool.submit(work, job.argument): index for index, job in remaining.items()}
        try:
            for future in as_completed(indices):
                yield indices[future], future.result()
        except BaseException:
            for worker in active_children():
                worker.terminate()
            raise


def _initialise_worker(may_quote: bool) -> None:
    """Make a worker ignore Ctrl-C, end with its parent, and quote no more data than its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    quoting.set(may_quote)


def in_job_order(results: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """Yield an executor's results in the order of the jobs; hold those that come too early."""
    waiting: dict[int, Any] = {}
    expected = 0
    for index, result in results:
        waiting[index] = result
        while expected in waiting:
            yield expected, waiting.pop(expected)
            expected += 1
