"""`medprobe clean`: outputs of stages that dvc.yaml no longer has; and what a kill left half-made.

A stage goes when a name is taken out of params.yaml. `medprobe repro` removes its outputs if DVC's
cache has them: stages that compare results depend on folders, which would count them.
"""

import shutil
import tempfile
from collections.abc import Collection, Iterable
from itertools import chain
from pathlib import Path
from typing import Any, Final

from rich.filesize import decimal

from medprobe.core import dvc_records, places
from medprobe.core.errors import BadInput
from medprobe.core.files import SCRATCH, remove_leftovers, size
from medprobe.core.params import Params
from medprobe.pipeline import outputs

OUTPUTS: Final = Path("outputs")
LEFTOVERS: Final = "No longer in params.yaml"


def repair() -> None:
    """Remove what killed processes left half-made."""
    in_outputs = [folder.rglob(f"{SCRATCH}*") for folder in (OUTPUTS, places.METRICS)]
    # A scratch folder is beside what it replaces; that of a model spread over disks is in /tmp.
    folders = (Path(), Path("mlruns"), Path(tempfile.gettempdir()))
    remove_leftovers(chain(*in_outputs, *(folder.glob(f"{SCRATCH}*") for folder in folders)))
    if dvc_records.is_cut():
        problem = "incomplete, after a killed process or a full disk"
        remedy = "if no dvc is running, delete it: DVC restores the results from its cache"
        raise BadInput(dvc_records.LOCK, problem, remedy)


def leftovers() -> list[Path]:
    """List what stages of other names have made below outputs/.

    Only paths that dvc.lock names are listed, so that what a person puts into outputs/ is none of
    them.
    """
    from dvc.exceptions import DvcException, NotDvcRepoError
    from dvc.repo import Repo

    try:
        with Repo(_wait_for_lock=True) as repo:
            return _leftovers(repo, {Path(out) for out in dvc_records.outs()})
    except NotDvcRepoError:
        return []
    except DvcException as error:
        raise BadInput("dvc", " ".join(str(error).split()), "`dvc status` says more") from None


def _leftovers(repo: Any, recorded: Collection[Path]) -> list[Path]:
    """Return the recorded paths below outputs/ that are there, and that no stage makes."""
    needed = {Path(out.fs_path) for stage in repo.index.stages for out in stage.outs}
    parents = {parent for path in needed for parent in path.parents}
    paths = {
        path
        for path in recorded
        if path.is_relative_to(OUTPUTS) and ".." not in path.parts and path.exists()
        if (place := path.absolute()) not in parents and needed.isdisjoint([place, *place.parents])
    }
    return sorted(path for path in paths if paths.isdisjoint(path.parents))


def remove_cached(repo: Any) -> None:
    """Remove the leftovers that dvc.lock names and DVC's cache has, and print their paths."""
    hashes = {Path(path): md5 for path, md5 in dvc_records.hashes().items()}
    cached = [path for path in _leftovers(repo, hashes) if _is_cached(repo, hashes[path])]
    remove(cached)
    for path in cached:
        print(f"{path} removed: no longer in params.yaml; DVC's cache has it")


def _is_cached(repo: Any, md5: str) -> bool:
    """Whether DVC's cache has a file, or a folder with all its files."""
    from dvc_data.hashfile import check, load
    from dvc_data.hashfile.hash_info import HashInfo
    from dvc_objects.errors import ObjectFormatError

    try:
        check(repo.cache.local, load(repo.cache.local, HashInfo("md5", md5)))
    except (FileNotFoundError, ObjectFormatError):
        return False
    return True


def unused_parts(params: Params) -> list[Path]:
    """List the finished parts that no result of params.yaml is made of.

    They are parts of older code, settings or data, and states of trainings. Stages that are left to
    run can need some of them.
    """
    records = [path for path in places.USED_PARTS.rglob("*.txt") if _is_named(path, params)]
    used = {name for path in records for name in path.read_text(encoding="utf-8").splitlines()}
    return sorted(
        path
        for path in places.PARTS.glob("[!.]*")
        if path.name not in used and (path.is_file() or path.name.startswith("rewire-"))
    )


def _is_named(record: Path, params: Params) -> bool:
    """Whether params.yaml names the result of which a file records the used parts."""
    names = record.relative_to(places.USED_PARTS).with_suffix("").parts
    return len(names) == 1 or params.names_result(*names)


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


def show(paths: Iterable[Path], title: str) -> None:
    """Print the paths with their sizes."""
    rows = ((str(path), decimal(size(path))) for path in paths)
    outputs.print_table(("path", "size"), rows, title)
