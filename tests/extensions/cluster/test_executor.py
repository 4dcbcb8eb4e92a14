"""The executor: what a worker of a cluster does, tried in this process and without Ray."""

import errno
import os
import pickle
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from extensions.cluster.fake_ray import Ray
from medprobe.core.errors import BadInput
from medprobe.core.executor import Job, in_this_process
from medprobe.core.params import EngineParams
from medprobe.core.parts import fingerprint
from medprobe.engine.inspection import MissingHead, inspect
from medprobe.extensions.cluster import nodes, run
from medprobe.extensions.cluster.executor import Cluster
from medprobe.extensions.cluster.files import pack, unpack
from medprobe.extensions.cluster.nodes import Needs
from medprobe.extensions.cluster.staff import Staff, WorkerState
from medprobe.extensions.cluster.worker import Answer, Worker, libraries, versions

RAY = EngineParams(executor="ray")


def read_and_write(folder: str) -> str:
    """Work: the texts below a folder in one, and in a file; the folder's files are gone then."""
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    text = "".join(file.read_text() for file in files)
    for file in files:
        file.unlink()
    Path("made").mkdir(exist_ok=True)
    Path("made/text").write_text(text)
    return text


def misfit(argument: object) -> object:
    """Work that ends by an error which no pickle holds."""

    class Unknown(Exception):
        pass

    raise Unknown("what happened")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project's folder with something to read; environment and folder are as before at the
    end."""
    (tmp_path / "read/deep").mkdir(parents=True)
    (tmp_path / "read/a").write_text("one ")
    (tmp_path / "read/deep/b").write_text("two")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def start_worker(home: Path, work: Callable[..., object] = read_and_write) -> Worker:
    worker = Worker(str(home), 1, True)
    assert worker.hello(versions([]), pickle.dumps(work)).device
    return worker


def end(worker: Worker) -> None:
    """What the end of a worker's process does."""
    os.chdir(worker.home)
    worker.guard.close()


JOB = Job("one", "read", (Path("read"),), (Path("made"),))


def test_what_is_in_the_project_is_linked_and_stays_there(home: Path) -> None:
    stamps = {"read": fingerprint([home / "read"])}
    worker = start_worker(home)
    answer = worker.do(JOB, stamps)
    assert (answer.result, answer.wrote) == ("one two", ({"text": b"one two"},))
    assert pack(home / "read") == {"a": b"one ", "deep/b": b"two"}
    assert not (home / "made").exists()
    folder = worker.folder
    end(worker)
    while folder.exists():
        os.sched_yield()


def test_what_is_missing_or_differs_is_asked_for_and_sent(home: Path, tmp_path: Path) -> None:
    stamps, contents = {"read": fingerprint([home / "read"])}, pack(home / "read")
    (tmp_path / "nowhere").mkdir()
    for folder in (tmp_path / "nowhere", home):
        (home / "read/a").write_text("another ")
        worker = start_worker(folder)
        assert worker.do(JOB, stamps) == Answer(lacks=("read",))
        assert worker.do(JOB, stamps, ["read"], contents).result == "one two"
        end(worker)
    assert (home / "read/a").read_text() == "another "


def test_what_is_packed_is_unpacked(home: Path) -> None:
    for path in (home / "read", home / "read/a"):
        unpack(pack(path), home / "copy")
        assert pack(home / "copy") == pack(path)


def test_a_worker_of_another_version_takes_no_work(home: Path) -> None:
    worker, expected = Worker(str(home), 1, True), {**versions(["click"]), "click": "0"}
    hello = worker.hello(expected, b"no pickle")
    assert not hello.device and worker.work is None and not hasattr(worker, "folder")
    assert hello.versions == versions(["click"]) != expected


def test_versions_are_those_of_the_lock(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("# what computes\nclick==8.5.1\nnowhere-to-be==1 ; x\n\n")
    names = libraries(tmp_path / "lock")
    assert names == ["click", "nowhere-to-be", "ray"]
    assert versions(names)["nowhere-to-be"] == "none"


def test_errors_come_back(home: Path, tiny_model: Callable[[str], Path]) -> None:
    worker = start_worker(home, misfit)
    error = worker.do(Job("one", 1), {}).error
    assert isinstance(error, RuntimeError) and str(error) == "Unknown: what happened"
    end(worker)
    for fault in (
        BadInput("here", "a problem", "a remedy"),
        MissingHead(inspect(tiny_model("encoder")), "no head"),
    ):
        again = pickle.loads(pickle.dumps(fault))
        assert (type(again), str(again), vars(again)) == (type(fault), str(fault), vars(fault))


def test_what_a_node_holds() -> None:
    node = {"CPU": 8.0, "GPU": 2.0, "memory": 64.0}
    assert Needs(2, 0, 10).fit(node) == 4
    assert Needs(2, 1, 10).fit(node) == 2
    assert Needs(1, 0, 30).fit(node) == 2
    assert Needs(1, 1, 1).fit({"CPU": 8.0, "memory": 64.0}) == 0


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    two = [Job("one", "1"), Job("two", "2")]
    assert list(in_this_process(int, two)) == [(0, 1), (1, 2)]
    with Cluster(RAY) as cluster:
        assert not list(cluster(int, []))
        with pytest.raises(BadInput, match=r"Ray is not installed; pip install 'medprobe\[ray\]'"):
            list(cluster(int, two))


@pytest.fixture
def ray(home: Path, monkeypatch: pytest.MonkeyPatch) -> Ray:
    fake = Ray()
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


def jobs(*arguments: int) -> list[Job]:
    return [Job(f"part {argument}", argument) for argument in arguments]


def test_a_worker_has_its_next_job_before_it_ends_one(ray: Ray) -> None:
    with Cluster(RAY) as cluster:
        assert dict(cluster(abs, jobs(*range(9)))) == {i: i for i in range(9)}
    assert max(ray.held) == 2
    assert ray.held[-1] == 1  # the last job waits behind no other


def test_a_worker_that_was_late_is_there_for_the_next_call(ray: Ray) -> None:
    ray.in_time = 1
    with Cluster(RAY) as cluster:
        assert len(list(cluster(abs, jobs(1, 2)))) == 2
        ray.answers |= ray.late
        list(cluster(abs, jobs(*range(10))))
        assert all(worker.jobs for worker in cluster.staff.active)
        assert len(ray.actors) == len(cluster.staff.active) == 2


def test_of_a_lost_workers_jobs_only_the_one_it_was_at_is_tried(ray: Ray) -> None:
    ray.deadly = {0}
    with (
        Cluster(RAY) as cluster,
        pytest.raises(BadInput, match="part 0: its worker was lost 3 times"),
    ):
        list(cluster(abs, jobs(*range(9))))
    assert ray.begun[0] == 3 and set(ray.begun.values()) <= {1, 3}


def test_a_loss_is_printed_with_the_part_that_is_done_again(
    ray: Ray, capsys: pytest.CaptureFixture[str]
) -> None:
    ray.deadly, ray.deaths = {0}, 2
    with Cluster(RAY) as cluster:
        assert len(list(cluster(abs, jobs(*range(9))))) == 9
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["part 0: its worker was lost on here; this part is done again"] * 2


def test_a_job_that_cost_workers_is_asked_for_otherwise(ray: Ray) -> None:
    ray.deadly = {-1, -2}
    with Cluster(RAY) as cluster:
        assert list(cluster(abs, [Job("one", -1, retry_arguments=(-2, -3))])) == [(0, 3)]
    assert len(cluster.staff.former) == 3


def test_what_a_broken_off_call_left_is_not_waited_for(ray: Ray) -> None:
    with Cluster(RAY) as cluster:
        next(cluster(abs, jobs(*range(9))))
        assert sorted(cluster(abs, jobs(7, 8))) == [(0, 7), (1, 8)]


def test_a_worker_of_another_version_is_refused(ray: Ray) -> None:
    ray.other = {"Python": "2.7"}
    with (
        Cluster(RAY) as cluster,
        pytest.raises(BadInput, match=r"a worker on here: Python is 2\.7, and 3\.\S+ here"),
    ):
        list(cluster(abs, jobs(1)))


def test_a_result_that_no_pickle_holds_costs_no_worker(ray: Ray) -> None:
    ray.unpicklable = {0}
    with (
        Cluster(RAY) as cluster,
        pytest.raises(
            BadInput, match=r"part 0: failed \(TypeError: cannot pickle\) 3 times, at last on here"
        ),
    ):
        list(cluster(abs, jobs(*range(9))))
    assert len(ray.actors) == 2


def no_room(argument: int) -> int:
    """Work on a disk that is full."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_at_a_worker_is_named_as_such(home: Path, ray: Ray) -> None:
    worker = start_worker(home)

    def fill(files: object, path: object) -> None:
        try:
            no_room(0)
        except OSError as error:
            raise RuntimeError("a library's") from error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("medprobe.extensions.cluster.worker.unpack", fill)
        error = worker.do(JOB, {"read": "stamp"}, ["read"], {}).error
    end(worker)
    assert isinstance(error, OSError) and error.errno == errno.ENOSPC
    with Cluster(RAY) as cluster, pytest.raises(BadInput) as problem:
        list(cluster(no_room, jobs(0)))
    message = "part 0: the disk was full 3 times, at last on here; make room there, where temporary"
    assert str(problem.value).startswith(message)
    assert len(ray.actors) == 1


def test_a_node_where_no_worker_starts_ends_nothing_while_others_start(
    ray: Ray, capsys: pytest.CaptureFixture[str]
) -> None:
    ray.node["CPU"] = 1.0
    ray.hosts, ray.broken = {"1": "bad", "2": "good"}, {"1"}
    with Cluster(RAY) as cluster:
        assert len(list(cluster(abs, jobs(*range(9))))) == 9
    started = [actor.node for actor in ray.actors]
    assert started.count("2") == 1
    assert started.count("1") <= 3, "two that Ray chose, and one before the pause"
    reason = "(ModuleNotFoundError: no medprobe)"
    assert f"a worker did not start {reason}; nodes are tried one" in capsys.readouterr().err


def test_a_node_is_tried_three_times_with_a_pause_between(
    ray: Ray, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(nodes, "time", SimpleNamespace(monotonic=lambda: now[0]))
    ray.hosts = {"1": "bad", "2": "good"}
    cluster_nodes = nodes.Nodes(Needs(1, 0, 2**30))
    assert cluster_nodes.places([]) == [""] * 4
    cluster_nodes.record_failure(WorkerState(None, None), "why")
    assert cluster_nodes.places([]) == ["1", "2"], "one on each, until a worker is ready there"
    good = WorkerState(None, None, node="2", since=1.0)
    for _ in range(3):
        assert cluster_nodes.places([good]) == ["1", "2"]
        cluster_nodes.record_failure(WorkerState(None, None, node="1"), "why")
        assert cluster_nodes.places([good]) == ["2"]
        now[0] += nodes.PAUSE
    assert cluster_nodes.places([good]) == ["2"]
    assert capsys.readouterr().err.splitlines()[1:] == [
        "bad: a worker did not start, 1 of 3 tries (why)",
        "bad: a worker did not start, 2 of 3 tries (why)",
        "bad: a worker did not start, 3 of 3 tries (why); this stage starts no more workers there",
    ]


def test_where_workers_start_on_no_node_all_are_named(
    ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray.hosts, ray.broken = {"1": "bad", "2": "worse"}, {"1", "2"}
    monkeypatch.setattr(nodes, "PAUSE", 0)
    message = (
        r"no worker starts on bad, worse \(ModuleNotFoundError: no medprobe\); install the same"
    )
    with Cluster(RAY) as cluster, pytest.raises(BadInput, match=message):
        list(cluster(abs, jobs(*range(9))))


def test_what_waits_behind_a_silent_worker_goes_to_another(
    ray: Ray, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "SILENCE", 0)
    ray.hanging = {0}
    with Cluster(RAY) as cluster:
        results = cluster(abs, jobs(*range(4)))
        numbers = [next(results)[0] for _ in range(3)]
        assert sorted(numbers) == [1, 2, 3]
        assert len(ray.cancelled) == 1
        ray.hanging = set()
        assert list(results) == [(0, 0)]
    assert ray.begun == {0: 1, 1: 1, 2: 1, 3: 1}
    message = (
        "waiting for part 0, for 0 s at process 7 on here; if that hangs, end it, and the part is"
    )
    assert message in capsys.readouterr().err


def test_without_the_head_what_workers_finish_is_still_taken(
    ray: Ray, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    silence = property(lambda self: float(len(ray.begun) > 2) * 20)
    monkeypatch.setattr(nodes.Nodes, "silence", silence)
    with Cluster(RAY) as cluster:
        assert len(list(cluster(abs, jobs(*range(9))))) == 9
    lines = capsys.readouterr().err.splitlines()
    message = (
        "Ray cluster: the head does not answer; results are still taken, and finished parts are"
    )
    assert lines == [f"{message} kept"]
    monkeypatch.setattr(nodes.Nodes, "silence", 46)
    with Cluster(RAY) as cluster, pytest.raises(BadInput, match="again: finished parts are kept"):
        list(cluster(abs, jobs(1)))


@pytest.mark.parametrize(
    ("stderr", "problem"),
    [
        ("ray.exceptions.AuthenticationError: no", "refuses the token; set RAY_AUTH_MODE and"),
        ("", r"no Ray cluster \(not connected\); start one, `ray start --head`"),
    ],
)
def test_a_refused_token_is_no_missing_cluster(
    ray: Ray, monkeypatch: pytest.MonkeyPatch, stderr: str, problem: str
) -> None:
    def refuse(**_: object) -> None:
        raise ConnectionError("not connected")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse, raising=False)
    check = subprocess.CompletedProcess([], 1, stderr=stderr)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: check)
    with Cluster(RAY) as cluster, pytest.raises(BadInput, match=problem):
        list(cluster(abs, jobs(1)))


def test_an_address_without_a_head_is_refused_at_once(
    ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and nothing listens there
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        engine = EngineParams(executor="ray", address=address)
        with Cluster(engine) as cluster, pytest.raises(BadInput, match=f"{address}: no Ray cl"):
            list(cluster(abs, jobs(1)))


def test_workers_ask_for_a_gibibyte_and_for_their_inputs(ray: Ray) -> None:
    with Cluster(RAY) as cluster:
        list(cluster(abs, jobs(1)))
        assert ray.requirements == {"num_cpus": 1, "num_gpus": 0, "memory": 2**30}
        ray.node["memory"] = 2**30 - 1
        with pytest.raises(BadInput, match="no node has"):
            list(cluster(abs, jobs(2)))


def test_what_workers_did_is_said_of_each(ray: Ray) -> None:
    with Cluster(RAY) as cluster:
        list(cluster(abs, jobs(*range(9))))
    total, *each = cluster.staff.costs()
    assert re.fullmatch(r"cpu: 2 workers, 9 jobs, 0 s, 45 tokens, busy \d+%", total)
    assert [line[:17] for line in each] == ["worker 1 on here:", "worker 2 on here:"]
    assert cluster.staff.devices() == "cpu"


def test_of_several_devices_it_is_said_which_computed_what() -> None:
    gpu_worker = WorkerState(None, None, device="H100", since=1.0, jobs=["part 1"])
    cpu_worker = WorkerState(None, None, device="cpu", since=1.0, jobs=["part 2", "part 0"])
    never = WorkerState(None, None, device="", since=0.0)
    assert Staff([gpu_worker, never], [cpu_worker]).devices() == "H100: part 1; cpu: part 0, part 2"
    assert Staff([gpu_worker], [never]).devices() == "H100"
    assert Staff().devices() == "unknown"


def test_nothing_of_ray_is_imported_before_it_is_asked_for() -> None:
    modules = "medprobe.cli, medprobe.extensions.cluster.executor"
    code = f"import sys, {modules}; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ, check=False).returncode == 0
