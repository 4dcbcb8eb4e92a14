"""Files and folders that are written completely or not at all."""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final

FULL: Final = {errno.ENOSPC, errno.EDQUOT}
SCRATCH: Final = ".medprobe-"  # prefix of scratch folders
MARKER: Final = "medprobe-scratch"  # a file in each of them, with this content
MARKER_TEXT: Final = b"Made by medprobe, which may remove this folder.\n"

# What is checked before a file or folder gets its place: a stage sets it once, and writes its
# outputs and parts far below (`pipeline.unchanged`). It is a context variable for that reason.
before_replacing: Final[ContextVar[Callable[[], None]]] = ContextVar(
    "before_replacing", default=lambda: None
)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a path to write a file or make a folder at, which replaces `target` after the block.

    Where the block fails, `target` stays as it was and nothing else is left behind. An error about
    a full disk names `target`.

    >>> with replacing(Path("numbers.txt")) as path:
    ...     _ = path.write_text("1 2 3")
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        scratch = ScratchFolder(target.parent)
        try:
            yield scratch.work / target.name
            before_replacing.get()()
            if target.is_dir():
                target.rename(scratch.work / "before")
            os.replace(scratch.work / target.name, target)
        finally:
            scratch.remove()
    except Exception as error:
        if full_disk := disk_full_error(error):
            raise OSError(full_disk.errno, full_disk.strerror, str(target)) from error
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text file, completely or not at all."""
    with replacing(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def read_any(path: Path) -> str:
    """Return the text of a file; empty where there is none."""
    return path.read_text(encoding="utf-8") if path.is_file() else ""


class ScratchFolder:
    """A folder for unfinished files, with a marker that is locked while this process runs.

    If the process is killed, `remove_leftovers` removes the folder.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=parent))
        self.work = self.folder / "work"  # where to write
        try:
            self._marker = (self.folder / MARKER).open("xb", buffering=0)
            with suppress(OSError):  # some file systems have no locks
                fcntl.flock(self._marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._marker.write(MARKER_TEXT)
            self.work.mkdir()
        except OSError:
            _remove(self.folder)
            raise

    def remove(self) -> None:
        """Remove the folder."""
        _remove(self.folder)
        self._marker.close()


def disk_full_error(error: BaseException | None) -> OSError | None:
    """Return the error itself, or the one that caused it, that reports a full disk; None otherwise.

    Some libraries raise an error of their own while they handle the one of the full disk.
    """
    while error:
        if isinstance(error, OSError) and error.errno in FULL:
            return error
        error = error.__cause__ or error.__context__
    return None


def list_files(path: Path) -> list[Path]:
    """Return a file, or all files below a folder."""
    return [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]


def size(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder."""
    return sum(file.stat().st_size for file in list_files(path))


def remove_leftovers(paths: Iterable[Path]) -> None:
    """Remove the scratch folders among `paths` that killed processes have left behind.

    A scratch folder is a `ScratchFolder`, as its marker file shows. It is removed only if no
    process holds the marker's lock.
    """
    for scratch in paths:
        with suppress(OSError), (scratch / MARKER).open("rb") as marker:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)  # unless another process holds it
            if marker.read() == MARKER_TEXT:
                _remove(scratch)


def _remove(scratch: Path) -> None:
    """Remove a scratch folder, its marker last."""
    shutil.rmtree(scratch / "work", ignore_errors=True)
    shutil.rmtree(scratch, ignore_errors=True)
