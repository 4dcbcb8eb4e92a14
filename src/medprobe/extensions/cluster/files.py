"""Files and folders on their way between a project and the folders of workers."""

import shutil
from pathlib import Path

from medprobe.core.files import list_files, replacing

Files = dict[str, bytes]  # of a folder by their names in it, or of one file as "."


def pack(path: Path) -> Files:
    """The contents of a file, or of all files below a folder."""
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in list_files(path)}


def unpack(files: Files, path: Path) -> None:
    """Write what `pack` gave to `path`, all at once, in place of what is there."""
    with replacing(path) as scratch:
        if "." not in files:
            scratch.mkdir()
        for name, content in files.items():
            file = scratch / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


def link(source: Path, target: Path) -> None:
    """Replace `target` by links to a file, or to the files below a folder."""
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
    if source.is_dir():
        target.mkdir(parents=True)
    for file in list_files(source):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(file.resolve())
