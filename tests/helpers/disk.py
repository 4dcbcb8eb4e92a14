"""A disk that is soon full: a limit on the size of files stands in for it."""

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from medprobe.core import files


@contextmanager
def small_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No file can grow beyond 64 KiB, and one that would is met as a full disk is."""
    monkeypatch.setattr(files, "FULL", {errno.EFBIG})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
