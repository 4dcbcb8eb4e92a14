"""Files appear whole or not at all."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
    try:
        yield scratch / target.name
        if target.is_dir():
            target.rename(scratch / "before")
        os.replace(scratch / target.name, target)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
