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

from medprobe.errors import BadInput
from medprobe.params import Params


def repro(params: Params, jobs: int) -> None:
    """Bring all stages up to date, `jobs` at a time: first the gate of every benchmark, then every
    model, then what compares them.

    The cores are shared evenly by the jobs, unless OMP_NUM_THREADS says how many threads each has.
    Raises BadInput where a stage fails; what had been running beside it is finished first.
    """
    if jobs > 1 and subprocess.run(["dvc", "status", "--quiet"], check=False).returncode:
        listed = ["dvc", "stage", "list", "--name-only"]
        stages = subprocess.run(
            listed, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.split()
        _run([[str(file)] for file in Path().glob("data.dvc")], 1)  # which all jobs read
        _run([[name] for name in stages if name.startswith("validate@")], jobs)
        _run(by_model(stages, params.models.names()), jobs)
    _run([[]], 1)


def by_model(stages: Iterable[str], models: Iterable[str]) -> list[list[str]]:
    """The stages of each model, in their order. A stage `<block>@<model>-<more>` is that of the
    longest name that fits: one model's name may begin with another's.

    >>> by_model(["probe@a-b-xfactr", "score", "probe@a-xfactr"], ["a", "a-b"])
    [['probe@a-xfactr'], ['probe@a-b-xfactr']]
    """
    found: dict[str, list[str]] = {name: [] for name in models}
    for stage in stages:
        item = stage.partition("@")[2]
        fitting = [name for name in found if item == name or item.startswith(f"{name}-")]
        if fitting:
            found[max(fitting, key=len)].append(stage)
    return [names for names in found.values() if names]


def _run(targets: list[list[str]], jobs: int) -> None:
    """A `dvc repro` for each list of targets; an empty list stands for all stages."""
    cores = len(os.sched_getaffinity(0))
    threads = os.environ.get("OMP_NUM_THREADS", str(max(1, cores // jobs)))
    environment = {**os.environ, "OMP_NUM_THREADS": threads}

    def one(names: list[str]) -> int:
        command = ["dvc", "--wait-for-lock", "repro", *names]
        return subprocess.run(command, env=environment, check=False).returncode

    with ThreadPoolExecutor(jobs) as pool:
        status = list(pool.map(one, targets))
    failed = [" ".join(names) for names, code in zip(targets, status, strict=True) if code]
    if failed:
        raise BadInput("dvc repro", "a stage failed", f"mend it and go on: dvc repro {failed[0]}")
