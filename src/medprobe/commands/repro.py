"""`medprobe repro`: what `dvc repro` does, with several stages at a time.

DVC runs one stage after the other, but several `dvc repro` of stages that do not write the same
paths may run side by side; small models use two cores best one by one, each on a core of its own.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Final, NoReturn

from filelock import FileLock, Timeout

from medprobe import fork_server
from medprobe.commands.mend import mend
from medprobe.commands.todo import Stage, early, todo
from medprobe.commands.unfilter import unfilter
from medprobe.core import places
from medprobe.core.errors import BadInput

STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def repro(jobs: int) -> None:
    """Bring all stages up to date, each after those it depends on.

    Stages that run at a time share the cores evenly, unless OMP_NUM_THREADS says how many threads
    each has.

    Args:
        jobs: how many stages run at a time.

    Raises:
        BadInput: a stage failed; what had been running beside it is finished first.
    """
    with exclusive_lock(), process_group() as group:
        mend()
        unfilter()
        stages = todo()
        if not stages:
            _dvc([], os.environ, group)
            return
        share = {"OMP_NUM_THREADS": str(max(1, _cores() // jobs))}
        with fork_server.start(share | os.environ, group) as variables:
            if jobs > 1:
                _run(stages, jobs, variables, group)
            _dvc([], variables, group)


@contextmanager
def exclusive_lock() -> Iterator[None]:
    """One `medprobe repro` at a time: a second one names the first, and waits. The lock dies with
    its process."""
    places.PARTS.mkdir(parents=True, exist_ok=True)
    lock = FileLock(places.REPRO)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        holder = f"another `medprobe repro` is running here, process {places.REPRO.read_text()}"
        print(f"{holder}; waiting for its end", file=sys.stderr)
        lock.acquire()
    places.REPRO.write_text(str(os.getpid()))
    try:
        yield
    finally:
        lock.release()


@contextmanager
def process_group() -> Iterator[int]:
    """The id of a process group that ends with this process, however that ends. A signal to stop
    interrupts what runs in the group, a second one kills it; the block leaves nothing running."""
    keeper = subprocess.Popen(
        ["sh", "-c", "trap '' INT; cat; kill -s KILL 0"], stdin=subprocess.PIPE, process_group=0
    )

    def stop(number: int, _: object) -> NoReturn:
        print("stopping; what is finished is not done again", file=sys.stderr)
        os.killpg(keeper.pid, signal.SIGINT)
        sys.exit(128 + number)

    before = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        yield keeper.pid
    finally:
        os.killpg(keeper.pid, signal.SIGKILL)
        keeper.communicate()
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(
    stages: Mapping[str, Stage], jobs: int, environment: Mapping[str, str], group: int
) -> None:
    """Run the stages, `jobs` at a time: the earliest of those whose needs are met."""
    waiting, ended = early(stages), set[str]()
    running: dict[Future[None], str] = {}
    pool = ThreadPoolExecutor(jobs)
    try:
        while waiting or running:
            ready = [name for name in waiting if ended.issuperset(stages[name].needs)]
            for name in ready[: jobs - len(running)]:
                waiting.remove(name)
                running[pool.submit(_dvc, ["--single-item", name], environment, group)] = name
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                done.result()
                ended.add(running.pop(done))
    finally:
        pool.shutdown(cancel_futures=True)


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _dvc(arguments: list[str], environment: Mapping[str, str], group: int) -> None:
    command = ["--wait-for-lock", "repro", *arguments]
    status = fork_server.run("dvc", command, environment)
    if status is None:
        with subprocess.Popen(["dvc", *command], env=environment, process_group=group) as process:
            status = process.wait()
    if status:
        problem = "a stage failed, as DVC says above"
        raise BadInput("dvc repro", problem, "correct it and run the command again")
