"""`medprobe repro`: what `dvc repro` does, with several stages at a time.

DVC runs one stage after the other, but several `dvc repro` of stages that do not write the same
paths may run side by side; small models use two cores best one by one, each on a core of its own.
"""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import yaml
from filelock import FileLock, Timeout

from medprobe import warm
from medprobe.cluster import progress
from medprobe.cluster.progress import Progress
from medprobe.core import places
from medprobe.core.errors import BadInput

EVERY: Final = 10.0  # seconds between two words on how far all is


def repro(jobs: int) -> None:
    """Bring all stages up to date, `jobs` at a time: each after those it depends on.

    Jobs that run at a time share the cores evenly, unless OMP_NUM_THREADS says how many threads
    each has.
    Raises BadInput where a stage fails; what had been running beside it is finished first.
    """
    with alone(), told():
        check_lock()
        if jobs > 1 and _changed():
            share = {"OMP_NUM_THREADS": str(max(1, _cores() // jobs))} | os.environ
            with warm.server(share) as warmed:
                _run(jobs, warmed)
        _dvc([], os.environ)


@contextmanager
def alone() -> Iterator[None]:
    """One `medprobe repro` at a time: a second one says so and waits. The lock dies with its
    process."""
    places.PARTS.mkdir(parents=True, exist_ok=True)
    lock = FileLock(places.PARTS / ".repro.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print("another `medprobe repro` is running here; waiting for its end", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def told() -> Iterator[None]:
    """While the block runs and at its end: how far all parts are that went to a cluster."""
    shutil.rmtree(progress.FOLDER, ignore_errors=True)
    over = threading.Event()

    def tell() -> None:
        before, ended = Progress(), False
        while not ended:
            ended = over.wait(EVERY)
            if (now := progress.whole()) != before:
                print(f"all stages: {now}", file=sys.stderr, flush=True)
            before = now

    telling = threading.Thread(target=tell, daemon=True)
    telling.start()
    try:
        yield
    finally:
        over.set()
        telling.join()


def check_lock(path: Path = Path("dvc.lock")) -> None:
    """Raise BadInput where dvc.lock was cut by a kill or a full disk, so that no stage runs on half
    of it: finished parts and DVC's run cache are kept whatever becomes of it."""
    if not path.is_file():
        return
    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.load(text, yaml.CSafeLoader)
        if text.endswith("\n") and all("cmd" in one for one in content["stages"].values()):
            return
    except (ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError):
        pass
    remedy = "`git checkout dvc.lock`, or remove it: what is finished is not computed again"
    raise BadInput(path, "cut, by a kill or a full disk", remedy)


def order() -> TopologicalSorter[str]:
    """The stages by DVC's own graph, each after those it depends on."""
    from dvc.repo import Repo

    with Repo() as repo:
        graph = repo.index.graph
        stages = repo.index.stages
        names = {stage: stage.addressing for stage in stages}
        return TopologicalSorter({names[one]: [names[on] for on in graph[one]] for one in stages})


def _changed() -> bool:
    """Is there anything to do, as far as DVC can tell beforehand?"""
    status = ["dvc", "status", "--quiet"]
    return not places.PREDICTIONS.exists() or bool(subprocess.run(status, check=False).returncode)


def _run(jobs: int, environment: Mapping[str, str]) -> None:
    """Run each stage as soon as those it depends on are done, `jobs` at a time."""
    stages = order()
    stages.prepare()
    running: dict[Future[None], str] = {}
    pool = ThreadPoolExecutor(jobs)
    try:
        while stages.is_active():
            for stage in stages.get_ready():
                running[pool.submit(_dvc, ["--single-item", stage], environment)] = stage
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                done.result()
                stages.done(running.pop(done))
    finally:
        pool.shutdown(cancel_futures=True)


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _dvc(arguments: list[str], environment: Mapping[str, str]) -> None:
    command = ["--wait-for-lock", "repro", *arguments]
    status = warm.run("dvc", command, environment)
    if status is None:
        status = subprocess.run(["dvc", *command], env=environment, check=False).returncode
    if status:
        problem = "a stage failed, as DVC says above"
        raise BadInput("dvc repro", problem, "mend it and run the command again")
