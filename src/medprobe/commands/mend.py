"""What a kill or a full disk left half-made, mended before anything else runs."""

import json
import sys
from itertools import chain
from pathlib import Path
from typing import Final

import psutil

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing, tidy
from medprobe.tracking import lineage

CLAIMS: Final = Path(".dvc/tmp/rwlock")  # which process reads and writes what, by DVC
RUNS: Final = Path(".dvc/cache/runs")  # what stages made before, a folder for each of their inputs


def check_lock() -> None:
    """Raise BadInput where dvc.lock was cut, for who only reads it."""
    if lineage.LOCK.is_file():
        text = lineage.LOCK.read_text(encoding="utf-8", errors="replace")
        if lineage.whole(text) != text or not text:
            problem = "cut, by a kill or a full disk, or being written"
            raise BadInput(lineage.LOCK, problem, "`medprobe repro` mends it")


def mend() -> None:
    """Remove what a kill left half-made, and mend, and say so, what it left of the files that DVC
    writes in place: of dvc.lock it takes the record that was cut off, so that the stage is looked
    at again, and those whose records are lost; what is in DVC's cache is not computed again."""
    below = [root.rglob(".*") for root in (Path("outputs"), places.METRICS)]
    tidy(chain(Path().glob(".*"), *below))
    if lineage.LOCK.is_file():
        text = lineage.LOCK.read_text(encoding="utf-8", errors="replace")
        if (kept := lineage.whole(text)) != text or not text:
            with replacing(lineage.LOCK) as path:
                path.write_text(kept, encoding="utf-8")
            if not kept:
                lineage.LOCK.unlink()
            print(f"{lineage.LOCK}: was cut by a kill or a full disk; mended", file=sys.stderr)
    for folder in RUNS.glob("*/*"):
        for scratch in folder.glob(".*.tmp"):
            scratch.unlink()
        if not any(folder.iterdir()):  # where DVC would look for the newest of none, and crash
            folder.rmdir()
    _free()


def _free() -> None:
    """Drop the claims of processes that are dead. DVC does so itself, but takes for alive what was
    killed and has no parent that waits for it."""
    try:
        claims = json.loads(CLAIMS.read_bytes())
    except FileNotFoundError:
        return
    except ValueError:
        CLAIMS.unlink()
        print(f"{CLAIMS}: was cut by a kill or a full disk; removed", file=sys.stderr)
        return
    write = {path: one for path, one in claims.get("write", {}).items() if _lives(one["pid"])}
    read = {
        path: living
        for path, readers in claims.get("read", {}).items()
        if (living := [one for one in readers if _lives(one["pid"])])
    }
    kept = {"write": write, "read": read}
    if kept != claims:
        with replacing(CLAIMS) as path:
            path.write_text(json.dumps(kept), encoding="utf-8")


def _lives(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
