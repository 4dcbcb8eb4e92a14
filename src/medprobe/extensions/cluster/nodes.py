"""The nodes of a cluster: which there are, where workers start, and whether the head answers."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from medprobe.core.errors import BadInput
from medprobe.core.progress import print_above
from medprobe.extensions.cluster.staff import WorkerState

TRIES: Final = 3  # starts that fail, before a node gets no more workers
PAUSE: Final = 10  # seconds from a start that fails to the next one on that node
NODE_ID: Final = "ray.io/node-id"  # the label that Ray gives each node


class Needs(NamedTuple):
    """What a worker requires of its node."""

    cpus: int
    gpus: int
    memory: int  # bytes

    def fit(self, node: dict[str, float]) -> int:
        """How many such workers a node of these resources holds."""
        amounts = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory}
        return min(int(node.get(name, 0) // most) for name, most in amounts.items() if most)


class Nodes:
    """The nodes that are alive, as a thread reads them from the head each second.

    Ray chooses the node of a worker until a start fails. From then on each worker is started on a
    node by name, since Ray's error does not contain the node.
    """

    def __init__(self, needs: Needs) -> None:
        self.needs = needs
        self.failures: Counter[str] = Counter()  # starts that failed, by node; "" if Ray chose it
        self.last_failures: dict[str, float] = {}
        self.reason = ""
        self.wake, self.ended = threading.Event(), False
        self.time_asked = time.monotonic()
        self._read()

    def __enter__(self) -> "Nodes":
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True
        self.wake.set()

    def _read(self) -> None:
        import ray

        begin = time.monotonic()
        self.alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
        self.time_read = begin

    def _watch(self) -> None:
        while not self.ended:
            self.wake.wait(1)
            self.wake.clear()
            with suppress(Exception):  # of whatever kind: then the time of the last answer shows it
                self._read()

    def refresh(self) -> None:
        """Read the nodes again, at once but without waiting for it."""
        self.time_asked = time.monotonic()
        self.wake.set()

    @property
    def are_current(self) -> bool:
        """Whether the nodes were read since `refresh`.

        A call that starts a worker waits for the head, so without this the loss of the head, by
        which workers are lost too, would stop the driver.
        """
        return self.time_read >= self.time_asked

    @property
    def silence(self) -> float:
        """Seconds since the head last answered."""
        return time.monotonic() - self.time_read

    def room(self) -> int:
        """How many workers the nodes hold."""
        return sum(self.needs.fit(node["Resources"]) for node in self.alive.values())

    def places(self, active: Sequence[WorkerState]) -> list[str]:
        """Return the node of each further worker that there is room for; "" if Ray chooses it."""
        if not self.failures:
            return [""] * (self.room() - len(active))
        return [
            name
            for name, node in self.alive.items()
            if self.failures[name] < TRIES
            and time.monotonic() - self.last_failures.get(name, -PAUSE) >= PAUSE
            for _ in range(self._places_on(name, active, self.needs.fit(node["Resources"])))
        ]

    def _places_on(self, name: str, active: Sequence[WorkerState], room: int) -> int:
        """How many workers to start on a node: one, until one is ready there."""
        workers = [worker for worker in active if worker.node == name]
        return (room if any(worker.since for worker in workers) else 1) - len(workers)

    def record_failure(self, worker: WorkerState, reason: str) -> None:
        """Record and print that a worker did not start."""
        name, self.reason = worker.node, reason
        self.failures[name] += 1
        self.last_failures[name] = time.monotonic()
        host = self.host(name)
        line = f"{host}: a worker did not start, {self.failures[name]} of {TRIES} tries ({reason})"
        if not name:
            line = f"a worker did not start ({reason}); nodes are tried one by one"
        elif self.failures[name] >= TRIES:
            line += "; this stage starts no more workers there"
        print_above(line)

    def host(self, name: str) -> str:
        """The host name of a node."""
        return str(self.alive.get(name, {}).get("NodeManagerHostname", "a node"))

    def check_starts(self) -> None:
        """Raise BadInput if workers start on no node that is alive."""
        names = [n for n, node in self.alive.items() if self.needs.fit(node["Resources"])]
        if names and all(self.failures[name] >= TRIES for name in names):
            hosts = ", ".join(self.host(name) for name in names)
            problem = f"no worker starts on {hosts} ({self.reason})"
            raise BadInput("Ray cluster", problem, "install the same on all nodes")
