"""`medprobe init`: a project in a folder of its own, outside a clone of the code."""

import shutil
import subprocess
from contextlib import chdir
from pathlib import Path
from typing import Final

from medprobe.commands import pipeline
from medprobe.core.code import ROOT
from medprobe.core.errors import BadInput

START: Final = Path(__file__).with_name("params.yaml")
FILES: Final = (  # of a clone that every project has; setup.py puts them into the wheel
    "expectations",
    ".gitignore",
    ".dvcignore",
    ".dvc/config",
    ".dvc/.gitignore",
    "mlruns/README.md",
)


def init(folder: Path) -> None:
    """Make a project in a folder: a git repository, unless it lies in one, with DVC's files, the
    expectations, a params.yaml to start from, and dvc.yaml.

    Raises BadInput where the folder holds any of these already, and where git cannot be run.
    """
    made = [*FILES, START.name, pipeline.PIPELINE.name]
    for name in made:
        if (folder / name).exists():
            raise BadInput(folder / name, "is there already", "choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    with chdir(folder):
        _git()
        for name in FILES:
            source, target = _source() / name, Path(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if source.is_dir() else shutil.copyfile
            copy(source, target)
        shutil.copyfile(START, START.name)
        Path("data").mkdir(exist_ok=True)
        pipeline.write()


def _source() -> Path:
    """Where the files are: within an installed package, or beside its sources in a clone."""
    packaged = ROOT / "project"
    return packaged if packaged.is_dir() else ROOT.parents[1]


def _git() -> None:
    """DVC needs a repository."""
    try:
        inside = subprocess.run(["git", "rev-parse"], capture_output=True, check=False)
        if inside.returncode != 0:
            subprocess.run(["git", "init", "--quiet"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise BadInput("git", "cannot be run", "install git, which DVC works with") from None
