"""`medprobe import`: copy the files of a release to where its builder reads them.

A file of the kind `imports` has `RELEASE`: the files, and their place in `data/`. Nothing is read
here: the builder's reader checks every row, and the gate compares with what was published.
"""

import filecmp
import shutil
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.plugins import find_plugins, load


@dataclass(frozen=True)
class Release:
    """The files of a release.

    Attributes:
        folder: where they belong, in `data/`.
        files: patterns, all relative to one folder of the release, that of the first that is found.
        next_step: what to write into params.yaml.
        suffix: what files get that have none.
    """

    folder: str
    files: tuple[str, ...]
    next_step: str
    suffix: str = ""

    def brings(self, source: str) -> bool:
        """Return whether a file or folder of `data/` is of this release.

        >>> Release("lama", ("TREx/*.jsonl",), "").brings("lama/TREx")
        True
        """
        parts = source.split("/")
        patterns = [[self.folder, *pattern.split("/")] for pattern in self.files]
        return any(
            len(parts) <= len(pattern) and all(map(fnmatch, parts, pattern)) for pattern in patterns
        )


def find_release(name: str) -> Release:
    """Return the release of a name."""
    plugins = find_plugins("imports")
    if name not in plugins:
        remedy = f"choose one of {', '.join(plugins)}"
        raise BadInput(name, f"unknown release{nearest(name, [*plugins])}", remedy)
    release: Release = load(plugins[name], "RELEASE", Release)
    return release


def import_files(name: str, path: Path, data: Path, *, force: bool = False) -> list[Path]:
    """Copy the files of a release in a clone, an unpacked archive or a single file to `data`.

    Other files of the target folder stay. Returns the copies.
    """
    release = find_release(name)
    root, files = find_files(release, path)
    target = data / release.folder
    copies = {target / copy: file for copy, file in files.items()}
    for copy, file in copies.items():
        if not force and copy.exists() and not filecmp.cmp(file, copy, shallow=False):
            raise BadInput(copy, "exists and differs", "--force replaces it")
    for copy, file in copies.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        with replacing(copy) as scratch:  # a link into DVC's cache is not written through
            shutil.copyfile(file, scratch)
    print(f"copied {len(files)} file{'s' * (len(files) != 1)} of {root} to {target}")
    for pattern in release.files:
        if not any(fnmatch(copy, pattern) for copy in files):
            print(f"not there: {pattern}")
    print(f"next: {release.next_step}, then `dvc add {data}`")
    return [*copies]


def find_files(release: Release, path: Path) -> tuple[Path, dict[str, Path]]:
    """Find the files of a release at or below `path`: their folder, and each by its place there."""
    expected = " or ".join(release.files)
    if path.is_file():
        if not any(fnmatch(path.name, pattern) for pattern in release.files):
            raise BadInput(path, f"its name is none of {expected}", "give the unpacked folder")
        root, found = path.parent, [path]
    else:
        if not path.is_dir():
            raise BadInput(path, "no such file or folder", "give the clone, archive or file")
        root = _find_root(release, path)
        every = [file for pattern in release.files for file in sorted(root.glob(pattern))]
        found = [file for file in every if file.is_file()]
        for file in found:
            if not file.resolve().is_relative_to(path.resolve()):
                problem = "a link to a file outside of the folder"
                raise BadInput(file, problem, "replace the link by the file, if you want it")
    places = [file.relative_to(root) for file in found]
    return root, {
        (place if place.suffix else place.with_suffix(release.suffix)).as_posix(): file
        for place, file in zip(places, found, strict=True)
    }


def _find_root(release: Release, path: Path) -> Path:
    """The one folder in which the first pattern that is found at all matches."""
    for pattern in release.files:
        files = [file for file in path.rglob(pattern) if file.is_file()]
        if roots := sorted({file.parents[pattern.count("/")] for file in files}):
            if len(roots) > 1:
                problem = f"it and {roots[1]} both contain {pattern}"
                raise BadInput(roots[0], problem, "give one of them")
            return roots[0]
    raise BadInput(
        path, f"contains none of {', '.join(release.files)}", "give the release's folder"
    )
