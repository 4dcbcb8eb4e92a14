"""The executor of this machine's processes, which import this file: nothing large stands here."""

import os
import signal
import subprocess
import sys
from multiprocessing import active_children
from pathlib import Path

import pytest

from medprobe.core import executor
from medprobe.core.errors import BadInput, quote, without_quotes
from medprobe.core.executor import Job, in_job_order, in_processes, in_this_process


def square(number: int) -> tuple[int, int]:
    return number**2, os.getpid()


def refuse(number: int) -> None:
    raise BadInput(f"job {number}", f"{quote('fever')} is refused", "leave it")


def test_processes_do_what_one_process_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors come back as they are, with no more of the data than they may quote here."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    numbers = [Job(f"job {number}", number) for number in range(5)]
    assert {pid for _, (_, pid) in in_processes(square, numbers)} == {os.getpid()}  # soon done
    monkeypatch.setattr(executor, "START_SECONDS", 0)
    elsewhere = [*in_job_order(in_processes(square, numbers))]
    here = [*in_job_order(in_this_process(square, numbers))]
    assert [(at, answer[0]) for at, answer in elsewhere] == [(at, answer[0]) for at, answer in here]
    assert os.getpid() not in {answer[1] for _, answer in elsewhere}
    with (
        without_quotes(),
        pytest.raises(BadInput, match=r"job \d: a text of 5 characters is refused"),
    ):
        list(in_processes(refuse, numbers))
    assert not active_children()
    assert [*in_processes(square, numbers[:1])] == [(0, (0, os.getpid()))]  # one needs no other


@pytest.mark.skipif(sys.platform != "linux", reason="only there a process can ask for it")
def test_processes_end_with_the_one_they_work_for(tmp_path: Path) -> None:
    """It is killed while both are at work; whoever held its output then lets go of it."""
    program = """
import os, signal
from medprobe.core import executor
from medprobe.core.executor import Job, in_processes
executor.START_SECONDS = 0
os.sched_getaffinity = lambda pid: {0, 1}
def work(number):
    print("at work", flush=True)
    if number:
        os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()
if __name__ == "__main__":
    list(in_processes(work, [Job("a", 0), Job("b", 1)]))
"""
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, str(tmp_path / "program.py")]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert child.returncode == -signal.SIGKILL and "at work" in child.stdout
