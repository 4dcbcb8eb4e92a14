"""Repair the project after a killed process or a full disk."""

from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.files import SCRATCH, remove_leftovers
from medprobe.tracking import lineage

RUNS: Final = Path(".dvc/cache/runs")  # DVC's run cache: a folder for each set of inputs


def repair() -> None:
    """Remove scratch files and empty folders of DVC's run cache, at which DVC would fail.

    Raises:
        BadInput: if dvc.lock is incomplete.
    """
    in_outputs = [folder.rglob(f"{SCRATCH}*") for folder in (Path("outputs"), places.METRICS)]
    at_hand = [folder.glob(f"{SCRATCH}*") for folder in (Path(), Path("mlruns"))]
    remove_leftovers(chain(*at_hand, *in_outputs))
    for folder in RUNS.glob("*/*"):
        with suppress(OSError):  # it is not empty
            folder.rmdir()
    check_lock()


def check_lock() -> None:
    """Raise BadInput if dvc.lock is incomplete."""
    if lineage.LOCK.is_file():
        text = lineage.LOCK.read_text(encoding="utf-8", errors="replace")
        if not lineage.is_whole(text):
            problem = "incomplete, after a killed process or a full disk, or still being written"
            remedy = "if no dvc is running, delete it: DVC restores the results from its cache"
            raise BadInput(lineage.LOCK, problem, remedy)
