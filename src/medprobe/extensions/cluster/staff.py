"""The workers as the driver knows them: what each is at, and what each has done."""

import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(eq=False)
class WorkerState:
    """A worker. It is known on what and where it computes once it is ready."""

    actor: Any
    hello: Any  # where it says that it is ready
    node: str = ""  # its id; "" until the worker is ready, if Ray chose it
    device: str = ""
    machine: str = ""
    process: int = 0
    since: float = 0.0  # when it was ready; 0 before
    heard: float = 0.0  # when it last answered, or got a job while it had none
    ended: float = 0.0  # and when it was let go or lost; 0 before
    reads: tuple[Path, ...] = ()  # of the job it was given last: what it has loaded then
    queue: deque[int] = field(default_factory=deque)  # jobs that it was given: it is at the first
    jobs: list[str] = field(default_factory=list)  # that it has done
    seconds: float = 0.0  # at these
    tokens: int = 0

    @property
    def held(self) -> float:
        """Seconds from when it was ready."""
        return (self.ended or time.monotonic()) - self.since


@dataclass
class Staff:
    """All workers of an executor, and what was sent to them."""

    active: list[WorkerState] = field(default_factory=list)  # ready, or to be so
    former: list[WorkerState] = field(default_factory=list)
    sent: dict[tuple[str, str], Any] = field(default_factory=dict)  # path, fingerprint: contents

    def end(self, worker: WorkerState) -> None:
        """Let a worker go, or make sure that it is gone."""
        import ray

        ray.kill(worker.actor)
        worker.ended = time.monotonic()
        self.active.remove(worker)
        self.former.append(worker)

    def devices(self) -> str:
        """Return which device computed which parts.

        It is the device alone if one computed all parts, and `unknown` if all were finished before.
        """
        by_device = self._by_device()
        if len(by_device) < 2:
            return next(iter(by_device), "unknown")
        jobs = {
            device: [job for worker in workers for job in worker.jobs]
            for device, workers in by_device.items()
        }
        return "; ".join(f"{device}: {', '.join(sorted(names))}" for device, names in jobs.items())

    @property
    def tokens(self) -> int:
        """What the workers' models read, in all."""
        return sum(worker.tokens for worker in (*self.former, *self.active))

    def costs(self) -> list[str]:
        """Return a line for each kind of device.

        It says what the workers did and how busy they were. If a kind has several workers, each has
        a line too.
        """
        lines = []
        for device, workers in self._by_device().items():
            lines.append(f"{device}: {len(workers)} workers, {_cost(workers)}")
            if len(workers) > 1:
                each = enumerate(workers, start=1)
                lines += [
                    f"worker {i} on {worker.machine}: {_cost([worker])}" for i, worker in each
                ]
        return lines

    def _by_device(self) -> dict[str, list[WorkerState]]:
        """The workers that were ever ready."""
        by_device: dict[str, list[WorkerState]] = {}
        for worker in (*self.former, *self.active):
            if worker.since:
                by_device.setdefault(worker.device, []).append(worker)
        return dict(sorted(by_device.items()))


def _cost(workers: list[WorkerState]) -> str:
    jobs = sum(len(worker.jobs) for worker in workers)
    seconds = sum(worker.seconds for worker in workers)
    held = sum(worker.held for worker in workers)
    tokens = sum(worker.tokens for worker in workers)
    return f"{jobs} jobs, {seconds:.0f} s, {tokens} tokens, busy {seconds / max(held, 1e-9):.0%}"
