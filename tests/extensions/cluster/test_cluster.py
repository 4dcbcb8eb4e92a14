"""Work on a Ray cluster: the same bytes as here, whatever happens to workers and nodes."""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from helpers import probing
from helpers.faulty import Faulty
from helpers.project import SMALL, Project
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.executor import Executor, Job, in_this_process
from medprobe.core.params import EngineParams, Params
from medprobe.core.tables import BenchmarkTables
from medprobe.extensions.cluster.executor import RAY_SETTINGS, Cluster
from medprobe.extensions.cluster.files import pack
from medprobe.papers.medlama.rewiring import SENTENCES as SETS
from medprobe.papers.medlama.settings.rewire import LOSSES, REWIRED
from medprobe.papers.medlama.stages.rewire import rewire
from medprobe.pipeline.stages.probe import probe
from papers.diskne import test_classifier
from papers.medlama import test_rewire

pytestmark = pytest.mark.skipif(not find_spec("ray"), reason="the extra `ray` is not installed")

RAY = EngineParams(device="cpu", executor="ray")
NODE = {"num_cpus": 1, "memory": 8 * 2**30, "object_store_memory": 80 * 2**20}
# What contains the executor's name: the parameters, and the records of how a result was made.
DATED = ("params.yaml", "outputs/runs", "reports")
METHODS: dict[str, Any] = {
    "mask_average": {"toy": {}},
    "contrastive": {"toy": {"sets": ["set-0"]}},
    "classifier": {"diseases": {**test_classifier.FAST, "variants": ["", "hypothesis-only"]}},
}


def params(executor: str) -> Params:
    return Params.model_validate(
        {
            "engine": {"executor": executor, "device": "cpu"},
            "models": {"masked": {"bert": {}}},
            "sentence_sets": {"set-0": {}},
            "rewire": {"batch": 4, "steps": 6, "checkpoint_every": 2, "learning_rate": 1e-3},
            "benchmarks": {"table": {"toy": {}}, "diskne": {"diseases": {}}},
            "methods": {"masked": METHODS},
        }
    )


@pytest.fixture(scope="module")
def nodes() -> Iterator[Callable[[], None]]:
    """A cluster of two nodes with one CPU each, beside a head with none; called, it makes them two
    again."""
    seen = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", os.pathsep.join(seen))  # the workers import `faulty`
    for name, value in RAY_SETTINGS.items():
        patch.setenv(name, value)
    patch.setenv("RAY_AUTH_MODE", "token")
    patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    import ray  # which reads these now
    from ray.cluster_utils import Cluster as Nodes

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 80 * 2**20}
    cluster = Nodes(initialize_head=True, head_node_args=head)
    members: list[Any] = []

    def complete() -> None:
        for node in list(members):
            if node.all_processes["raylet"][0].process.poll() is not None:
                cluster.remove_node(node, allow_graceful=False)
                members.remove(node)
        while len(members) < 2:
            members.append(cluster.add_node(wait=True, **NODE))

    complete()
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    yield complete
    ray.shutdown()
    cluster.shutdown()
    patch.undo()


@pytest.fixture
def project(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tiny_model: Callable[[str], Path],
    nodes: Callable[[], None],
) -> Path:
    """A model, two benchmarks and a sentence set, in the folder where the test then is."""
    nodes()
    monkeypatch.chdir(tmp_path)
    queries = pd.concat(
        probing.queries().assign(
            query_id=[f"{subset}-{relation}-{i}" for i in range(4)],
            relation=relation,
            subset=subset,
        )
        for relation in ("r1", "r2", "r3", "r4")
        for subset in ("all", "hard")
    )
    candidates = [
        probing.candidates(probing.NAMES[:cut]).assign(subset=subset)
        for subset, cut in (("all", None), ("hard", 5))
    ]
    toy = BenchmarkTables(queries.reset_index(drop=True), pd.concat(candidates))
    toy.write(places.BENCHMARKS / "toy")
    test_classifier.tables().write(places.BENCHMARKS / "diseases")
    places.MODELS.mkdir(parents=True)
    (places.MODELS / "bert").symlink_to(tiny_model("bert"))
    SETS.mkdir(parents=True)
    (SETS / "set-0.txt").write_text("\n".join(test_rewire.SENTENCES) + "\n")
    return tmp_path


def probed(method: str, benchmark: str, executor: Executor) -> bytes:
    name = "local" if executor is in_this_process else "ray"
    probe("bert", method, benchmark, params(name), executor)
    return Path(f"outputs/predictions/bert/{method}/{benchmark}.parquet").read_bytes()


def rewired(executor: Executor) -> dict[str, bytes]:
    name = "local" if executor is in_this_process else "ray"
    rewire("bert", "set-0", params(name), None, executor)
    losses = {"losses": (LOSSES / "bert/set-0.csv").read_bytes()}
    return losses | pack(REWIRED / "bert/set-0")


@contextmanager
def without_parts() -> Iterator[None]:
    """Without the finished parts of before."""
    if places.PARTS.exists():
        places.PARTS.rename(f"before-{len(list(Path().iterdir()))}")
    yield


def test_a_node_lost_in_the_middle_of_probing(project: Path) -> None:
    predictions = probed("mask_average", "toy", in_this_process)
    with without_parts(), Cluster(RAY) as cluster:
        faulty = Faulty(cluster, project / "begun", {2: "node"})
        assert probed("mask_average", "toy", faulty) == predictions
    assert faulty.begun == 4 + 1  # relations, and the one that was lost
    workers = [worker for worker in cluster.staff.former if worker.jobs]
    assert sum(len(worker.jobs) for worker in workers) == 4
    assert all(worker.tokens > 0 and 0 < worker.seconds < worker.held for worker in workers)


def test_a_node_lost_in_the_middle_of_rewiring_and_what_is_rewired_is_probed(
    project: Path,
) -> None:
    here = rewired(in_this_process)
    ranked = probed("contrastive", "toy", in_this_process)
    with without_parts(), Cluster(RAY) as cluster:
        faulty = Faulty(cluster, project / "begun", {1: "node"})
        assert rewired(faulty) == here
        assert faulty.begun == 3 + 1  # of the three stretches between checkpoints one was lost
        assert probed("contrastive", "toy", cluster) == ranked


def test_a_part_that_fails_once_or_whose_worker_is_killed_is_done_again(project: Path) -> None:
    predictions = probed("mask_average", "toy", in_this_process)
    with without_parts(), Cluster(RAY) as cluster:
        faulty = Faulty(cluster, project / "begun", {0: "error", 2: "worker"})
        assert probed("mask_average", "toy", faulty) == predictions
    assert faulty.begun == 4 + 2


def test_a_part_that_always_fails_is_named_and_ray_prints_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for fault, message in (("error", r"failed \(RuntimeError: a fault\)"), ("worker", "was lost")):
        faults = dict.fromkeys(range(20), fault)
        with without_parts(), Cluster(RAY) as cluster:
            faulty = Faulty(cluster, project / fault, faults)
            with pytest.raises(
                BadInput, match=f"bert, mask_average, toy: r[1-4]/all: .*{message} .*3"
            ):
                probed("mask_average", "toy", faulty)
        assert not places.PREDICTIONS.exists()
    assert "raylet" not in capsys.readouterr().out


def test_a_driver_that_comes_back_finds_what_was_finished(project: Path) -> None:
    predictions = probed("mask_average", "toy", in_this_process)

    class Stopped(Exception):
        """Stands for a kill."""

    def stopping(executor: Executor) -> Executor:
        def run(work: Callable[[Any], Any], jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
            for number, result in enumerate(executor(work, jobs)):
                if number == 2:
                    raise Stopped
                yield result

        return run

    with without_parts():
        with Cluster(RAY) as cluster, pytest.raises(Stopped):
            probed("mask_average", "toy", stopping(cluster))
        with Cluster(RAY) as cluster:
            faulty = Faulty(cluster, project / "begun", {})
            assert probed("mask_average", "toy", faulty) == predictions
        assert faulty.begun == 2
        assert (
            probed("mask_average", "toy", Cluster(RAY)) == predictions
        )  # which asks for no worker


def test_the_pipeline_has_the_same_lock_with_and_without_a_cluster(
    tmp_path: Path, nodes: Callable[[], None]
) -> None:
    """All that DVC records of a project, whose every part is done by workers the second time."""
    import ray

    nodes()
    one_model = {
        "train": {"taught": SMALL["train"]["taught"]},
        "models": {"masked": {"taught": {}}},
    }
    new_project = Project(tmp_path)
    new_project.replace(**{**SMALL, **one_model})
    threads = {"OMP_NUM_THREADS": "1"}  # which workers have, too
    new_project.works("medprobe", "sample")
    new_project.works("dvc", "add", "data", "--quiet")
    locks = []
    for executor in ("local", "ray"):
        address = ray.get_runtime_context().gcs_address
        engine = {"executor": executor, "address": address, "device": "cpu"}
        new_project.replace(engine={**engine, "precision": "float32"})
        output = new_project.works("dvc", "repro", **threads)
        stages = yaml.safe_load((tmp_path / "dvc.lock").read_text())["stages"]
        for stage in stages.values():
            for side in ("deps", "outs"):
                entries = stage.get(side, [])
                stage[side] = [entry for entry in entries if not entry["path"].startswith(DATED)]
        locks.append(stages)
        assert ("workers, " in output) == (executor == "ray")
        for name in ("dvc.lock", "metrics", "outputs", "reports", ".dvc/cache/runs"):
            path = tmp_path / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert locks[0] == locks[1]
