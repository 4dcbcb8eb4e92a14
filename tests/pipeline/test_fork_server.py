"""What runs in a fork of the server is what a process of its own would have done."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from filelock import FileLock

from helpers.project import environment
from medprobe.pipeline import fork_server
from medprobe.pipeline.init import params_text


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
    (tmp_path / "params.yaml").write_text(params_text())
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
    (tmp_path / "params.yaml").write_text(params_text())
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
    (tmp_path / "params.yaml").write_text(params_text())
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


def test_a_server_and_its_group_end_with_the_process_that_started_it(tmp_path: Path) -> None:
    """Even if the keeper of the group was killed; and nothing is left in a folder."""
    code = """
import os, subprocess, sys
from medprobe.pipeline import fork_server
stage = subprocess.Popen(["sleep", "1000"], process_group=0)
with fork_server.start({**os.environ, fork_server.SOCKET: ""}, stage.pid):
    print(stage.pid, flush=True)
    os.kill(os.getpid(), 9)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    stage = psutil.Process(int(process.stdout.readline()))
    process.stdout.read()  # to its end: the server and the group have let go of it
    assert not stage.is_running() or stage.status() == psutil.STATUS_ZOMBIE
    assert not list(tmp_path.iterdir())
    process.wait()


def test_a_library_that_is_installed_later_is_not_that_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {**environment(), fork_server.SOCKET: "", "PYTHONPATH": str(tmp_path)}
    with fork_server.start(variables) as served:
        assert fork_server.run("medprobe", ["--version"], served) == 0
        (tmp_path / "polars-0.0.1.dist-info").mkdir()
        assert fork_server.run("medprobe", ["--version"], served) is None


def test_the_programs_of_an_environment_that_is_not_activated_come_first() -> None:
    folders = {"PATH": "/usr/bin:/bin", fork_server.SOCKET: "elsewhere"}
    with fork_server.start(folders) as variables, fork_server.start(variables) as again:
        assert variables["PATH"] == f"{Path(sys.executable).parent}:/usr/bin:/bin"
        assert again["PATH"] == variables["PATH"]


@pytest.mark.dvc
def test_dvc_repeats_no_advice_on_git(tmp_path: Path) -> None:
    """In a fork of the server, and in a process of its own."""
    (tmp_path / "dvc.yaml").write_text("stages: {one: {cmd: date > one, outs: [one]}}\n")
    for command in (["git", "init", "--quiet"], ["dvc", "init", "--quiet"]):
        subprocess.run(command, cwd=tmp_path, env=environment(), check=True)
    plain = [sys.executable, "-m", "dvc"]
    code = "import sys; from medprobe.pipeline import fork_server; import os; "
    code += "sys.exit(fork_server.run('dvc', sys.argv[1:], os.environ))"
    printed = []
    for program in (plain, [*fork_server.DVC], [sys.executable, "-c", code]):
        process = subprocess.run(
            [*program, "repro", "--force"],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        printed.append(process.stdout)
    assert ["To track the changes with git" in text for text in printed] == [True, False, False]
    assert all("Running stage 'one'" in text for text in printed)
