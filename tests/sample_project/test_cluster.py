"""Work on a Ray cluster: the same bytes as here, whatever happens to workers and nodes.

`make cluster` installs Ray and runs this file.
"""

import os
import pickle
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from helpers import FolderOf, probing
from helpers.faulty import WORKERS_PATH, Counted, Faulty
from helpers.pickled import contents
from helpers.project import SMALL, Project
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.executor import Executor, Job, in_this_process
from medprobe.core.params import EngineParams, Params
from medprobe.core.tables import BenchmarkTables
from medprobe.papers.medlama.rewired import LOSSES, REWIRED
from medprobe.papers.medlama.stages.rewire import rewire
from medprobe.pipeline import cluster as ray_cluster
from medprobe.pipeline.cluster import RAY_SETTINGS, Cluster, facts
from medprobe.pipeline.stages.probe import probe
from papers.diskne import test_classifier
from papers.medlama import test_rewire

RAY = EngineParams(device="cpu", executor="ray")
NODE = {"num_cpus": 1, "num_gpus": 2, "memory": 8 * 2**30, "object_store_memory": 80 * 2**20}
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
    if not find_spec("ray"):
        pytest.skip("the extra `ray` is not installed")
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", WORKERS_PATH)
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: FolderOf, nodes: Callable[[], None]
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
    places.SENTENCES.mkdir(parents=True)
    (places.SENTENCES / "set-0.txt").write_text("\n".join(test_rewire.SENTENCES) + "\n")
    return tmp_path


def probed(method: str, benchmark: str, executor: Executor) -> bytes:
    name = "local" if executor is in_this_process else "ray"
    probe("bert", method, benchmark, params(name), executor)
    return Path(f"outputs/predictions/bert/{method}/{benchmark}.parquet").read_bytes()


def rewired(executor: Executor) -> dict[str, bytes]:
    name = "local" if executor is in_this_process else "ray"
    rewire("bert", params(name), executor)
    losses = {"losses": (LOSSES / "bert/set-0.csv").read_bytes()}
    return losses | contents(REWIRED / "bert/set-0")


@contextmanager
def without_parts() -> Iterator[None]:
    """Without the finished parts and rewirings of before."""
    for folder in (places.PARTS, REWIRED):
        if folder.exists():
            folder.rename(f"before-{len(list(Path().iterdir()))}")
    yield


@contextmanager
def faulty_cluster(folder: Path, faults: dict[int, str]) -> Iterator[Faulty]:
    """A cluster with faults in some jobs, by their numbers."""
    with Cluster(RAY) as cluster:
        yield Faulty(cluster, folder, faults)


def test_a_part_that_fails_or_is_lost_with_its_node_is_done_again(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predictions = probed("mask_average", "toy", in_this_process)
    with without_parts(), faulty_cluster(project / "begun", {0: "error", 3: "node"}) as faulty:
        assert probed("mask_average", "toy", faulty) == predictions
        assert faulty.begun == 4 + 2  # relations, and those that were done again
        totals = faulty.executor.totals
    assert totals["jobs"] == 4 and totals["tokens"] > 0
    lines = capsys.readouterr().err.splitlines()
    problems = [r"failed \(RuntimeError: a fault\)", "its worker was lost"]
    for problem in problems:
        pattern = rf"bert, mask_average, toy: r\d/all: {problem} on .+; this part is done again"
        assert len([line for line in lines if re.fullmatch(pattern, line)]) == 1
    assert re.fullmatch(r"cpu.*: \d workers, 4 jobs, \d+ tokens", lines[-1])


def test_a_node_lost_in_the_middle_of_rewiring_and_what_is_rewired_is_probed(project: Path) -> None:
    here = rewired(in_this_process)
    ranked = probed("contrastive", "toy", in_this_process)
    with without_parts(), faulty_cluster(project / "begun", {0: "half"}) as faulty:
        assert rewired(faulty) == here
        assert faulty.begun == 2
        assert probed("contrastive", "toy", faulty.executor) == ranked


@pytest.mark.parametrize(
    ("fault", "message"), [("error", r"failed \(RuntimeError: a fault\)"), ("worker", "was lost")]
)
def test_a_part_that_always_fails_is_named_and_ray_prints_nothing(
    project: Path, capsys: pytest.CaptureFixture[str], fault: str, message: str
) -> None:
    problem = f"bert, mask_average, toy: r[1-4]/all: .*{message} 3 times, at last on"
    faults = dict.fromkeys(range(20), fault)
    with (
        faulty_cluster(project / "begun", faults) as faulty,
        pytest.raises(BadInput, match=problem),
    ):
        probed("mask_average", "toy", faulty)
    assert not places.PREDICTIONS.exists()
    assert "raylet" not in capsys.readouterr().out


def retried(arguments: Any) -> int:
    """Work that ends its worker where it is asked for too much."""
    if arguments > 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return arguments


def test_a_job_that_cost_workers_is_asked_for_otherwise(nodes: Callable[[], None]) -> None:
    with Cluster(RAY) as cluster:
        job = Job("one", 3, retry_arguments=(2, 1))
        assert list(cluster(retried, [job])) == [(0, 1)]


def test_a_worker_of_other_code_is_refused(
    nodes: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(home: Path, libraries: Sequence[str]) -> dict[str, str]:
        return facts(home, libraries) | {"medprobe's code": "other"}

    monkeypatch.setattr(ray_cluster, "facts", other)
    with Cluster(RAY) as cluster, pytest.raises(BadInput, match=r"code is .+, and other"):
        list(cluster(abs, [Job("one", 1)]))


def no_pickle(argument: int) -> Any:
    """Work whose result no pickle holds."""
    return (number for number in range(argument))


def no_import() -> None:
    """What a worker that lacks a package does with its work."""
    raise ModuleNotFoundError("No module named 'lacking'")


class Lacking:
    """Work that no worker can take up."""

    def __reduce__(self) -> Any:
        return no_import, ()

    def __call__(self, argument: Any) -> None:
        """Do nothing."""


def test_what_workers_cannot_take_or_give_is_named(nodes: Callable[[], None]) -> None:
    with Cluster(RAY) as cluster:
        with pytest.raises(BadInput, match=r"one: failed \(TypeError: .* 3 times, at last on"):
            list(cluster(no_pickle, [Job("one", 1)]))
        with pytest.raises(BadInput, match=r"no worker starts .*No module named 'lacking'"):
            list(cluster(Lacking(), [Job("one", 1)]))


def test_what_a_broken_off_call_left_is_not_waited_for(nodes: Callable[[], None]) -> None:
    jobs = [Job(f"part {number}", number) for number in range(9)]
    with Cluster(RAY) as cluster:
        next(iter(cluster(abs, jobs)))
        assert sorted(cluster(abs, jobs[7:])) == [(0, 7), (1, 8)]


def gpus(_: Any) -> str:
    """Work: the GPUs that Ray gave."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "")


def test_a_worker_whose_model_is_spread_has_all_gpus_of_a_node(nodes: Callable[[], None]) -> None:
    for device, number in (("spread", 2), ("auto", 1), ("cpu", 0)):
        engine = EngineParams(device=device, executor="ray")
        with Cluster(engine) as cluster:
            [(_, given)] = cluster(gpus, [Job("one", 1)])
        assert len([*filter(None, given.split(","))]) == number


def test_an_address_without_a_head_and_too_small_nodes_are_refused_at_once(
    nodes: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    with Cluster(RAY) as cluster, pytest.raises(BadInput, match="no node has 64 CPUs"):
        list(cluster(abs, [Job("one", 1)]))
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and nothing listens there
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(BadInput, match=f"{address}: no Ray cluster"):
            ray_cluster.connect(address)


def test_the_project_folder_is_that_of_the_nodes(tmp_path: Path) -> None:
    """Another folder at the same path is told by its number."""
    here = facts(tmp_path, ["click"])
    assert here == facts(tmp_path, ["click"])
    tmp_path.rename(tmp_path.with_name("before"))
    assert facts(tmp_path, ["click"]) != here
    tmp_path.mkdir()
    assert facts(tmp_path, ["click"]) != here


def test_other_processes_can_import_what_these_tests_send() -> None:
    """Where Ray is not installed, the other tests do not run, and nothing else would say so."""
    command = [sys.executable, "-c", "import pickle, sys; pickle.load(sys.stdin.buffer)"]
    work = pickle.dumps(Counted(abs, Path(), {}))
    environment = os.environ | {"PYTHONPATH": WORKERS_PATH}
    subprocess.run(command, env=environment, input=work, check=True, cwd="/")


def test_ray_is_imported_where_it_is_asked_for_and_named_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = f"import sys, medprobe.cli, {ray_cluster.__name__}; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    monkeypatch.setitem(sys.modules, "ray", None)
    with Cluster(RAY) as cluster, pytest.raises(BadInput, match="Ray is not installed"):
        list(cluster(abs, [Job("one", 1)]))


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
