"""How long the stages of this machine took: a small file for each command of a stage."""

import os
from typing import Final

from medprobe.core.files import replacing
from medprobe.core.places import PARTS

FOLDER: Final = PARTS / "seconds"


def write(command: str, seconds: float) -> None:
    """Write down how long a command took, if DVC ran it for a stage."""
    if stage := os.environ.get("DVC_STAGE"):
        with replacing(FOLDER / stage / command) as scratch:
            scratch.write_text(f"{seconds:.1f}\n", encoding="utf-8")


def read(stage: str) -> float | None:
    """The seconds that all commands of a stage took when it last ran; None where it never did."""
    files = [*(FOLDER / stage).glob("[!.]*")]
    return sum(float(file.read_text(encoding="utf-8")) for file in files) if files else None
