"""The executor that `params.yaml` names: this machine, or the workers of a Ray cluster.

Ray places the workers, and carries jobs and results. It repeats nothing by itself: each loss is a
line here, and a part that ends one worker after another is named. All nodes share the project's
folder, where the workers read models and write what jobs leave in outputs/parts.
"""

import logging
import os
import pickle
import platform
import socket
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from medprobe.core.errors import BadInput, quoting
from medprobe.core.executor import Executor, Job, in_this_process
from medprobe.core.files import disk_full_error, size
from medprobe.core.libraries import installed_versions, pinned_versions
from medprobe.core.params import EngineParams
from medprobe.core.parts import fingerprint
from medprobe.core.plugins import ROOT
from medprobe.core.progress import print_above

TRIES: Final = 3  # of a part, and of starts of workers
PATIENCE: Final = 120  # seconds without any worker
GIB: Final = 2**30
WEIGHTS: Final = 4  # memory of a worker: its largest input's size so often, as training takes
# Ray's paragraphs about a loss, which repeat our line. Ray reads this when it is imported.
RAY_SETTINGS: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "A worker died or was killed|Raylet is terminated|marked dead",
}


class Hello(NamedTuple):
    """What a worker says of itself."""

    facts: dict[str, str]
    device: str
    machine: str


class Worker:
    """What Ray makes an actor of: a process on a node, which does one job after another."""

    def __init__(self, device: str, threads: int, quotes: bool) -> None:
        os.environ["OMP_NUM_THREADS"] = str(threads)
        self.device, self.quotes = device, quotes
        self.work: Callable[[Any], Any] | None = None

    def hello(self, home: str, expected: dict[str, str], work: bytes) -> Hello:
        """Return what this worker is; if the facts are as expected, take up the work."""
        from medprobe.engine.load import choose_device, device_name  # imports PyTorch

        found = facts(Path(home), expected)
        if found == expected:
            os.chdir(home)
            self.work = pickle.loads(work)
        return Hello(found, device_name(choose_device(self.device)), platform.node())

    def do(self, argument: Any) -> tuple[Any, int]:
        """Do a job; return its result, and how many tokens were read for it."""
        from medprobe.engine.load import token_counter

        assert self.work is not None
        quoting.set(self.quotes)
        before = token_counter["tokens"]
        try:
            return self.work(argument), token_counter["tokens"] - before
        except Exception as error:
            raise disk_full_error(error) or error from None


def facts(home: Path, libraries: Iterable[str]) -> dict[str, str]:
    """Return what must be the same for this process and a worker, by what it is called."""
    return installed_versions(libraries) | {
        "Python": sys.version.split()[0],
        "medprobe's code": fingerprint([ROOT])[:12],
        f"the number (inode) of {home}": str(home.stat().st_ino if home.exists() else None),
    }


@dataclass(eq=False)
class Member:
    """A worker as this process knows it."""

    actor: Any
    hello: Any  # the reference to what it says of itself
    about: Hello | None = None  # that, once it is ready
    reads: tuple[Path, ...] = ()  # of its last job: what it has loaded


@contextmanager
def open_executor(engine: EngineParams, here: Executor = in_this_process) -> Iterator[Executor]:
    """Provide the executor that params.yaml names."""
    if engine.executor == "local":
        yield here
        return
    with Cluster(engine) as cluster:
        yield cluster


class Cluster:
    """The executor. Its workers stay for further calls of the same work, and go at the end."""

    def __init__(self, engine: EngineParams) -> None:
        self.engine = engine
        self.work: Callable[[Any], Any] | None = None
        self.workers: list[Member] = []  # ready, or starting
        self.devices: set[str] = set()  # on which jobs were done
        self.totals: Counter[str] = Counter()  # of workers, jobs and tokens

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self.dismiss()
        if self.devices and not error:
            click.echo(self.summary(), err=True)

    def __call__(
        self, work: Callable[[Any], Any], jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any]]:
        """Run the jobs; see `core.executor.Executor`."""
        if not jobs:
            return
        connect(self.engine.address)
        if work is not self.work:
            self.dismiss()
            self.work = work
        try:
            yield from _Call(self, work, jobs).results()
        except BaseException:  # or a call is broken off: workers are at its parts
            self.dismiss()
            raise

    def describe(self) -> dict[str, object]:
        """List the devices that computed a result, and the tokens they read."""
        device = "; ".join(sorted(self.devices)) or "unknown"
        tokens = self.totals["tokens"]
        return {"executor": "ray", "device": device, "workers": self.summary(), "tokens": tokens}

    def dismiss(self) -> None:
        """Let all workers go."""
        if not self.workers:
            return
        import ray

        for worker in self.workers:
            ray.kill(worker.actor)
        self.work, self.workers = None, []

    def summary(self) -> str:
        """Say what the workers did, and on what."""
        totals = ", ".join(f"{count} {name}" for name, count in self.totals.items())
        return f"{'; '.join(sorted(self.devices))}: {totals}"


class _Call:
    """One call of the executor: jobs out, results back, and what is done where a job fails."""

    def __init__(self, cluster: Cluster, work: Callable[[Any], Any], jobs: Sequence[Job]) -> None:
        import ray

        self.ray, self.cluster, self.jobs = ray, cluster, jobs
        self.waiting = deque(range(len(jobs)))
        self.running: dict[Any, tuple[Member, int]] = {}  # by the reference to the answer
        self.tries: Counter[int] = Counter()  # that failed, by job
        self.losses: Counter[int] = Counter()  # of workers, by the job that they were at
        self.failed_starts = 0
        self.alone_since = time.monotonic()
        self.work = ray.put(pickle.dumps(work))
        self.facts = facts(Path.cwd(), [*pinned_versions(), "ray"])
        self.threads = int(os.environ.get("OMP_NUM_THREADS", "").split(",")[0] or 1)
        largest = max((size(path) for job in jobs for path in job.reads), default=0)
        self.needs = {"CPU": self.threads, "GPU": self._gpus(), "memory": GIB + WEIGHTS * largest}
        if not self._room():
            problem = f"no node has {self.threads} CPUs, {self.needs['GPU']} GPUs and"
            problem += f" {self.needs['memory'] / GIB:.1f} GiB for a worker"
            raise BadInput("Ray cluster", problem, "lower OMP_NUM_THREADS, or add a larger node")

    def _nodes(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self.ray.nodes() if node["Alive"]]

    def _gpus(self) -> int:
        """How many GPUs a worker needs: of a node all, where the model is spread over them."""
        engine = self.cluster.engine
        most = int(max((node.get("GPU", 0) for node in self._nodes()), default=0))
        if engine.device == "spread":
            return len(engine.max_memory.keys() - {"cpu"}) or most
        return int(engine.device == "cuda" or (engine.device == "auto" and most > 0))

    def _room(self) -> int:
        """How many workers the nodes hold."""
        needs = {name: amount for name, amount in self.needs.items() if amount}
        return sum(
            min(int(node.get(name, 0) // amount) for name, amount in needs.items())
            for node in self._nodes()
        )

    def results(self) -> Iterator[tuple[int, Any]]:
        """Yield the results as they come."""
        while self.waiting or self.running:
            self._hire()
            self._employ()
            starting = {worker.hello: worker for worker in self.cluster.workers if not worker.about}
            references = [*self.running, *starting]
            for reference in self.ray.wait(references, timeout=1)[0] if references else ():
                if worker := starting.get(reference):
                    self._welcome(worker)
                else:
                    yield from self._settle(reference)

    def _hire(self) -> None:
        """Ask Ray for workers, as many as there are jobs and as the nodes hold."""
        workers = self.cluster.workers
        wanted = min(self._room(), len(self.waiting) + len(self.running)) - len(workers)
        for _ in range(wanted if self.failed_starts < TRIES else 0):
            kind = self.ray.remote(Worker).options(
                num_cpus=self.threads, num_gpus=self.needs["GPU"], memory=self.needs["memory"]
            )
            actor = kind.remote(self.cluster.engine.device, self.threads, quoting.get())
            workers.append(Member(actor, actor.hello.remote(os.getcwd(), self.facts, self.work)))
        if workers:
            self.alone_since = time.monotonic()
        elif time.monotonic() - self.alone_since > PATIENCE:
            remedy = "start nodes and run the command again: finished parts are kept"
            raise BadInput("Ray cluster", "no node is left that holds a worker", remedy)
        else:
            time.sleep(1)

    def _employ(self) -> None:
        """Give a job to each worker that has none: one whose inputs it has loaded, if there is."""
        busy = {worker for worker, _ in self.running.values()}
        for worker in self.cluster.workers:
            if self.waiting and worker.about and worker not in busy:
                same = [n for n in self.waiting if self.jobs[n].reads == worker.reads]
                number = same[0] if same else self.waiting[0]
                self.waiting.remove(number)
                job = self.jobs[number]
                arguments = (job.argument, *job.retry_arguments)
                argument = arguments[min(self.losses[number], len(arguments) - 1)]
                worker.reads = job.reads
                self.running[worker.actor.do.remote(argument)] = worker, number

    def _welcome(self, worker: Member) -> None:
        """A worker is there, or did not start. Raises BadInput where its facts are others."""
        try:
            about = self.ray.get(worker.hello)
        except self.ray.exceptions.RayError as error:
            self._remove(worker)
            self.failed_starts += 1
            reason = str(error).strip().splitlines()[-1].strip()
            print_above(f"Ray cluster: a worker did not start ({reason})")
            if self.failed_starts >= TRIES and not self.cluster.workers:
                problem = f"no worker starts ({reason})"
                raise BadInput("Ray cluster", problem, "install the same on all nodes") from error
            return
        for name, here in self.facts.items():
            if about.facts[name] != here:
                problem = f"{name} is {about.facts[name]}, and {here} here"
                remedy = "install the same on all nodes, and share the project's folder"
                raise BadInput(f"a worker on {about.machine}", problem, remedy)
        worker.about = about
        self.cluster.totals["workers"] += 1

    def _remove(self, worker: Member) -> None:
        """Forget a worker, and make sure that it is gone and holds nothing of its node."""
        self.cluster.workers.remove(worker)
        self.ray.kill(worker.actor)

    def _settle(self, reference: Any) -> Iterator[tuple[int, Any]]:
        """Take what a worker says: yield the result, if that is what it is."""
        worker, number = self.running.pop(reference)
        try:
            result, tokens = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None) or error
            if isinstance(cause, BadInput):
                raise cause from None
            quotation = f": {cause}" if quoting.get() else ""  # which may quote the data
            problem, remedy = f"failed ({type(cause).__name__}{quotation})", "see -v for its cause"
            if disk_full_error(cause):
                problem, remedy = "the disk was full", "make room there"
            self._again(worker, number, cause, problem, remedy)
        except self.ray.exceptions.RayError as error:  # of the actor, its node or its memory
            self._remove(worker)
            self.losses[number] += 1
            remedy = "where its memory did not suffice, add a larger node"
            self._again(worker, number, error, "its worker was lost", remedy)
        else:
            assert worker.about
            self.cluster.devices.add(worker.about.device)
            self.cluster.totals.update(jobs=1, tokens=tokens)
            yield number, result

    def _again(
        self, worker: Member, number: int, why: BaseException, problem: str, remedy: str
    ) -> None:
        """Put a job back, to be done next, and print that; or give up."""
        self.tries[number] += 1
        name, machine = self.jobs[number].name, worker.about.machine if worker.about else ""
        if self.tries[number] >= TRIES:
            raise BadInput(name, f"{problem} {TRIES} times, at last on {machine}", remedy) from why
        print_above(f"{name}: {problem} on {machine}; this part is done again")
        self.waiting.appendleft(number)


def connect(address: str) -> None:
    """Connect this process to a cluster, once."""
    for name, value in RAY_SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError:
        remedy = "pip install 'medprobe[ray]', or set it to local"
        raise BadInput("engine.executor: ray", "Ray is not installed", remedy) from None
    if ray.is_initialized():
        return
    try:
        host, _, port = address.rpartition(":")
        if port.isdigit() and "/" not in host:  # Ray would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as problem:
        reason = str(problem).partition("\n")[0] or type(problem).__name__
        remedy = "start one, or give its token in RAY_AUTH_TOKEN: docs/how-to/cluster.md"
        where = f"engine.address: {address}"
        raise BadInput(where, f"no Ray cluster ({reason})", remedy) from None
