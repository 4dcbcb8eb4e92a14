"""The workers as the driver knows them: what each is at, and what each has done."""

import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(eq=False)
class Hired:
    """A worker. It is known on what and where it computes once it is ready."""

    actor: Any
    hello: Any  # where it says that it is ready
    device: str = ""
    machine: str = ""
    since: float = 0.0  # when it was ready; 0 before
    left: float = 0.0  # and when it was let go or lost; 0 before
    reads: tuple[Path, ...] = ()  # of the job it was given last: what it has loaded then
    has: deque[int] = field(default_factory=deque)  # jobs that it was given: it is at the first
    jobs: list[str] = field(default_factory=list)  # that it has done
    seconds: float = 0.0  # at these
    tokens: int = 0

    @property
    def held(self) -> float:
        """Seconds from when it was ready."""
        return (self.left or time.monotonic()) - self.since


@dataclass
class Staff:
    """All workers of an executor, and what was sent to them."""

    there: list[Hired] = field(default_factory=list)  # ready, or to be so
    gone: list[Hired] = field(default_factory=list)
    sent: dict[tuple[str, str], Any] = field(default_factory=dict)  # path, fingerprint: contents

    def end(self, worker: Hired) -> None:
        """Let a worker go, or make sure that it is gone."""
        import ray

        ray.kill(worker.actor)
        worker.left = time.monotonic()
        self.there.remove(worker)
        self.gone.append(worker)

    def devices(self) -> str:
        """Which device computed which parts: the device alone where it computed all, `unknown`
        where all were finished before."""
        by_device = self._by_device()
        if len(by_device) < 2:
            return next(iter(by_device), "unknown")
        jobs = {device: [job for one in of for job in one.jobs] for device, of in by_device.items()}
        return "; ".join(f"{device}: {', '.join(sorted(some))}" for device, some in jobs.items())

    @property
    def tokens(self) -> int:
        """What the workers' models read, in all."""
        return sum(one.tokens for one in (*self.gone, *self.there))

    def costs(self) -> list[str]:
        """A line for each kind of device, with what its workers did and how busy they were, and
        where it had several one for each of them."""
        lines = []
        for device, workers in self._by_device().items():
            lines.append(f"{device}: {len(workers)} workers, {_cost(workers)}")
            if len(workers) > 1:
                each = enumerate(workers, start=1)
                lines += [f"worker {i} on {one.machine}: {_cost([one])}" for i, one in each]
        return lines

    def _by_device(self) -> dict[str, list[Hired]]:
        """The workers that were ever ready."""
        of: dict[str, list[Hired]] = {}
        for one in (*self.gone, *self.there):
            if one.since:
                of.setdefault(one.device, []).append(one)
        return dict(sorted(of.items()))


def _cost(workers: list[Hired]) -> str:
    jobs = sum(len(one.jobs) for one in workers)
    seconds = sum(one.seconds for one in workers)
    held = sum(one.held for one in workers)
    tokens = sum(one.tokens for one in workers)
    return f"{jobs} jobs, {seconds:.0f} s, {tokens} tokens, busy {seconds / max(held, 1e-9):.0%}"
