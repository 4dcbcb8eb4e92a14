"""Files appear whole or not at all."""

import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

FULL: Final = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path beside `target` to write a file or make a folder at; it takes `target`'s place at the
    end of the block. Where the block fails, nothing is left and `target` is as it was; of a full
    disk it is `target` that the error names.

    >>> with replacing(Path("numbers.txt")) as path:
    ...     _ = path.write_text("1 2 3")
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    held = os.open(scratch, os.O_RDONLY)
    try:
        with suppress(OSError):  # of file systems that know no locks
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield scratch / target.name
        if target.is_dir():
            target.rename(scratch / "before")
        os.replace(scratch / target.name, target)
    except Exception as error:
        if said := full(error):
            raise OSError(said.errno, said.strerror, str(target)) from error
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        os.close(held)


def full(error: BaseException | None) -> OSError | None:
    """That a disk is full, where an error says so or was met with on the way from one that did, as
    some libraries' own errors are."""
    while error:
        if isinstance(error, OSError) and error.errno in FULL:
            return error
        error = error.__cause__ or error.__context__
    return None


def tidy(found: Iterable[Path]) -> None:
    """Remove, of the paths found, what killed processes left half-made: what `replacing` made and
    no process holds any more."""
    for path in found:
        if re.fullmatch(r"\..+\.[a-z0-9_]{8}", path.name) and path.is_dir():
            held = os.open(path, os.O_RDONLY)
            with suppress(OSError):  # another process holds it
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            os.close(held)
