"""The executor, in the process of a stage: the driver.

What a job reads and writes goes through the worker's own folder (`worker`). The driver alone writes
results into the project (`run`).
"""

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from medprobe.core.errors import BadInput
from medprobe.core.executor import Job
from medprobe.core.params import EngineParams
from medprobe.extensions.cluster.run import Run
from medprobe.extensions.cluster.staff import Staff

# Ray's paragraphs about a loss, which repeat the line that `run` prints for it. Ray reads this when
# it is imported.
RAY_SETTINGS: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "A worker died or was killed|Raylet is terminated|marked dead",
}


class Cluster:
    """The executor. Its workers stay for further calls of the same work, until the block ends.

    Calls raise BadInput where there is no cluster, no node is large enough, a worker has other
    versions than this process, or a part is given up.
    """

    def __init__(self, engine: EngineParams) -> None:
        self.engine = engine
        self.work: Callable[[Any], Any] | None = None
        self.staff = Staff()

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self._dismiss()

    def __call__(
        self, work: Callable[[Any], Any], jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any]]:
        """Run the jobs on the cluster's workers; see `core.executor.Executor`."""
        if not jobs:
            return
        self._connect()
        if work is not self.work:
            self._dismiss()
            self.work = work
        yield from Run(work, jobs, self.staff, self.engine).results()

    def describe(self) -> dict[str, object]:
        """List the devices that computed a result, and the tokens they read."""
        workers = "; ".join(self.staff.costs())
        devices, tokens = self.staff.devices(), self.staff.tokens
        return {"executor": "ray", "device": devices, "workers": workers, "tokens": tokens}

    def _connect(self) -> None:
        for name, value in RAY_SETTINGS.items():
            os.environ.setdefault(name, value)
        try:
            import ray
        except ModuleNotFoundError:
            remedy = "pip install 'medprobe[ray]', or set it to local"
            raise BadInput("engine.executor: ray", "Ray is not installed", remedy) from None
        if ray.is_initialized():
            return
        address = self.engine.address
        try:
            _check_address(address)
        except OSError as problem:
            raise _no_cluster(address, problem) from None
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as problem:
            if not _token_is_refused(address):
                raise _no_cluster(address, problem) from None
            remedy = "set RAY_AUTH_MODE and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH as on its nodes"
            where = f"engine.address: {address}"
            raise BadInput(where, "that cluster refuses the token", remedy) from None

    def _dismiss(self) -> None:
        """Let all workers go."""
        self.work = None
        for worker in [*self.staff.active]:
            self.staff.end(worker)


def _check_address(address: str) -> None:
    """Raise OSError if nothing listens at the address of a head. Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _no_cluster(address: str, problem: Exception) -> BadInput:
    remedy = "start one, `ray start --head`: docs/how-to/cluster.md"
    reason = str(problem).partition("\n")[0] or type(problem).__name__
    return BadInput(f"engine.address: {address}", f"no Ray cluster ({reason})", remedy)


def _token_is_refused(address: str) -> bool:
    """Whether a cluster is there, but for another token. The error of `ray.init` is the same."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check"]
    command += [] if address == "auto" else ["--address", address]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    return "AuthenticationError" in check.stderr
