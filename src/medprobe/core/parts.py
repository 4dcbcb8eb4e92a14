"""Long work in parts: an executor does them, here or elsewhere, and finished ones are kept, so that
a stopped stage goes on where it stopped."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import pandas as pd

from medprobe.core.code import ROOT, closure
from medprobe.core.files import replacing

LIBRARIES: Final = Path("requirements.lock")  # the versions of the libraries that compute


class Job(NamedTuple):
    """One call of a piece of work. Paths are relative to the project's folder."""

    name: str  # in errors
    argument: Any
    reads: tuple[Path, ...] = ()  # files and folders that it needs there
    writes: tuple[Path, ...] = ()  # and that it leaves
    again: tuple[Any, ...] = ()  # the arguments instead, after it has cost a worker, or two


class Executor(Protocol):
    """Calls `work` with the argument of each job, wherever that is.

    Gives `(number of the job, result)` in the order in which they end. A worker elsewhere gets a
    copy of `work` by pickle, keeps it from job to job, and does one job at a time.
    """

    def __call__(
        self, work: Callable[[Any], Any], jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any]]: ...


def local(work: Callable[[Any], Any], jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
    """The executor that does the jobs in this process, one after another."""
    for number, job in enumerate(jobs):
        yield number, work(job.argument)


def in_order(results: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """What an executor gives, in the order of the jobs; what came too early is held."""
    early: dict[int, Any] = {}
    expected = 0
    for number, result in results:
        early[number] = result
        while expected in early:
            yield expected, early.pop(expected)
            expected += 1


def kept(folder: Path, key: Any, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """The table that `compute` gives, from `folder` where it was made before under the same
    `key` (see `part`)."""
    path = part(folder, key)
    if path.is_file():
        return pd.read_parquet(path)
    table = compute()
    keep(table, path)
    return table


def part(folder: Path, key: Any) -> Path:
    """Where the part with this `key` is kept in `folder`.

    `key` is anything JSON can say, and must name all that the part depends on.
    """
    digest = hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()
    return folder / f"{digest[:32]}.parquet"


def keep(table: pd.DataFrame, path: Path) -> None:
    """Write a part."""
    with replacing(path) as scratch:
        table.to_parquet(scratch, index=False)


def code_fingerprint(module: str, plugins: Mapping[str, Collection[str]] | None = None) -> str:
    """SHA-256 over all that a module's numbers follow from, its data and parameters aside: its
    import closure, and the versions of the libraries that compute."""
    lock = [LIBRARIES] if LIBRARIES.is_file() else []
    return fingerprint([*closure(module, plugins=plugins), *lock])


def fingerprint(paths: Iterable[Path]) -> str:
    """SHA-256 over the names and contents of files, and of all files below folders."""
    total = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                total.update(_name(file, path).encode())
                with file.open("rb") as stream:
                    total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def _name(file: Path, below: Path) -> str:
    return file.relative_to(ROOT if file.is_relative_to(ROOT) else below).as_posix()


def table_fingerprint(table: pd.DataFrame) -> str:
    """SHA-256 over a table's columns and values, in their order."""
    return hashlib.sha256(table.to_json(orient="split", index=False).encode()).hexdigest()
