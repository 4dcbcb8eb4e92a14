"""Repair the project after a killed process or a full disk."""

import json
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

import psutil

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.files import SCRATCH, remove_leftovers
from medprobe.tracking import lineage

CLAIMS: Final = Path(".dvc/tmp/rwlock")  # which process reads and writes what, by DVC
RUNS: Final = Path(".dvc/cache/runs")  # DVC's run cache: a folder for each set of inputs


def repair() -> None:
    """Remove scratch files, and what of DVC's records DVC would fail at.

    Raises:
        BadInput: if dvc.lock is incomplete.
    """
    in_outputs = [folder.rglob(f"{SCRATCH}*") for folder in (Path("outputs"), places.METRICS)]
    at_hand = [folder.glob(f"{SCRATCH}*") for folder in (Path(), Path("mlruns"))]
    remove_leftovers(chain(*at_hand, *in_outputs))
    for folder in RUNS.glob("*/*"):
        with suppress(OSError):  # it is not empty
            folder.rmdir()
    drop_stale_claims()
    check_lock()


def drop_stale_claims() -> None:
    """Delete DVC's record of who reads and writes what, if none of these processes runs.

    DVC drops the claims of dead processes itself. But it cannot read a record that was cut, and it
    takes a killed process for alive if another process has its number now, or if no parent has
    collected it.
    """
    try:
        claims = json.loads(CLAIMS.read_bytes())
    except FileNotFoundError:
        return
    except ValueError:
        claims = {}
    holders = [*claims.get("write", {}).values(), *chain(*claims.get("read", {}).values())]
    written = CLAIMS.stat().st_mtime
    if not any(_runs_since(holder["pid"], written) for holder in holders):
        CLAIMS.unlink()


def _runs_since(process_id: int, time: float) -> bool:
    """Whether this process runs, and did before this time."""
    try:
        process = psutil.Process(process_id)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= time
    except psutil.NoSuchProcess:
        return False


def check_lock() -> None:
    """Raise BadInput if dvc.lock is incomplete."""
    if lineage.LOCK.is_file():
        text = lineage.LOCK.read_text(encoding="utf-8", errors="replace")
        if not lineage.is_whole(text):
            problem = "incomplete, after a killed process or a full disk, or still being written"
            remedy = "if no dvc is running, delete it: DVC restores the results from its cache"
            raise BadInput(lineage.LOCK, problem, remedy)
