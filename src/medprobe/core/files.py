"""Files appear whole or not at all."""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

FULL: Final = {errno.ENOSPC, errno.EDQUOT}
SCRATCH: Final = ".medprobe-"  # begins the names of folders in which files are made
MARKER: Final = "medprobe-scratch"  # a file in each of them, with this content:
OURS: Final = b"Made by medprobe, which may remove this folder.\n"


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path beside `target` to write a file or make a folder at; it takes `target`'s place at the
    end of the block. Where the block fails, nothing is left and `target` is as it was; of a full
    disk it is `target` that the error names.

    >>> with replacing(Path("numbers.txt")) as path:
    ...     _ = path.write_text("1 2 3")
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=target.parent))
    try:
        with (scratch / MARKER).open("xb") as marker:
            with suppress(OSError):  # of file systems that know no locks
                fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
            marker.write(OURS)
            marker.flush()
            work = scratch / "work"
            work.mkdir()
            yield work / target.name
            if target.is_dir():
                target.rename(work / "before")
            os.replace(work / target.name, target)
    except Exception as error:
        if said := full(error):
            raise OSError(said.errno, said.strerror, str(target)) from error
        raise
    finally:
        _remove(scratch)


def full(error: BaseException | None) -> OSError | None:
    """That a disk is full, where an error says so or was met with on the way from one that did, as
    some libraries' own errors are."""
    while error:
        if isinstance(error, OSError) and error.errno in FULL:
            return error
        error = error.__cause__ or error.__context__
    return None


def tidy(found: Iterable[Path]) -> None:
    """Remove, of the paths found, what killed processes left half-made: what `replacing` made, as
    the marker within says, and no process holds any more."""
    for scratch in found:
        with suppress(OSError), (scratch / MARKER).open("rb") as marker:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)  # unless another process holds it
            if marker.read() == OURS:
                _remove(scratch)


def _remove(scratch: Path) -> None:
    """Remove a folder that `replacing` made, its marker last."""
    shutil.rmtree(scratch / "work", ignore_errors=True)
    shutil.rmtree(scratch, ignore_errors=True)
