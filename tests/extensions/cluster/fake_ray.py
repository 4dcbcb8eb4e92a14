"""A stand-in for Ray, in this process and in a fixed order: room for two workers, of which one ends
one job each time that the driver waits. So the driver's own decisions are tested, and quickly.
"""

import pickle
from collections import Counter, deque
from types import SimpleNamespace
from typing import Any

from medprobe.core.executor import Job
from medprobe.extensions.cluster.nodes import NODE_ID
from medprobe.extensions.cluster.worker import Answer, Hello


class RayError(Exception):
    """Any error of Ray's; `cause` is what a worker raised, if it is that."""

    cause: Exception | None = None


class Lost(RayError):
    """The worker is gone."""


class Reference:
    """Where the answer to a call will be."""


class Actor:
    """A worker."""

    def __init__(self, ray: "Ray", node: str) -> None:
        self.ray, self.node, self.work = ray, node, None
        self.queue: deque[tuple[Reference, Job]] = deque()
        self.hello, self.do = map(Call, (self._hello, self._do))

    def _hello(self, expected: dict[str, str], work: bytes) -> Reference:
        self.work = pickle.loads(work)
        reference = Reference()
        host = self.ray.hosts[self.node]
        hello = Hello({**expected, **self.ray.other}, "cpu", host, 7, self.node)
        if self.node in self.ray.broken:
            self.ray.answers[reference] = Lost("what Ray says\nModuleNotFoundError: no medprobe")
        elif len(self.ray.actors) <= self.ray.in_time:
            self.ray.answers[reference] = hello
        else:
            self.ray.late[reference] = hello
        return reference

    def _do(self, job: Job, stamps: object, lacks: object) -> Reference:
        self.queue.append((Reference(), job))
        self.ray.held.append(len(self.queue))
        return self.queue[-1][0]

    def step(self) -> None:
        """Do the first job, or die of it."""
        reference, job = self.queue[0]
        self.ray.begun[job.argument] += 1
        if job.argument in self.ray.deadly and self.ray.begun[job.argument] <= self.ray.deaths:
            self.ray.answers.update((waiting, Lost()) for waiting, _ in self.queue)
            self.queue.clear()
            return
        self.queue.popleft()
        assert self.work is not None
        if job.argument in self.ray.unpicklable:
            self.ray.answers[reference] = RayError()
            self.ray.answers[reference].cause = TypeError("cannot pickle")
            return
        try:
            self.ray.answers[reference] = Answer(self.work(job.argument), tokens=5)
        except OSError as error:
            self.ray.answers[reference] = Answer(error=error)


class Call:
    """A method of an actor."""

    def __init__(self, method: Any) -> None:
        self.remote = method


class Ray:
    """The module."""

    exceptions = SimpleNamespace(RayError=RayError, RayActorError=Lost, OutOfMemoryError=Lost)

    def __init__(self) -> None:
        self.node = {"CPU": 2.0, "memory": 4 * 2**30}
        self.hosts = {"1": "here"}  # the nodes
        self.broken: set[str] = set()  # nodes where no worker starts
        self.in_time = 99  # workers that start at once; others wait until there is nothing to do
        self.other: dict[str, str] = {}  # versions that are another's
        self.deadly: set[int] = set()  # arguments that end their worker
        self.deaths = 99  # of workers by each of these; then they are done
        self.unpicklable: set[int] = set()  # arguments whose result no pickle holds
        self.hanging: set[int] = set()  # arguments that never end
        self.cancelled: list[Reference] = []
        self.requirements: dict[str, Any] = {}  # for the last worker
        self.actors: list[Actor] = []
        self.late: dict[Reference, Any] = {}
        self.answers: dict[Reference, Any] = {}
        self.held: list[int] = []  # how many jobs a worker had, when it was given one
        self.begun: Counter[int] = Counter()  # how often, by argument

    def is_initialized(self) -> bool:
        return True

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "1")

    def cluster_resources(self) -> dict[str, float]:
        return self.node

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": name, "Alive": True, "Resources": self.node, "NodeManagerHostname": host}
            for name, host in self.hosts.items()
        ]

    def put(self, value: Any) -> Any:
        return value

    def remote(self, kind: type) -> "Ray":
        return self

    def options(self, **requirements: Any) -> Any:
        self.requirements = requirements
        return Call(self._actor)

    def _actor(self, *of_worker: object) -> Actor:
        label = self.requirements.get("label_selector", {}).get(NODE_ID)
        self.actors.append(Actor(self, label or min(self.broken or self.hosts)))
        return self.actors[-1]

    def wait(
        self, references: list[Reference], num_returns: int = 1, timeout: float = 0
    ) -> tuple[list[Reference], list[Reference]]:
        if timeout and not any(reference in self.answers for reference in references):
            busy = [
                actor
                for actor in self.actors
                if actor.queue and actor.queue[0][1].argument not in self.hanging
            ]
            if busy:
                busy[self.begun.total() % len(busy)].step()
            else:
                self.answers |= self.late
        ready = [reference for reference in references if reference in self.answers]
        return ready, [reference for reference in references if reference not in self.answers]

    def get(self, reference: Reference) -> Any:
        answer = self.answers[reference]
        if isinstance(answer, RayError):
            raise answer
        return answer

    def cancel(self, reference: Reference) -> None:
        self.cancelled.append(reference)

    def kill(self, actor: Actor) -> None:
        actor.queue.clear()
