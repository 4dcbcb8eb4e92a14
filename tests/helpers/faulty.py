"""Work that is counted, and that can lose its worker or its node: sent to the workers of a cluster
by name, as all of this folder is."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from helpers import ROOT
from medprobe.core.executor import Executor, Job

# Where workers find this file: a process that Ray starts has nothing of pytest's path.
WORKERS_PATH = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])


class Counted:
    """Other work, whose calls are numbered from 0, wherever they are, in the order they begin."""

    def __init__(self, work: Callable[[Any], Any], folder: Path, faults: dict[int, str]) -> None:
        self.work, self.folder, self.faults = work, folder, faults

    def __call__(self, argument: Any) -> Any:
        fault = self.faults.get(self._number())
        if fault == "half":  # of so many steps are done when its node is lost
            steps = argument.settings.steps // 2
            settings = argument.settings.model_copy(update={"steps": steps})
            self.work(replace(argument, settings=settings))
            fault = "node"
        if fault == "node":
            os.kill(os.getppid(), signal.SIGKILL)  # what keeps the node; its workers die of it
            signal.pause()
        if fault == "worker":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "error":
            raise RuntimeError("a fault")
        return self.work(argument)

    def _number(self) -> int:
        for faulty_work in count():
            try:
                os.close(os.open(self.folder / str(faulty_work), os.O_CREAT | os.O_EXCL))
                return faulty_work
            except FileExistsError:
                pass
        raise AssertionError


class Faulty:
    """An executor that counts how many jobs are begun, and puts faults into some of them."""

    def __init__(self, executor: Executor, folder: Path, faults: dict[int, str]) -> None:
        folder.mkdir()
        self.executor, self.folder, self.faults = executor, folder, faults
        self.counted: dict[int, Counted] = {}

    def __call__(
        self, work: Callable[[Any], Any], jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any]]:
        faulty_work = self.counted.setdefault(id(work), Counted(work, self.folder, self.faults))
        return self.executor(faulty_work, jobs)

    @property
    def begun(self) -> int:
        return len(list(self.folder.iterdir()))
