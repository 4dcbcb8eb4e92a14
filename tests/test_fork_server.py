"""What runs in a fork of the server is what a process of its own would have done."""

import shutil
import subprocess
from pathlib import Path

import psutil
import pytest
from filelock import FileLock

from medprobe import fork_server
from medprobe.testing.project import ROOT, environment


def without_server() -> dict[str, str]:
    return environment() | {fork_server.SOCKET: ""}


def test_a_command_has_the_streams_and_status_of_its_caller(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def outcome(*command: str, env: dict[str, str]) -> tuple[int, str, str]:
        process = subprocess.run(
            ["medprobe", *command],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        return process.returncode, process.stdout, process.stderr

    assert fork_server.run("medprobe", ["--version"], environment()) == 0
    assert capfd.readouterr().out.startswith("medprobe, version")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    for command in (["list", "papers"], ["build", "--benchmark", "none"], ["nonsense"]):
        assert outcome(*command, env=environment()) == outcome(*command, env=without_server())


@pytest.mark.parametrize(
    ("script", "variables"),
    [
        ("medprobe", {fork_server.SOCKET: ""}),
        ("medprobe", {fork_server.SOCKET: "/none"}),
        ("medprobe", {"OMP_NUM_THREADS": "7"}),  # which the server read when it imported PyTorch
        ("python", {}),
    ],
)
def test_what_the_server_would_run_differently_is_left_to_a_process_of_its_own(
    script: str, variables: dict[str, str]
) -> None:
    assert fork_server.run(script, ["--help"], environment() | variables) is None


def test_a_killed_client_takes_its_command_along(tmp_path: Path) -> None:
    """The command waits for a lock that this test holds."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    (tmp_path / "outputs/parts").mkdir(parents=True)
    with FileLock(tmp_path / "outputs/parts/.repro.lock"):
        client = subprocess.Popen(
            ["medprobe", "repro"],
            cwd=tmp_path,
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert client.stderr
        assert "waiting" in client.stderr.readline()
        client.kill()
        assert client.stderr.read() == ""  # at its end: nobody holds the other end any more


def test_a_command_that_the_system_kills_says_what_to_do(tmp_path: Path) -> None:
    """As where memory runs out: its process gets SIGKILL, its client does not."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    (tmp_path / "outputs/parts").mkdir(parents=True)
    with FileLock(tmp_path / "outputs/parts/.repro.lock"):
        client = subprocess.Popen(
            ["medprobe", "repro"],
            cwd=tmp_path,
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert client.stderr
        assert "waiting" in client.stderr.readline()
        forks = [
            process
            for process in psutil.Process().children(recursive=True)
            if process.cwd() == str(tmp_path) and process.pid != client.pid
        ]
        forks[0].kill()
        message = client.stderr.read()
    assert client.wait() == 137
    assert message.startswith(
        "medprobe repro: killed from outside, as the system does where memory"
    )
    assert message.count("\n") == 1
