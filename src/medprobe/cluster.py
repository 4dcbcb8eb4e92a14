"""The executor of a Ray cluster: jobs go to workers, a process each, that keep their model loaded.

A worker computes in an empty folder of its own. What a job reads is linked into it from the
project's folder, where the worker's machine has that with the same contents, and else sent through
Ray's object store; what a job writes comes back the same way. Results are written by the driver,
the process of the stage, alone.
"""

import logging
import os
import pickle
import platform
import shutil
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from medprobe.core import errors
from medprobe.core.code import ROOT
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.params import EngineParams
from medprobe.core.parts import LIBRARIES, Job, fingerprint

OWN: Final = ("Python", "medprobe's code")  # the versions that are no library's
TRIES: Final = 3  # of a part, before it is given up
PATIENCE: Final = 120  # seconds without any worker, before a run is given up
GIB: Final = 2**30
WEIGHTS: Final = 4  # memory of a worker: its checkpoint's size so often, as training takes
Files = dict[str, bytes]  # of a folder by their names in it, or of one file as ""


class Answer(NamedTuple):
    """What a worker says of a job: one of `result`, `error` and `lacks`."""

    result: Any = None
    error: Exception | None = None
    lacks: tuple[str, ...] = ()  # paths that are to be sent with the job
    wrote: tuple[Files, ...] = ()
    seconds: float = 0.0
    tokens: int = 0


class Worker:
    """A process on a node, which does jobs one after another."""

    def __init__(self, home: str, threads: int, quotes: bool) -> None:
        os.environ["OMP_NUM_THREADS"] = str(threads)
        errors.text.set(quotes)
        self.home = Path(home)
        self.folder = Path(tempfile.mkdtemp(prefix="medprobe-"))
        self.placed: dict[str, str] = {}  # paths of the folder, with their fingerprints
        self.work: Callable[[Any], Any] | None = None

    def hello(self, expected: dict[str, str], work: bytes) -> tuple[dict[str, str], str]:
        """This worker's versions, and its device; with the `expected` ones it takes up the work,
        which is pickled, too."""
        found = versions([*expected][len(OWN) :])
        if found != expected:
            return found, ""
        os.chdir(self.folder)
        self.work = pickle.loads(work)
        return found, _device()

    def do(
        self, job: Job, stamps: dict[str, str], sent: Sequence[str] = (), *contents: Files
    ) -> Answer:
        """Do a job whose inputs have these fingerprints; `contents` is what was sent of them."""
        assert self.work is not None
        for path, files in zip(sent, contents, strict=True):
            _clear(self.folder / path)
            unpack(files, self.folder / path)
            self.placed[path] = stamps[path]
        if lacks := tuple(path for path in stamps if not self._has(path, stamps[path])):
            return Answer(lacks=lacks)
        begin, tokens = time.monotonic(), _tokens()
        try:
            result = self.work(job.argument)
        except Exception as error:
            return Answer(error=_portable(error), seconds=time.monotonic() - begin)
        seconds, tokens = time.monotonic() - begin, _tokens() - tokens
        wrote = tuple(pack(path) for path in job.writes)
        self.placed |= {path.as_posix(): fingerprint([path]) for path in job.writes}
        return Answer(result, wrote=wrote, seconds=seconds, tokens=tokens)

    def leave(self) -> None:
        """Remove this worker's folder."""
        os.chdir("/")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _has(self, path: str, stamp: str) -> bool:
        """Is this in the folder, or can it be linked from the project's?"""
        if self.placed.get(path) == stamp:
            return True
        there, here = self.home / path, self.folder / path
        if not there.exists() or fingerprint([there]) != stamp:
            return False
        if here != there:  # as absolute paths are
            _clear(here)
            link(there, here)
        self.placed[path] = stamp
        return True


def versions(libraries: Sequence[str]) -> dict[str, str]:
    """Of Python, of this package's code, of libraries; `none` for one that is not there."""
    own = (sys.version.split()[0], fingerprint([ROOT])[:12])
    found = dict(zip(OWN, own, strict=True))
    for name in libraries:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "none"
    return found


def libraries(lock: Path = LIBRARIES) -> list[str]:
    """The names in a lock file, and Ray's."""
    lines = lock.read_text(encoding="utf-8").splitlines() if lock.is_file() else []
    pinned = [line.partition("==")[0].strip() for line in lines if "==" in line]
    return [*(name for name in pinned if name[0].isalnum()), "ray"]


def pack(path: Path) -> Files:
    """The contents of a file, or of all files below a folder."""
    if path.is_file():
        return {"": path.read_bytes()}
    files = (file for file in path.rglob("*") if file.is_file())
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in files}


def unpack(files: Files, path: Path) -> None:
    """Write what `pack` gave to `path`, all at once."""
    with replacing(path) as scratch:
        if "" not in files:
            scratch.mkdir()
        for name, content in files.items():
            file = scratch / name if name else scratch
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


def link(there: Path, here: Path) -> None:
    """A file, or a folder with the files below, as links: what is removed here stays there."""
    names = [""] if there.is_file() else [p.relative_to(there) for p in there.rglob("*")]
    if not there.is_file():
        here.mkdir(parents=True)
    for name in names:
        if (there / name).is_file():
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            (here / name).symlink_to((there / name).resolve())


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _device() -> str:
    """What this process computes on; its processor where the work needs no PyTorch."""
    torch = sys.modules.get("torch")
    if torch is None:
        return f"cpu ({platform.machine()})"
    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return f"cpu ({platform.machine()}, {torch.backends.cpu.get_cpu_capability()})"


def _tokens() -> int:
    """The tokens that models have read in this process, if any was loaded."""
    loaded = sys.modules.get("medprobe.engine.load")
    return loaded.read["tokens"] if loaded else 0


def _portable(error: Exception) -> Exception:
    """An error that can be sent: itself, or what it says."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


@dataclass(eq=False)
class Hired:
    """A worker as the driver knows it."""

    actor: Any
    device: str = ""  # known once it is ready
    reads: tuple[Path, ...] = ()  # of its last job: what it has loaded
    since: float = 0.0  # when it was ready


@dataclass
class Spent:
    """What the workers of a device have done."""

    workers: int = 0
    jobs: list[str] = field(default_factory=list)
    seconds: float = 0.0  # at jobs
    held: float = 0.0  # seconds, from ready to the end
    tokens: int = 0


class Cluster:
    """The executor. Its workers stay from one call to the next of the same work, and leave at the
    end of the block.

    A part is done again elsewhere, at most `TRIES` times, where its worker is lost or it fails by
    another error than BadInput. Raises BadInput where there is no cluster, no node is large enough,
    a worker has other versions than this process, or a part is given up, with its name.
    """

    def __init__(self, engine: EngineParams) -> None:
        self.engine = engine
        self.spent: dict[str, Spent] = {}  # by device
        self.work: Callable[[Any], Any] | None = None
        self.workers: list[Hired] = []
        self.begun: Counter[str] = Counter()  # how often each job was given to a worker, by name
        self.sent: dict[tuple[str, str], Any] = {}  # path and fingerprint: where its contents are

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._dismiss()

    def __call__(
        self, work: Callable[[Any], Any], jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any]]:
        if not jobs:
            return
        self._connect()
        if work is not self.work:
            self._dismiss()
            self.work = work
        yield from _Run(self, jobs).results()

    def _connect(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ModuleNotFoundError:
            remedy = "pip install 'medprobe[ray]', or set it to local"
            raise BadInput("engine.executor: ray", "Ray is not installed", remedy) from None
        if ray.is_initialized():
            return
        try:
            address = self.engine.address
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as problem:
            remedy = "start one, `ray start --head`: docs/cluster.md"
            where = f"engine.address: {self.engine.address}"
            said = str(problem).partition("\n")[0] or type(problem).__name__
            raise BadInput(where, f"no Ray cluster ({said})", remedy) from None

    def _dismiss(self) -> None:
        """Let all workers go."""
        if not self.workers:
            return
        import ray

        gone = [worker.actor.leave.remote() for worker in self.workers if worker.device]
        if gone:
            ray.wait(gone, num_returns=len(gone), timeout=2)
        for worker in self.workers:
            self._end(worker)
        self.workers, self.work = [], None

    def _end(self, worker: Hired) -> None:
        import ray

        if worker.device:
            self.spent[worker.device].held += time.monotonic() - worker.since
        ray.kill(worker.actor)

    def devices(self) -> str:
        """Which device computed which parts: the device alone where it computed all, `unknown`
        where all were finished before."""
        if not self.spent:
            return "unknown"
        if len(self.spent) == 1:
            return next(iter(self.spent))
        of = (f"{device}: {', '.join(sorted(one.jobs))}" for device, one in self.spent.items())
        return "; ".join(sorted(of))

    def costs(self) -> str:
        """In one line, what the workers of each device did and how busy they were."""
        return "; ".join(
            f"{device}: {one.workers} workers, {len(one.jobs)} jobs, {one.seconds:.0f} s,"
            f" {one.tokens} tokens, busy {one.seconds / max(one.held, 1e-9):.0%}"
            for device, one in sorted(self.spent.items())
        )


class Needs(NamedTuple):
    """What a worker asks of its node."""

    cpus: int
    gpus: int
    memory: int  # bytes

    def fit(self, node: dict[str, float]) -> int:
        """How many such workers a node of these resources holds."""
        amounts = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory}
        return min(int(node.get(name, 0) // most) for name, most in amounts.items() if most)


class _Run:
    """One call of the executor."""

    def __init__(self, cluster: Cluster, jobs: Sequence[Job]) -> None:
        import ray

        self.ray, self.cluster, self.jobs = ray, cluster, jobs
        self.waiting: dict[tuple[Path, ...], deque[int]] = {}
        for number, job in enumerate(jobs):
            self.waiting.setdefault(job.reads, deque()).append(number)
        self.tries: Counter[int] = Counter()
        self.failed_starts = 0
        self.alive = time.monotonic()
        self.running: dict[Any, tuple[Hired, int | None]] = {}  # the number of none: it starts
        self.stamps = {path: fingerprint([path]) for job in jobs for path in job.reads}
        self.work = ray.put(pickle.dumps(cluster.work))
        self.versions = versions(libraries())
        self.needs = self._needs()
        if not self._room():
            problem = f"no node has {self.needs.cpus} CPUs, {self.needs.gpus} GPUs and"
            problem += f" {self.needs.memory / GIB:.1f} GiB for a worker"
            raise BadInput("Ray cluster", problem, "lower OMP_NUM_THREADS, or add a larger node")

    def _needs(self) -> Needs:
        """As many CPUs as this process would use threads; a GPU where there are any; memory by
        the largest input."""
        threads = int(os.environ.get("OMP_NUM_THREADS", "").split(",")[0] or 1)
        device, there = self.cluster.engine.device, self.ray.cluster_resources()
        gpus = int(device == "cuda" or (device == "auto" and there.get("GPU", 0) >= 1))
        sizes = [_size(path) for path in self.stamps]
        return Needs(threads, gpus, GIB + WEIGHTS * max(sizes, default=0))

    def _room(self) -> int:
        """How many workers the cluster holds."""
        nodes = (node["Resources"] for node in self.ray.nodes() if node["Alive"])
        return sum(self.needs.fit(node) for node in nodes)

    def results(self) -> Iterator[tuple[int, Any]]:
        """The results, as they come."""
        hired = 0.0
        while self.waiting or any(number is not None for _, number in self.running.values()):
            if time.monotonic() - hired > 1:  # nodes come and go
                self._hire()
                hired = time.monotonic()
            self._employ_idle()
            results = [result for reference in self._done() for result in self._settle(reference)]
            self._employ_idle()
            yield from results

    def _settle(self, reference: Any) -> list[tuple[int, Any]]:
        """Take what a worker says: a result, if that is what it is."""
        worker, number = self.running.pop(reference)
        try:
            answer = self.ray.get(reference)
        except self.ray.exceptions.RayError as lost:
            self._lose(worker, number, lost)
            return []
        if number is None:
            self._welcome(worker, *answer)
        elif answer.lacks:
            self._order(worker, number, answer.lacks)
        elif answer.error:
            self._fail(number, answer.error)
        else:
            return [(number, self._received(worker, number, answer))]
        return []

    def _done(self) -> list[Any]:
        """What has ended, within a second. Raises BadInput where no node is left for too long."""
        if self.running:
            self.alive = time.monotonic()
            done: list[Any] = self.ray.wait([*self.running], timeout=1)[0]
            return done
        if time.monotonic() - self.alive > PATIENCE:
            remedy = "start nodes and run the command again: finished parts are kept"
            raise BadInput("Ray cluster", "no node is left that holds a worker", remedy)
        time.sleep(0.2)
        return []

    def _hire(self) -> None:
        """Ask for workers, as many as there is room and work for; those at work are counted."""
        at_work = sum(number is not None for _, number in self.running.values())
        wanted = min(self._room(), at_work + sum(map(len, self.waiting.values())))
        cpus, gpus, memory = self.needs
        kind = self.ray.remote(Worker).options(num_cpus=cpus, num_gpus=gpus, memory=memory)
        for _ in range(wanted - len(self.cluster.workers)):
            actor: Any = kind.remote(os.getcwd(), cpus, errors.text.get())
            worker = Hired(actor)
            self.cluster.workers.append(worker)
            self.running[actor.hello.remote(self.versions, self.work)] = worker, None

    def _welcome(self, worker: Hired, found: dict[str, str], device: str) -> None:
        """A worker is there. Raises BadInput where it is of another version."""
        if found != self.versions:
            name = next(one for one in self.versions if found.get(one) != self.versions[one])
            problem = f"{name} is {found.get(name)}, and {self.versions[name]} here"
            raise BadInput("a worker of the Ray cluster", problem, "install the same on all nodes")
        worker.device, worker.since = device, time.monotonic()
        self.cluster.spent.setdefault(device, Spent()).workers += 1

    def _employ_idle(self) -> None:
        at_work = {id(worker) for worker, _ in self.running.values()}
        for worker in self.cluster.workers:
            if self.waiting and worker.device and id(worker) not in at_work:
                self._employ(worker)

    def _employ(self, worker: Hired) -> None:
        """Give a worker its next job: of the inputs that it has loaded, else of those that no other
        has, else of those with the most jobs."""
        others = {one.reads for one, number in self.running.values() if number is not None}
        fresh = next((reads for reads in self.waiting if reads not in others), None)
        fullest = max(self.waiting, key=lambda reads: len(self.waiting[reads]))
        chosen = next(one for one in (worker.reads, fresh, fullest) if one in self.waiting)
        number = self.waiting[chosen].popleft()
        if not self.waiting[chosen]:
            del self.waiting[chosen]
        worker.reads = chosen
        self.tries[number] += 1
        self.cluster.begun[self.jobs[number].name] += 1
        self._order(worker, number)

    def _order(self, worker: Hired, number: int, lacks: Sequence[str] = ()) -> None:
        """Send a job to a worker, with the contents of inputs that it lacks."""
        job = self.jobs[number]
        stamps = {path.as_posix(): self.stamps[path] for path in job.reads}
        sent = self.cluster.sent
        for path in lacks:
            if (path, stamps[path]) not in sent:
                sent[path, stamps[path]] = self.ray.put(pack(Path(path)))
        contents = [sent[path, stamps[path]] for path in lacks]
        self.running[worker.actor.do.remote(job, stamps, lacks, *contents)] = worker, number

    def _received(self, worker: Hired, number: int, answer: Answer) -> Any:
        job, spent = self.jobs[number], self.cluster.spent[worker.device]
        for path, files in zip(job.writes, answer.wrote, strict=True):
            unpack(files, path)
        spent.jobs.append(job.name)
        spent.seconds += answer.seconds
        spent.tokens += answer.tokens
        return answer.result

    def _again(self, number: int, why: BaseException, problem: str, remedy: str) -> None:
        """Put a job back, or give up."""
        job = self.jobs[number]
        if self.tries[number] >= TRIES:
            raise BadInput(job.name, f"{problem} {TRIES} times", remedy) from why
        self.waiting.setdefault(job.reads, deque()).appendleft(number)

    def _fail(self, number: int, error: Exception) -> None:
        if isinstance(error, BadInput):
            raise error
        said = f": {error}" if errors.text.get() else ""  # which may quote the data
        problem = f"failed ({type(error).__name__}{said})"
        self._again(number, error, problem, "see -v for the traceback")

    def _lose(self, worker: Hired, number: int | None, why: Exception) -> None:
        """A worker is gone, with its process or its node."""
        if worker in self.cluster.workers:
            self.cluster.workers.remove(worker)
            self.cluster._end(worker)
        if number is not None:
            remedy = "where its memory did not suffice, lower engine.token_budget"
            self._again(number, why, "its worker was lost", remedy)
            return
        self.failed_starts += 1
        if self.failed_starts >= TRIES and not self.cluster.spent:
            said = str(why).strip().splitlines()[-1]
            raise BadInput("Ray cluster", f"no worker starts ({said})") from why


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
