"""One call of the executor: jobs out to workers, results back, and what is done where it fails."""

import os
import pickle
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from medprobe.core import errors
from medprobe.core.errors import BadInput
from medprobe.core.executor import Job
from medprobe.core.files import disk_full_error, size
from medprobe.core.params import EngineParams
from medprobe.core.parts import fingerprint
from medprobe.core.progress import duration, print_above
from medprobe.extensions.cluster.files import pack, unpack
from medprobe.extensions.cluster.nodes import NODE_ID, Needs, Nodes
from medprobe.extensions.cluster.staff import Staff, WorkerState
from medprobe.extensions.cluster.worker import Answer, Hello, Worker, libraries, versions

TRIES: Final = 3  # of a part, before it is given up
AHEAD: Final = 2  # jobs that a worker has at a time: the next one is there when the first ends
PATIENCE: Final = 120  # seconds without any worker, before a run is given up
SILENCE: Final = 60  # seconds at a part, after which a free worker takes what waits behind it
HEAD_SILENCE: Final = (10, 45)  # seconds: after the first it is said, after the second the run ends
GIB: Final = 2**30
WEIGHTS: Final = 4  # memory of a worker: its checkpoint's size so often, as training takes


class Run:
    """Some jobs of a piece of work, by workers of which some may be there."""

    def __init__(
        self,
        work: Callable[[Any], Any],
        jobs: Sequence[Job],
        staff: Staff,
        engine: EngineParams,
    ) -> None:
        import ray

        self.ray, self.jobs, self.staff, self.engine = ray, jobs, staff, engine
        self.waiting: dict[tuple[Path, ...], deque[int]] = {}
        for number, job in enumerate(jobs):
            self.waiting.setdefault(job.reads, deque()).append(number)
        self.remaining = len(jobs)  # waiting
        self.tries: Counter[int] = Counter()  # that failed
        self.losses: Counter[int] = Counter()  # of workers, by the jobs that they were at
        self.reported: set[tuple[WorkerState, int]] = set()  # parts that were waited for
        self.head_reported = False
        self.alive = time.monotonic()
        self.running: dict[Any, tuple[WorkerState, int | None]] = {
            worker.hello: (worker, None) for worker in staff.active if not worker.since
        }  # the number of none: it starts
        for worker in staff.active:
            worker.queue.clear()  # of a call that was broken off
        self.stamps = {path: fingerprint([path]) for job in jobs for path in job.reads}
        self.work = ray.put(pickle.dumps(work))
        self.versions = versions(libraries())
        self.needs = self._needs()
        self.nodes = Nodes(self.needs)
        if not self.nodes.room():
            problem = f"no node has {self.needs.cpus} CPUs, {self.needs.gpus} GPUs and"
            problem += f" {self.needs.memory / GIB:.1f} GiB for a worker"
            raise BadInput("Ray cluster", problem, "lower OMP_NUM_THREADS, or add a larger node")

    def _needs(self) -> Needs:
        """Return what a worker needs.

        It needs as many CPUs as this process would use threads, a GPU if there are any, and memory
        by the largest input.
        """
        threads = int(os.environ.get("OMP_NUM_THREADS", "").split(",")[0] or 1)
        device, resources = self.engine.device, self.ray.cluster_resources()
        gpus = int(device == "cuda" or (device == "auto" and resources.get("GPU", 0) >= 1))
        largest = max((size(path) for path in self.stamps), default=0)
        return Needs(threads, gpus, GIB + WEIGHTS * largest)

    def results(self) -> Iterator[tuple[int, Any]]:
        """The results, as they come."""
        with self.nodes:
            while self.remaining or any(worker.queue for worker in self.staff.active):
                if not self._head_is_silent() and self.nodes.are_current:
                    self._hire()
                self._employ()
                results = [result for ref in self._wait() for result in self._settle(ref)]
                self._relieve()
                self._employ()
                yield from results

    def _head_is_silent(self) -> bool:
        """Whether the head is lost, which ends the process: Ray does so after a minute.

        Until then results of workers still come.
        """
        first, last = HEAD_SILENCE
        if self.nodes.silence < first:
            return False
        problem, promise = "the head does not answer", "finished parts are kept"
        if not self.head_reported:
            print_above(f"Ray cluster: {problem}; results are still taken, and {promise}")
            self.head_reported = True
        if self.nodes.silence > last:
            remedy = f"start a cluster and run the command again: {promise}"
            raise BadInput("Ray cluster", problem, remedy)
        return True

    def _hire(self) -> None:
        """Ask for workers, as many as there is room and work for; those at work are counted."""
        if not self.staff.active:
            self.nodes.check_starts()
        at_work = sum(bool(worker.queue) for worker in self.staff.active)
        wanted = max(0, at_work + self.remaining - len(self.staff.active))
        cpus, gpus, memory = self.needs
        kind = self.ray.remote(Worker)
        for node in self.nodes.places(self.staff.active)[:wanted]:
            label = {"label_selector": {NODE_ID: node}} if node else {}
            options = kind.options(num_cpus=cpus, num_gpus=gpus, memory=memory, **label)
            actor: Any = options.remote(os.getcwd(), cpus, errors.quoting.get())
            worker = WorkerState(actor, actor.hello.remote(self.versions, self.work), node)
            self.staff.active.append(worker)
            self.running[worker.hello] = worker, None

    def _employ(self) -> None:
        """Give a job to each worker that has none, and then further jobs.

        Workers get further jobs while as many jobs wait as there are workers. At the end no job
        waits behind another while a worker is free.
        """
        ready = [worker for worker in self.staff.active if worker.since]
        for held in range(AHEAD):
            for worker in ready:
                if len(worker.queue) == held and self.remaining >= (
                    len(self.staff.active) if held else 1
                ):
                    self._give(worker)

    def _give(self, worker: WorkerState) -> None:
        """Give a worker its next job."""
        worker.reads = self._chosen(worker)
        number = self.waiting[worker.reads].popleft()
        self.remaining -= 1
        if not self.waiting[worker.reads]:
            del self.waiting[worker.reads]
        self._order(worker, number)

    def _chosen(self, worker: WorkerState) -> tuple[Path, ...]:
        """Choose of which inputs a worker's next job is.

        It prefers inputs that the worker has loaded, then inputs that no other worker has, then
        those with the most jobs.
        """
        if worker.reads in self.waiting:
            return worker.reads
        others = {other.reads for other in self.staff.active if other.queue}
        for reads in self.waiting:
            if reads not in others:
                return reads
        return max(self.waiting, key=lambda reads: len(self.waiting[reads]))

    def _order(self, worker: WorkerState, number: int, lacks: Sequence[str] = ()) -> None:
        """Send a job to a worker, with the contents of inputs that it lacks."""
        job, lost = self.jobs[number], self.losses[number]
        if lost and job.retry_arguments:
            job = job._replace(
                argument=job.retry_arguments[min(lost, len(job.retry_arguments)) - 1]
            )
        stamps = {path.as_posix(): self.stamps[path] for path in job.reads}
        for path in lacks:
            if (path, stamps[path]) not in self.staff.sent:
                self.staff.sent[path, stamps[path]] = self.ray.put(pack(Path(path)))
        contents = [self.staff.sent[path, stamps[path]] for path in lacks]
        reference = worker.actor.do.remote(
            job._replace(retry_arguments=()), stamps, lacks, *contents
        )
        self.running[reference] = worker, number
        if not worker.queue:
            worker.heard = time.monotonic()
        worker.queue.append(number)

    def _wait(self) -> list[Any]:
        """What has ended, within a second. Raises BadInput where no node is left for too long."""
        if self.running:
            self.alive = time.monotonic()
            references = [*self.running]
            self.ray.wait(references, timeout=1)
            ended: list[Any] = self.ray.wait(references, num_returns=len(references), timeout=0)[0]
            return ended
        if time.monotonic() - self.alive > PATIENCE:
            remedy = "start nodes and run the command again: finished parts are kept"
            raise BadInput("Ray cluster", "no node is left that holds a worker", remedy)
        time.sleep(0.2)
        return []

    def _settle(self, reference: Any) -> list[tuple[int, Any]]:
        """Take what a worker says: a result, if that is what it is."""
        worker, number = self.running.pop(reference)
        exceptions = self.ray.exceptions
        try:
            answer = self.ray.get(reference)
        except (exceptions.RayActorError, exceptions.OutOfMemoryError) as lost:
            self._lose(worker, number, lost)
            return []
        except exceptions.RayError as error:  # such as a result that cannot be pickled
            if number is None:
                self._lose(worker, number, error)
                return []
            answer = Answer(error=getattr(error, "cause", None) or error)
        worker.heard = time.monotonic()
        if number is None:
            self._welcome(worker, answer)
            return []
        worker.queue.remove(number)
        if answer.lacks:
            self._order(worker, number, answer.lacks)
        elif answer.error:
            self._fail(worker, number, answer.error)
        else:
            return [(number, self._received(worker, number, answer))]
        return []

    def _relieve(self) -> None:
        """Put back what waits behind a silent worker while another is free, and print for what.

        A part has no time limit: nothing shows from outside whether its worker hangs.
        """
        workers = [worker for worker in self.staff.active if worker.since]
        if self.remaining or all(worker.queue for worker in workers):
            return
        for worker in workers:
            seconds = time.monotonic() - worker.heard
            if not worker.queue or seconds < SILENCE:
                continue
            first, *others = worker.queue
            for reference, (holder, number) in [*self.running.items()]:
                if holder is worker and number in others:
                    del self.running[reference]
                    self.ray.cancel(reference)
                    worker.queue.remove(number)
                    self._back(number)
            if (worker, first) not in self.reported:
                self.reported.add((worker, first))
                place = f"process {worker.process} on {worker.machine}"
                line = f"waiting for {self.jobs[first].name}, for {duration(seconds)} at {place}"
                print_above(f"{line}; if that hangs, end it, and the part is done again")

    def _welcome(self, worker: WorkerState, hello: Hello) -> None:
        """A worker is there. Raises BadInput where it is of another version."""
        installed = hello.versions
        if installed != self.versions:
            name = next(key for key in self.versions if installed.get(key) != self.versions[key])
            problem = f"{name} is {installed.get(name)}, and {self.versions[name]} here"
            raise BadInput(f"a worker on {hello.machine}", problem, "install the same on all nodes")
        worker.device, worker.machine, worker.process = hello.device, hello.machine, hello.process
        worker.node, worker.since = hello.node, time.monotonic()

    def _received(self, worker: WorkerState, number: int, answer: Answer) -> Any:
        job = self.jobs[number]
        for path, files in zip(job.writes, answer.wrote, strict=True):
            unpack(files, path)
        worker.jobs.append(job.name)
        worker.seconds += answer.seconds
        worker.tokens += answer.tokens
        return answer.result

    def _back(self, number: int) -> None:
        """Put a job back, to be done next."""
        self.waiting.setdefault(self.jobs[number].reads, deque()).appendleft(number)
        self.remaining += 1

    def _again(
        self, worker: WorkerState, number: int, why: BaseException, problem: str, remedy: str
    ) -> None:
        """Put a job back that was begun, and print that; or give up."""
        self.tries[number] += 1
        name = self.jobs[number].name
        if self.tries[number] >= TRIES:
            problem = f"{problem} {TRIES} times, at last on {worker.machine}"
            raise BadInput(name, problem, remedy) from why
        print_above(f"{name}: {problem} on {worker.machine}; this part is done again")
        self._back(number)

    def _fail(self, worker: WorkerState, number: int, error: Exception) -> None:
        if isinstance(error, BadInput):
            raise error
        quotation = f": {error}" if errors.quoting.get() else ""  # which may quote the data
        problem, remedy = f"failed ({type(error).__name__}{quotation})", "see -v for the traceback"
        if disk_full_error(error):
            problem, remedy = "the disk was full", "make room there, where temporary files are"
        self._again(worker, number, error, problem, remedy)

    def _lose(self, worker: WorkerState, number: int | None, why: Exception) -> None:
        """A worker is gone, with its process or its node. Of its jobs the first was begun."""
        if worker in self.staff.active:
            self.staff.end(worker)
        self.nodes.refresh()
        if number is None:
            self.nodes.record_failure(worker, str(why).strip().splitlines()[-1].strip())
        elif number == worker.queue[0]:
            self.losses[number] += 1
            remedy = "where its memory did not suffice, add a larger node"
            self._again(worker, number, why, "its worker was lost", remedy)
        else:
            self._back(number)
