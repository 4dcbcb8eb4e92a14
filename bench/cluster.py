"""The executor of a Ray cluster: what it costs, and how busy it keeps its workers.

    pip install '.[ray]'
    python -m bench.cluster           # seven minutes did not do on two free cores

Nodes are processes of this machine. Probing and fine-tuning are done by one worker of one thread,
then by two: the models are small BERTs with random weights, each part takes seconds. The parts of
the eight workers sleep, and give tables as large as a relation's of MedLAMA: as many end each
second as of 64 workers whose parts take eight times as long.
"""

import os
import random
import resource
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import transformers

from bench import made
from medprobe.cluster import Cluster
from medprobe.core import places
from medprobe.core.params import EngineParams
from medprobe.core.parts import Job, local
from medprobe.core.tables import BenchmarkTables
from medprobe.methods import find
from medprobe.stages.probe import Probing

ENGINE = EngineParams(device="cpu", executor="ray")
STORE = 200 * 2**20
TINY, ROWS = 1_000, 2_000 * 10  # parts; rows of a large relation's table
WORKERS, EACH = 8, 60  # workers, and parts for each
SECONDS = (0.125, 0.625)  # that such a part takes


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


def small_bert(folder: Path) -> Path:
    """Four layers of 256 units, with the tokenizer of `made.bert`."""
    torch.manual_seed(0)
    made.bert(folder)
    config = transformers.BertConfig(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024
    )
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return folder


def ranked() -> BenchmarkTables:
    """Eight relations of four queries, and 400 candidates."""
    queries = made.queries(32)
    queries["relation"] = [f"r{i % 8}" for i in range(32)]
    extra = {"answer_ids": queries["answers"], "subset": "all"}
    names = made.candidates(400).assign(id="C", subset="all")
    return BenchmarkTables(queries.assign(**extra), names)


def classified() -> BenchmarkTables:
    """Eight diseases, and 96 examples, of which 64 train each of them."""
    texts, names = made.names(96, 5), made.names(8, 6)
    examples = pd.DataFrame(
        {
            "example_id": [f"e{i}" for i in range(96)],
            "category": "c",
            "kind": ["positive" if i % 2 else "similar" for i in range(96)],
            "label": [i % 2 for i in range(96)],
            "cui": [f"C{i % 8}" for i in range(96)],
            "disease": [names[i % 8] for i in range(96)],
            "premise": [" ".join(texts[i:] + texts[:i])[:400] for i in range(96)],
            "hypothesis": [names[i % 8] for i in range(96)],
            "full_hypothesis": [names[i % 8] for i in range(96)],
        }
    )
    splits = [
        (f"C{d}", "test" if i % 8 == d else "validation" if i > 75 else "train", f"e{i}")
        for d in range(8)
        for i in range(96)
        if i % 8 == d or i % 2 == d % 2 or i % 3 == 0
    ]
    queries = ranked().queries.head(8).assign(relation=[f"C{d}" for d in range(8)])
    split = pd.DataFrame(splits, columns=["target", "split", "example_id"])
    return BenchmarkTables(
        queries, ranked().candidates, {}, {"examples": examples, "splits": split}
    )


def probing(method: str, tables: BenchmarkTables, engine: EngineParams, **chosen: Any) -> Probing:
    settings = find(method).Settings(**chosen)
    return Probing("bench", method, places.MODELS / "bert", settings, engine, 0, tables, {})


def seconds(executor: Any, work: Probing) -> float:
    """For all jobs, from when every worker has its model and has done one."""
    jobs = [Job(str(asked), asked, (work.checkpoint,)) for asked in work.asked()]
    list(executor(work, jobs))
    begin = time.monotonic()
    list(executor(work, jobs))
    return time.monotonic() - begin


def nothing(argument: int) -> int:
    return argument


def sleeping(much: float) -> pd.DataFrame:
    """A part that takes `much` seconds of some worker's, and none of this machine's cores."""
    time.sleep(much)
    rows = np.arange(ROWS)
    return pd.DataFrame({"query_id": rows.astype(str), "rank": rows % 10, "score": rows / 7.0})


def memory() -> float:
    """The most that this process has held, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compare(what: str, work: Callable[[EngineParams], Probing]) -> None:
    """One worker against two, and this process."""
    here = seconds(local, work(EngineParams(device="cpu")))
    took = []
    for count in (1, 2):
        with cluster([1] * count), Cluster(ENGINE) as workers:
            took.append(seconds(workers, work(ENGINE)))
    print(f"{what:12} here {here:6.1f} s, one worker {took[0]:6.1f} s, two {took[1]:6.1f} s")
    print(f"{'':12} ratio {took[0] / took[1]:.2f}   (wanted: 1.7)")


def main() -> None:
    """Print the figures."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with cluster([1, 1]), Cluster(ENGINE) as workers:
        list(workers(nothing, [Job("first", 0), Job("second", 1)]))
        begin = time.monotonic()
        found = dict(workers(nothing, [Job(f"part {i}", i) for i in range(TINY)]))
        took = time.monotonic() - begin
        assert found == {i: i for i in range(TINY)}
    print(f"{TINY} parts that do nothing: {took:.2f} s, {took / TINY * 1000:.2f} ms each")

    draw = random.Random(0)
    jobs = [Job(f"part {i}", draw.uniform(*SECONDS)) for i in range(WORKERS * EACH)]
    with cluster([WORKERS]), Cluster(ENGINE) as workers:
        list(workers(sleeping, [Job("first", 1.0)] * WORKERS))
        before, begin = memory(), time.monotonic()
        held = [before]
        for _ in workers(sleeping, jobs):
            held.append(memory())
        took = time.monotonic() - begin
    worked = sum(job.argument for job in jobs)
    print(f"{WORKERS} workers, {len(jobs)} sleeping parts: {took:.1f} s")
    print(f"busy {worked / (WORKERS * took):.1%} (wanted: 95 %), the end of the last parts counted")
    print(f"memory of the driver: {held[0]:.0f} MiB at first, {held[-1]:.0f} MiB at the end")

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        places.MODELS.mkdir(parents=True)
        small_bert(places.MODELS / "bert")
        compare("probing", partial(probing, "likelihood", ranked()))
        chosen = {"variants": [""], "seeds": [0], "epochs": 2, "batch": 8}
        compare("fine-tuning", partial(probing, "classifier", classified(), **chosen))


if __name__ == "__main__":
    import_module("bench.cluster").main()  # workers find its functions by that name
