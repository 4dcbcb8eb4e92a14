"""Repair the project after a killed process or a full disk."""

import json
import os
import re
import sys
import tempfile
import time
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

import psutil

from medprobe.core import dvc_records, places
from medprobe.core.errors import BadInput
from medprobe.core.files import SCRATCH, remove_leftovers

CLAIMS: Final = Path(".dvc/tmp/rwlock")  # which process reads and writes what, by DVC
STAGE: Final = "DVC_STAGE"  # the variable in which DVC names a stage for its command
POLL: Final = 0.2  # seconds
RUNS: Final = Path(".dvc/cache/runs")  # DVC's run cache: a folder for each set of inputs


def repair() -> None:
    """Stop what a killed process left running, and remove what it left behind.

    These are stages whose DVC was killed, scratch folders, and what of DVC's records DVC would fail
    at.

    Raises:
        BadInput: if dvc.lock is incomplete.
    """
    stop_orphans()
    in_outputs = [folder.rglob(f"{SCRATCH}*") for folder in (Path("outputs"), places.METRICS)]
    folders = (Path(), Path("mlruns"), Path(tempfile.gettempdir()))
    remove_leftovers(chain(*in_outputs, *(folder.glob(f"{SCRATCH}*") for folder in folders)))
    for folder in RUNS.glob("*/*"):
        with suppress(OSError):  # it is not empty
            folder.rmdir()
    if not claiming_processes():
        CLAIMS.unlink(missing_ok=True)
    check_lock()


def stop_orphans() -> None:
    """Kill the stages of this project whose DVC was killed.

    A stage runs in the project's folder, and DVC names it in a variable. DVC is the first of its
    parents without this variable, by its command or by what it claims.
    """
    folder = str(Path.cwd())
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if STAGE not in process.environ() or process.cwd() != folder:
                continue
            parents = (parent for parent in process.parents() if STAGE not in _variables(parent))
            parent = next(parents, None)
            is_dvc = parent and re.search(r"\b(dvc|medprobe)\b", " ".join(parent.cmdline()))
            if not is_dvc and (not parent or parent.pid not in claiming_processes()):
                process.kill()


def _variables(process: psutil.Process) -> dict[str, str]:
    """The environment of a process; empty if it is another user's."""
    try:
        return dict(process.environ())
    except psutil.AccessDenied:
        return {}


def wait_for_others(group: int) -> bool:
    """Wait until DVC runs no stage here, except in a process group; return whether one ran."""
    waited = False
    while others := {pid: cmd for pid, cmd in claiming_processes().items() if _group(pid) != group}:
        for pid, command in others.items():
            line = f"process {pid} (`{command}`) runs stages here; waiting until it ends"
            print(line, file=sys.stderr)
            while _runs_since(pid, time.time()):
                time.sleep(POLL)
        waited = True
    return waited


def _group(process_id: int) -> int:
    """The group of a process, or 0."""
    try:
        return os.getpgid(process_id)
    except ProcessLookupError:
        return 0


def claiming_processes() -> dict[int, str]:
    """Return the processes that run and that claim to read or write a path, with their commands.

    DVC drops the claims of dead processes itself. But it cannot read a record that was cut, and it
    takes a killed process for alive if another process has its number now, or if no parent has
    collected it.
    """
    try:
        claims = json.loads(CLAIMS.read_bytes())
        written = CLAIMS.stat().st_mtime
    except (FileNotFoundError, ValueError):
        return {}
    claimed = [*claims.get("write", {}).values(), *chain(*claims.get("read", {}).values())]
    commands = {claim["pid"]: claim["cmd"] for claim in claimed}
    return {pid: cmd for pid, cmd in commands.items() if _runs_since(pid, written)}


def _runs_since(process_id: int, time: float) -> bool:
    """Whether this process runs, and did before this time."""
    try:
        process = psutil.Process(process_id)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= time
    except psutil.NoSuchProcess:
        return False


def check_lock() -> None:
    """Raise BadInput if dvc.lock is incomplete."""
    if dvc_records.LOCK.is_file():
        text = dvc_records.LOCK.read_text(encoding="utf-8", errors="replace")
        if not dvc_records.is_whole(text):
            problem = "incomplete, after a killed process or a full disk, or still being written"
            remedy = "if no dvc is running, delete it: DVC restores the results from its cache"
            raise BadInput(dvc_records.LOCK, problem, remedy)
