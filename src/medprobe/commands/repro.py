"""`medprobe repro`: what `dvc repro` does, with several stages at a time.

DVC runs one stage after the other, but several `dvc repro` of stages that do not write the same
paths may run side by side; small models use two cores best one by one, each on a core of its own.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from filelock import FileLock, Timeout

from medprobe import warm
from medprobe.core import places
from medprobe.core.errors import BadInput

TOGETHER: Final = 4  # stages at most that one `dvc repro` is given: it takes seconds to start


def repro(jobs: int) -> None:
    """Bring all stages up to date, `jobs` at a time: each after those it depends on.

    Jobs that run at a time share the cores evenly, unless OMP_NUM_THREADS says how many threads
    each has.
    Raises BadInput where a stage fails; what had been running beside it is finished first.
    """
    with alone():
        check_lock()
        if jobs > 1 and _changed():
            share = {"OMP_NUM_THREADS": str(max(1, _cores() // jobs))} | os.environ
            with warm.server(share) as beside:
                for stages in generations():
                    _run(stages, jobs, beside if len(stages) > 1 else os.environ)
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


def generations() -> list[list[str]]:
    """The stages by DVC's own graph: no stage depends on another of its generation, or on one of a
    later."""
    from dvc.repo import Repo
    from networkx import topological_generations

    with Repo() as repo:
        order = {stage.addressing: place for place, stage in enumerate(repo.index.stages)}
        graph: Any = repo.index.graph.reverse(copy=True)
        return [
            sorted((stage.addressing for stage in stages), key=order.__getitem__)
            for stages in topological_generations(graph)
        ]


def _changed() -> bool:
    """Is there anything to do, as far as DVC can tell beforehand?"""
    status = ["dvc", "status", "--quiet"]
    return not places.PREDICTIONS.exists() or bool(subprocess.run(status, check=False).returncode)


def _run(stages: list[str], jobs: int, environment: Mapping[str, str]) -> None:
    """Stages that do not depend on each other, some of them at a time."""
    size = max(1, min(TOGETHER, len(stages) // (4 * jobs)))  # few enough to share the work evenly
    chunks = [stages[start : start + size] for start in range(0, len(stages), size)]
    pool = ThreadPoolExecutor(jobs)
    try:
        list(pool.map(lambda chunk: _dvc(["--single-item", *chunk], environment), chunks))
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
