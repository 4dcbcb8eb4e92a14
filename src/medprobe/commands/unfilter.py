"""Takes back what earlier versions wrote into .git/config: a filter that kept changes of dvc.lock
and metrics/ out of `git status`."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from medprobe.core import places
from medprobe.tracking.lineage import LOCK

SECTION: Final = "filter.medprobe"


def unfilter() -> None:
    """Remove the filter where it is installed, and say so.

    git believes of a file that it has seen through the filter that nothing changed. So the files
    get a new date, at which git looks at them again.
    """
    try:
        command = ["git", "config", "--local", "--remove-section", SECTION]
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:  # no git
        return
    if done.returncode == 0:
        for path in _files():
            path.touch()
        print(
            f"took the section {SECTION} out of .git/config: `git status` now shows what differs"
            " in dvc.lock and metrics/ (README.md says what to do with it)"
        )


def _files() -> Iterator[Path]:
    found = [LOCK, *places.METRICS.rglob("*")]
    return (path for path in found if path.is_file())
