"""`medprobe import`: find released files, check them, and copy them into `data/`.

A plugin of the kind `imports` imports one release into `BRINGS`, a folder or a pattern of files in
`data/`; `medprobe doctor` reads it. It has a function `find(path) -> Release`, which searches a
clone or an unpacked archive, reads every file with the reader of the build, and raises BadInput for
the first error.
"""

import filecmp
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.plugins import Plugin, find_plugins, load_module


@dataclass(frozen=True)
class Release:
    """The files that `find` found."""

    folder: str  # the target, in data/
    files: dict[str, Path]  # by the path in `folder`
    checks: str  # a description of what was checked
    report: pd.DataFrame
    next_step: str  # what to write into params.yaml
    missing: list[str] = field(default_factory=list)
    conflicts: tuple[str, ...] = ()  # patterns of existing files that would mix with these


def find_plugin(name: str) -> Plugin:
    """Return the plugin that imports a release."""
    plugins = find_plugins("imports")
    if name not in plugins:
        remedy = f"choose one of {', '.join(plugins)}"
        raise BadInput(name, f"unknown release{nearest(name, [*plugins])}", remedy)
    return plugins[name]


def import_files(name: str, path: Path, data: Path, *, force: bool = False) -> pd.DataFrame:
    """Check released files, report the result, and copy them to `data`.

    Other files of the target folder stay. Returns the report.
    """
    plugin = find_plugin(name)
    if not (path.is_file() or path.is_dir()):
        raise BadInput(path, "no such file or folder", "give the clone, archive or file")
    find: Callable[[Path], Release] = load_module(plugin).find
    release = find(path)
    _check_links(release, path)
    target = data / release.folder
    roots = sorted({str(source.parent) for source in release.files.values()})
    print(f"found: {len(release.files)} files in {roots[0] if len(roots) == 1 else path}")
    print(release.report.to_string(index=False))
    print(f"checked: {release.checks}")
    for item in release.missing:
        print(f"missing: {item}")
    _copy(release, target, force)
    print(f"copied to {target}; next: {release.next_step}, then run `dvc add {data}`")
    return release.report


def _check_links(release: Release, path: Path) -> None:
    """Refuse links that lead out of what was named: an archive could bring any file into data/."""
    root = path.resolve() if path.is_dir() else path.resolve().parent
    for source in release.files.values():
        if source != path and not source.resolve().is_relative_to(root):
            problem = "a link to a file outside of the folder"
            raise BadInput(source, problem, "replace the link by the file, if it is what you want")


def _copy(release: Release, target: Path, force: bool) -> None:
    """Copy the files into the folder `target`; after an error it is unchanged."""
    differing = [
        target / name
        for name, source in release.files.items()
        if (target / name).exists() and not filecmp.cmp(source, target / name, shallow=False)
    ]
    imported = {target / name for name in release.files}
    conflicts = {path for pattern in release.conflicts for path in target.glob(pattern)} - imported
    if not force:
        for path in differing[:1]:
            raise BadInput(path, "exists and differs", "--force replaces it")
        for path in sorted(conflicts)[:1]:
            raise BadInput(path, "would mix with the imported files", "--force removes it")
    with replacing(target) as scratch:
        if target.is_dir():
            shutil.copytree(target, scratch, symlinks=True)
        for path in conflicts:
            (scratch / path.relative_to(target)).unlink()
        for name, source in release.files.items():
            file = scratch / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)  # a link into DVC's cache is not written through
            shutil.copyfile(source, file)


def folders(path: Path, name: str) -> list[Path]:
    """The folders at or below `path` that contain a file or folder of this name or pattern."""
    return sorted({item.parent for item in path.rglob(name)})


def require_single(places: Iterable[Path], content: str) -> Path:
    """Return the folder that all `places` are. Raises BadInput if there are two."""
    folder, *further = sorted({*places})
    if further:
        raise BadInput(folder, f"it and {further[0]} both contain {content}", "give one of them")
    return folder
