"""Command `import`: find what people have of released files, check it, bring it into `data/`.

One file is one kind of thing, found by its name, and has a function `find(path) -> Found`. It takes
a clone or an unpacked archive as it lies, searches below, reads every file by the reader that the
build uses, and raises BadInput for the first thing that is wrong.
"""

import filecmp
import importlib
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing


@dataclass(frozen=True)
class Found:
    """What `find` found: `files` are sources by the name that they get below `data/<folder>`."""

    folder: str
    files: dict[str, Path]
    checked: str  # what of them was held against what
    report: pd.DataFrame
    then: str  # what to write into params.yaml
    missing: list[str] = field(default_factory=list)
    stale: tuple[str, ...] = ()  # patterns of files there that would mix with these


def names() -> list[str]:
    """What can be imported.

    >>> "medlama" in names()
    True
    """
    here = Path(__path__[0])
    return sorted(path.stem for path in here.glob("*.py") if not path.stem.startswith("_"))


def bring(what: str, path: Path, data: Path, *, force: bool = False) -> pd.DataFrame:
    """Check what is below `path`, say what was found, checked and missing, copy it below `data`,
    and return the report. Other files of that folder stay.

    Raises BadInput for what is wrong, and, unless `force`, for a file there that is not the same;
    nothing is copied then.
    """
    if what not in names():
        known = f"one of {', '.join(names())}"
        raise BadInput(what, f"nothing to import by this name{nearest(what, names())}", known)
    if not path.exists():
        raise BadInput(path, "no such file or folder", "give the clone, archive or file")
    find: Callable[[Path], Found] = importlib.import_module(f"{__name__}.{what}").find
    found = find(path)
    target = data / found.folder
    roots = sorted({str(source.parent) for source in found.files.values()})
    print(f"found: {len(found.files)} files in {roots[0] if len(roots) == 1 else path}")
    print(found.report.to_string(index=False))
    print(f"checked: {found.checked}")
    for one in found.missing:
        print(f"missing: {one}")
    _place(found, target, force)
    print(f"copied to {target}; now: {found.then}, then dvc add {data}")
    return found.report


def _place(found: Found, target: Path, force: bool) -> None:
    """Put the files into the folder `target`, which appears changed whole or not at all."""
    changed = [
        target / name
        for name, source in found.files.items()
        if (target / name).exists() and not filecmp.cmp(source, target / name, shallow=False)
    ]
    imported = {target / name for name in found.files}
    others = {path for pattern in found.stale for path in target.glob(pattern)} - imported
    if not force:
        for path in changed[:1]:
            raise BadInput(path, "another file is there", "--force replaces it")
        for path in sorted(others)[:1]:
            raise BadInput(path, "it would mix with what is imported", "--force replaces it")
    with replacing(target) as scratch:
        if target.is_dir():
            shutil.copytree(target, scratch, symlinks=True)
        for path in others:
            (scratch / path.relative_to(target)).unlink()
        for name, source in found.files.items():
            file = scratch / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)  # a link into DVC's cache is not written through
            shutil.copyfile(source, file)


def folders(path: Path, name: str) -> list[Path]:
    """The folders at or below `path` that hold a file or folder of this name or pattern."""
    return sorted({one.parent for one in path.rglob(name)})


def one_of(places: Iterable[Path], what: str) -> Path:
    """The folder that all these are. Raises BadInput where there are two."""
    first, *others = sorted({*places})
    for other in others:
        raise BadInput(first, f"it and {other} both hold {what}", "give one of them")
    return first
