"""A worker of a cluster: a process on a node, which does jobs one after another.

It computes in an empty folder of its own. What a job reads is linked into it from the project's
folder, where the worker's machine has that with the same contents, and else sent with the job.
"""

import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from medprobe.core import errors
from medprobe.core.executor import Job
from medprobe.core.files import disk_full_error
from medprobe.core.libraries import installed_versions, pinned_versions
from medprobe.core.parts import fingerprint, package_fingerprint
from medprobe.core.places import LIBRARIES
from medprobe.extensions.cluster.files import Files, link, pack, unpack

PYTHON_AND_CODE: Final = ("Python", "medprobe's code")  # the versions that are no library's


class Answer(NamedTuple):
    """What a worker says of a job: one of `result`, `error` and `lacks`."""

    result: Any = None
    error: Exception | None = None
    lacks: tuple[str, ...] = ()  # paths that are to be sent with the job
    wrote: tuple[Files, ...] = ()
    seconds: float = 0.0
    tokens: int = 0


class Hello(NamedTuple):
    """What a worker says of itself."""

    versions: dict[str, str]
    device: str
    machine: str
    process: int
    node: str = ""  # its id in the cluster


class Worker:
    """What Ray makes an actor of. `home` is the project's folder, as its own machine calls it."""

    def __init__(self, home: str, threads: int, quotes: bool) -> None:
        os.environ["OMP_NUM_THREADS"] = str(threads)
        errors.quoting.set(quotes)
        self.home = Path(home)
        self.placed: dict[str, str] = {}  # paths of the folder, with their fingerprints
        self.work: Callable[[Any], Any] | None = None

    def hello(self, expected: dict[str, str], work: bytes) -> Hello:
        """Return what this worker is.

        If its versions are the `expected` ones, it makes its folder and takes up the pickled work.
        """
        installed = versions([*expected][len(PYTHON_AND_CODE) :])
        machine, process = platform.node(), os.getpid()
        if installed != expected:
            return Hello(installed, "", machine, process)
        self.folder, self.guard = _guarded_folder()
        os.chdir(self.folder)
        self.work = pickle.loads(work)
        return Hello(installed, _device(), machine, process, _node())

    def do(
        self, job: Job, stamps: dict[str, str], sent: Sequence[str] = (), *contents: Files
    ) -> Answer:
        """Do a job whose inputs have these fingerprints; `contents` is what was sent of them."""
        try:
            for path, files in zip(sent, contents, strict=True):
                unpack(files, self.folder / path)
                self.placed[path] = stamps[path]
            if lacks := tuple(path for path in stamps if not self._has(path, stamps[path])):
                return Answer(lacks=lacks)
            return self._do(job)
        except Exception as error:
            return Answer(error=_portable(disk_full_error(error) or error))

    def _do(self, job: Job) -> Answer:
        """Return a job's result, with the files that it wrote and what it took."""
        assert self.work is not None
        begin, tokens_before = time.monotonic(), _tokens()
        result = self.work(job.argument)
        seconds, tokens = time.monotonic() - begin, _tokens() - tokens_before
        wrote = tuple(pack(path) for path in job.writes)
        self.placed |= {path.as_posix(): fingerprint([path]) for path in job.writes}
        return Answer(result, wrote=wrote, seconds=seconds, tokens=tokens)

    def _has(self, path: str, stamp: str) -> bool:
        """Is this in the folder, or can it be linked from the project's?"""
        if self.placed.get(path) == stamp:
            return True
        source, target = self.home / path, self.folder / path
        if not source.exists() or fingerprint([source]) != stamp:
            return False
        if target != source:  # as absolute paths are
            link(source, target)
        self.placed[path] = stamp
        return True


def _guarded_folder() -> tuple[Path, IO[bytes]]:
    """Make a folder, and start a shell that removes it when this process ends, in whatever way.

    The shell waits for the end of a pipe whose other end this process alone holds. It is no child
    of this process, since Ray stops the children of a worker with it.
    """
    folder = Path(tempfile.mkdtemp(prefix="medprobe-"))
    script = 'exec 3<&0; { read -r line <&3; cd / && rm -rf -- "$1"; } > /dev/null 2>&1 &'
    command = ["sh", "-c", script, "sh", str(folder)]
    shell = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    shell.wait()
    assert shell.stdin is not None
    return folder, shell.stdin


def _node() -> str:
    """The id of this process's node; "" outside of a cluster."""
    ray = sys.modules.get("ray")
    return str(ray.get_runtime_context().get_node_id()) if ray and ray.is_initialized() else ""


def versions(libraries: Sequence[str]) -> dict[str, str]:
    """Of Python, of this package's code, of libraries; `none` for one that is not there."""
    values = (sys.version.split()[0], package_fingerprint()[:12])
    return {**dict(zip(PYTHON_AND_CODE, values, strict=True)), **installed_versions(libraries)}


def libraries(lock: Path = LIBRARIES) -> list[str]:
    """The names in a lock file, and Ray's."""
    return [*pinned_versions(lock), "ray"]


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
    return loaded.token_counter["tokens"] if loaded else 0


def _portable(error: Exception) -> Exception:
    """An error that can be sent: itself, or what it says."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
