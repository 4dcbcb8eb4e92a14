"""Remove a filter that earlier versions wrote into .git/config.

It hid changes of dvc.lock and metrics/ from `git status`.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from medprobe.core import places
from medprobe.tracking.lineage import LOCK

SECTION: Final = "filter.medprobe"


def remove_filter() -> None:
    """Remove the filter if it is installed, and report that.

    git remembers the filtered files as unchanged. A new date makes git read them again.
    """
    try:
        command = ["git", "config", "--local", "--remove-section", SECTION]
        process = subprocess.run(command, capture_output=True, check=False)
    except OSError:  # no git
        return
    if process.returncode == 0:
        for path in _files():
            path.touch()
        print(
            f"removed the section {SECTION} from .git/config: `git status` now shows changes of"
            " dvc.lock and metrics/ (see README.md)"
        )


def _files() -> Iterator[Path]:
    paths = [LOCK, *places.METRICS.rglob("*")]
    return (path for path in paths if path.is_file())
