"""An executor that works with copies, as the workers of a cluster do."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from medprobe.core.executor import Job


def from_copies(work: Callable[[Any], Any], jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
    """Does the last job first; work, arguments and results are pickled."""
    work = pickle.loads(pickle.dumps(work))
    for number in reversed(range(len(jobs))):
        argument = pickle.loads(pickle.dumps(jobs[number].argument))
        yield number, pickle.loads(pickle.dumps(work(argument)))


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files below a folder, by their names in it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
