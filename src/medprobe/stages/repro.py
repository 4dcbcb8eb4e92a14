"""`medprobe repro`: what `dvc repro` does, with several benchmarks or models at a time.

DVC runs one stage after the other, but several `dvc repro` of stages that do not write the same
paths may run side by side. A job here is one such command over the stages of one benchmark or one
model; small models use two cores best one by one, each on a core of its own.
"""

import os
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from medprobe import places
from medprobe.errors import BadInput
from medprobe.params import Params


def repro(params: Params, jobs: int) -> None:
    """Bring all stages up to date, `jobs` at a time: first every benchmark and its gate, then
    every model, then what compares them.

    Jobs that run at a time share the cores evenly, unless OMP_NUM_THREADS says how many threads
    each has.
    Raises BadInput where a stage fails; what had been running beside it is finished first.
    """
    if jobs > 1 and _changed():
        listed = subprocess.check_output(["dvc", "stage", "list", "--name-only"], text=True).split()
        _run([["data.dvc"]] if Path("data.dvc").is_file() else [], 1)
        _run(by_item(listed, params.benchmarks), jobs)
        _run(by_item(listed, params.models.names()), jobs)
        _run([["score"]], 1)
        _run([["track"], ["compare"]], jobs)
    _run([[]], 1)


def _changed() -> bool:
    """Is there anything to do, as far as DVC can tell beforehand?"""
    status = ["dvc", "status", "--quiet"]
    return not places.PREDICTIONS.exists() or bool(subprocess.run(status, check=False).returncode)


def by_item(stages: Iterable[str], items: Iterable[str]) -> list[list[str]]:
    """The stages of each item, in their order. A stage `<block>@<item>-<more>` is that of the
    longest item that fits: one model's name may begin with another's.

    >>> by_item(["probe@a-b-xfactr", "score", "probe@a-xfactr"], ["a", "a-b"])
    [['probe@a-xfactr'], ['probe@a-b-xfactr']]
    """
    found: dict[str, list[str]] = {item: [] for item in items}
    for stage in stages:
        key = stage.partition("@")[2]
        fitting = [item for item in found if key == item or key.startswith(f"{item}-")]
        if fitting:
            found[max(fitting, key=len)].append(stage)
    return [names for names in found.values() if names]


def _run(targets: list[list[str]], jobs: int) -> None:
    """A `dvc repro` of each list of targets and nothing before them; of all stages for an empty
    list."""
    environment = dict(os.environ)
    if jobs > 1:
        threads = max(1, len(os.sched_getaffinity(0)) // jobs)
        environment.setdefault("OMP_NUM_THREADS", str(threads))

    def one(names: list[str]) -> int:
        single = ["--single-item", *names] if names else []
        command = ["dvc", "--wait-for-lock", "repro", *single]
        return subprocess.run(command, env=environment, check=False).returncode

    with ThreadPoolExecutor(jobs) as pool:
        if any(list(pool.map(one, targets))):
            problem = "a stage failed, as DVC says above"
            raise BadInput("dvc repro", problem, "mend it and run the command again")
