"""Files and folders on their way between a project and the folders of workers."""

import shutil
from pathlib import Path

from medprobe.core.files import list_files, replacing

Files = dict[str, bytes]  # of a folder by their names in it, or of one file as "."


def pack(path: Path) -> Files:
    """The contents of a file, or of all files below a folder."""
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in list_files(path)}


def unpack(files: Files, path: Path) -> None:
    """Write what `pack` gave to `path`, all at once."""
    with replacing(path) as scratch:
        if "." not in files:
            scratch.mkdir()
        for name, content in files.items():
            file = scratch / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


def link(source: Path, target: Path) -> None:
    """Link a file, or the files below a folder. The source keeps what the target loses."""
    if source.is_dir():
        target.mkdir(parents=True)
    for file in list_files(source):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(file.resolve())


def clear(path: Path) -> None:
    """Remove a file, a link or a folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
