"""The executor of a Ray cluster: what it costs, and how busy it keeps its workers.

    pip install '.[ray]'
    python -m bench.cluster                                # on two cores
    python -m bench.cluster --section busy --workers 64    # as many processes

Nodes are processes of this machine. The parts of `busy` sleep, and give tables as large as a
relation's of MedLAMA; they are so short that, of however many workers, twenty end each second.
"""

import argparse
import os
import random
import resource
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from medprobe.core.executor import Job
from medprobe.core.params import EngineParams
from medprobe.extensions.cluster.executor import Cluster

SECTIONS = ("tiny", "busy")
ENGINE = EngineParams(device="cpu", executor="ray")
STORE = 200 * 2**20
TINY, ROWS = 1_000, 2_000 * 10  # parts; rows of a large relation's table
RATE, LASTS = 20, 30  # sleeping parts that end each second, and seconds


@contextmanager
def cluster(cpus: Sequence[int]) -> Iterator[None]:
    """Nodes with so many CPUs each, and a driver connected to them."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    import ray  # which reads these now
    from ray.cluster_utils import Cluster as Nodes

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
    nodes = Nodes(initialize_head=True, head_node_args=head)
    for count in cpus:
        nodes.add_node(num_cpus=count, memory=count * 8 * 2**30, object_store_memory=STORE)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="error")
    try:
        yield
    finally:
        ray.shutdown()
        nodes.shutdown()


def warmed(executor: Cluster, count: int, work: Any, jobs: Sequence[Job]) -> None:
    """Let `count` workers start, and each do a job."""
    begin = time.monotonic()
    while sum(bool(worker.jobs) for worker in executor.staff.active) < count:
        list(executor(work, jobs))
    print(f"  {count} workers began within {time.monotonic() - begin:.0f} s", flush=True)


def nothing(argument: int) -> int:
    return argument


def sleeping(much: float) -> tuple[int, float, float, pd.DataFrame]:
    """A part that takes `much` seconds of some worker's, and none of this machine's cores: whose,
    when it began and ended, and a table."""
    begin = time.time()
    time.sleep(much)
    rows = np.arange(ROWS)
    table = pd.DataFrame({"query_id": rows.astype(str), "rank": rows % 10, "score": rows / 7.0})
    return os.getpid(), begin, time.time(), table


def memory() -> float:
    """The most that this process has held, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def tiny() -> None:
    """What a part costs that does nothing."""
    with cluster([1, 1]), Cluster(ENGINE) as workers:
        warmed(workers, 2, nothing, [Job("first", 0), Job("second", 1)])
        begin = time.monotonic()
        results = dict(workers(nothing, [Job(f"part {i}", i) for i in range(TINY)]))
        took = time.monotonic() - begin
    assert results == {i: i for i in range(TINY)}
    print(f"{TINY} parts that do nothing: {took:.2f} s, {took / TINY * 1000:.2f} ms each")


def busy(count: int) -> None:
    """How much of the time between its first and its last part a worker is at parts."""
    draw, mean = random.Random(0), count / RATE
    jobs = [Job(f"part {i}", draw.uniform(0.5, 1.5) * mean) for i in range(RATE * LASTS)]
    with cluster([count]), Cluster(ENGINE) as workers:
        warmed(workers, count, sleeping, [Job("first", 1.0)] * count)
        held, spans = [memory()], []
        begin = time.monotonic()
        for _, (whose, first, last, _) in workers(sleeping, jobs):
            spans.append((whose, first, last))
            held.append(memory())
        took = time.monotonic() - begin
    parts = pd.DataFrame(spans, columns=["whose", "first", "last"])
    each = parts.groupby("whose").agg({"first": "min", "last": "max"})
    worked = (parts["last"] - parts["first"]).sum()
    share = worked / (each["last"] - each["first"]).sum()
    print(f"{len(each)} of {count} workers, {len(jobs)} parts of {mean:.1f} s: {took:.1f} s")
    print(f"busy {share:.1%} of the time between their first and last parts (wanted: 95 %)")
    print(f"busy {worked / (count * took):.1%} of all, the end counted, when some have no more")
    print(f"memory of the driver: {held[0]:.0f} MiB at first, {held[-1]:.0f} MiB at the end")


def main() -> None:
    """Print the figures, as they come."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--section", choices=SECTIONS, action="append")
    parser.add_argument("--workers", type=int, default=8)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    for section in options.section or SECTIONS:
        print(f"-- {section}", flush=True)
        if section == "tiny":
            tiny()
        else:
            busy(options.workers)


if __name__ == "__main__":
    import_module("bench.cluster").main()  # workers find its functions by that name
