"""Warm starts: what runs in a fork of the server is what a process of its own would have done."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from medprobe import warm
from project import ROOT, SMALL, Project, environment

STAGES = [
    "check",
    "build --benchmark medlama",
    "validate --benchmark medlama",
    "train --model taught",
    "rewire --model taught --set set-0",
    "probe --model taught --method contrastive --benchmark medlama",
]


@pytest.fixture(scope="module")
def served() -> Iterator[dict[str, str]]:
    with warm.server(environment()) as inside:
        yield inside


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.replace(**SMALL)
    made.works("medprobe", "sample")
    return made


def test_outputs_are_to_the_byte_those_of_a_cold_start(
    project: Project, served: dict[str, str]
) -> None:
    for stage in STAGES:
        project.works("medprobe", *stage.split())
    cold = outputs(project.folder)
    project.works("git", "clean", "-qfdX", "outputs")
    assert not outputs(project.folder)
    for stage in STAGES:
        project.works("medprobe", *stage.split(), **{warm.SOCKET: served[warm.SOCKET]})
    assert outputs(project.folder) == cold
    assert len(cold) > 20


def outputs(folder: Path) -> dict[str, bytes]:
    """All files that stages make, apart from when they were made."""
    timed = re.compile(rb'"(begin|end)": \d+')
    files = [path for path in (folder / "outputs").rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): timed.sub(b"", path.read_bytes())
        for path in files
        if path.name != ".lock"
    }


def test_a_command_has_the_streams_and_status_of_its_caller(
    tmp_path: Path, served: dict[str, str]
) -> None:
    def ran(*command: str, env: dict[str, str]) -> tuple[int, str, str]:
        done = subprocess.run(
            ["medprobe", *command], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        return done.returncode, done.stdout, done.stderr

    shutil.copy(ROOT / "params.yaml", tmp_path)
    for command in (["list", "papers"], ["build", "--benchmark", "none"], ["nonsense"]):
        assert ran(*command, env=served) == ran(*command, env=environment())


def test_what_is_not_served_is_left_to_a_cold_start(served: dict[str, str]) -> None:
    assert warm.run("medprobe", ["--help"], environment()) is None
    assert warm.run("medprobe", ["--help"], served | {"OMP_NUM_THREADS": "7"}) is None
    assert warm.run("python", ["--version"], served) is None
    assert warm.run("medprobe", ["--help"], served | {warm.SOCKET: "/none"}) is None


def test_a_killed_client_takes_its_command_along(tmp_path: Path, served: dict[str, str]) -> None:
    """The command waits for a lock that this test holds."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    (tmp_path / "outputs/parts").mkdir(parents=True)
    lock = FileLock(tmp_path / "outputs/parts/.repro.lock")
    with lock:
        waiting = subprocess.Popen(
            ["medprobe", "repro"], cwd=tmp_path, env=served, stderr=subprocess.PIPE, text=True
        )
        assert waiting.stderr
        assert "waiting" in waiting.stderr.readline()
        waiting.kill()
        assert waiting.stderr.read() == ""  # at its end: nobody holds the other end any more


def test_the_server_is_quiet_as_the_package_is() -> None:
    """Variables that the package sets before it imports a library are set in the server too."""
    text = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert dict(re.findall(r'environ\.setdefault\("(\w+)", "(\w+)"\)', text)) == warm.QUIET
