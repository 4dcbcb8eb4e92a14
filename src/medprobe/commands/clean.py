"""`medprobe clean`: outputs of stages that dvc.yaml no longer has.

A stage goes when a name is taken out of params.yaml.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rich.filesize import decimal

from medprobe.commands import terminal
from medprobe.core.errors import BadInput
from medprobe.core.files import size
from medprobe.tracking import lineage

OUTPUTS: Final = Path("outputs")


def leftovers() -> list[Path]:
    """List what stages of other names have made below outputs/.

    DVC records each output of a stage: in dvc.lock, and in its cache of runs. Only such paths are
    listed, so that what a person puts into outputs/ is none of them.

    Returns:
        Files and folders, sorted; none where there is no DVC project.

    Raises:
        BadInput: DVC cannot read dvc.yaml.
    """
    from dvc.exceptions import DvcException, NotDvcRepoError
    from dvc.repo import Repo

    try:
        with Repo(_wait_for_lock=True) as repo:
            needed = {Path(out.fs_path) for stage in repo.index.stages for out in stage.outs}
            files = [lineage.LOCK, *Path(repo.stage_cache.cache_dir).glob("*/*/*")]
    except NotDvcRepoError:
        return []
    except DvcException as error:
        raise BadInput("dvc", " ".join(str(error).split()), "`dvc status` says more") from None
    recorded = {Path(out) for file in files for out in lineage.outs(file)}
    parents = {parent for path in needed for parent in path.parents}
    paths = {
        path
        for path in recorded
        if path.is_relative_to(OUTPUTS) and ".." not in path.parts and path.exists()
        if (place := path.absolute()) not in parents and needed.isdisjoint([place, *place.parents])
    }
    return sorted(path for path in paths if paths.isdisjoint(path.parents))


def remove(paths: Iterable[Path]) -> None:
    """Remove files and folders, and those folders above them that this leaves empty."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
        for parent in path.parents:
            if parent == OUTPUTS or any(parent.iterdir()):
                break
            parent.rmdir()


def show(paths: Iterable[Path]) -> None:
    """Print the paths with their sizes."""
    rows = ((str(path), decimal(size(path))) for path in paths)
    terminal.print_table(("path", "size"), rows, "No longer in params.yaml")
