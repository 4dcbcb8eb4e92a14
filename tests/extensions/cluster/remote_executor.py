"""An executor whose worker shares no file system with the project: it has what is sent to it."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from typing import Any

from medprobe.core.executor import Job
from medprobe.core.parts import fingerprint
from medprobe.extensions.cluster.files import pack, unpack
from medprobe.extensions.cluster.worker import Worker, versions


def run_remotely(work: Callable[[Any], Any], jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
    """Does the last job first, in this process but in the worker's folder."""
    worker = Worker("/nowhere", 1, True)
    with chdir("."):
        worker.hello(versions([]), pickle.dumps(work))
    for number in reversed(range(len(jobs))):
        job = pickle.loads(pickle.dumps(jobs[number]))
        stamps = {path.as_posix(): fingerprint([path]) for path in job.reads}
        contents = [pack(path) for path in job.reads]
        with chdir(worker.folder):
            answer = worker.do(job, stamps, list(stamps), *contents)
        assert not answer.error and not answer.lacks
        for path, files in zip(job.writes, answer.wrote, strict=True):
            unpack(files, path)
        yield number, answer.result
    with chdir("."):
        worker.guard.close()
