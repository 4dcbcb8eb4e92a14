"""What a kill or a full disk left half-made."""

from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.files import SCRATCH, remove_leftovers
from medprobe.tracking import lineage

RUNS: Final = Path(".dvc/cache/runs")  # what stages made before, a folder for each of their inputs


def mend() -> None:
    """Remove what a kill left half-made: scratch, and folders of DVC's run cache that it made and
    put nothing into, at which DVC fails from then on. Raises BadInput as `check_lock`."""
    below = [folder.rglob(f"{SCRATCH}*") for folder in (Path("outputs"), places.METRICS)]
    remove_leftovers(chain(Path().glob(f"{SCRATCH}*"), *below))
    for folder in RUNS.glob("*/*"):
        with suppress(OSError):  # it is not empty
            folder.rmdir()
    check_lock()


def check_lock() -> None:
    """Raise BadInput where dvc.lock was cut."""
    if lineage.LOCK.is_file():
        text = lineage.LOCK.read_text(encoding="utf-8", errors="replace")
        if not lineage.is_whole(text):
            problem = "cut, by a kill or a full disk, or being written"
            remedy = "where no dvc runs, delete it: DVC takes what was run from its cache"
            raise BadInput(lineage.LOCK, problem, remedy)
