"""How long stages took on this machine: a small file for each command of a stage."""

import os
from typing import Final

from medprobe.core.files import write_whole
from medprobe.core.places import PARTS

FOLDER: Final = PARTS / "seconds"


def write(command: str, seconds: float) -> None:
    """Record how long a command took, if DVC ran it for a stage."""
    if stage := os.environ.get("DVC_STAGE"):
        write_whole(FOLDER / stage / command, f"{seconds:.1f}\n")


def read_seconds(stage: str) -> float | None:
    """Read the seconds of a stage's last run, over all its commands; None if it never ran."""
    files = [*(FOLDER / stage).glob("[!.]*")]
    return sum(float(file.read_text(encoding="utf-8")) for file in files) if files else None
