"""The parts of long work that are kept, so that a stopped stage goes on where it stopped, and the
fingerprints that they are kept by."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.core.code import ROOT, closure
from medprobe.core.files import replacing
from medprobe.core.places import PARTS

LIBRARIES: Final = Path("requirements.lock")  # the versions of the libraries that compute


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
    import closure, and the versions of the libraries that compute. To read all imports takes
    longer than to see that no file has changed: it is remembered in outputs/parts."""
    lock = [LIBRARIES] if LIBRARIES.is_file() else []
    files = [*lock, *(path for path in ROOT.rglob("*") if path.suffix != ".pyc")]
    changed = tuple((path, path.stat().st_mtime_ns) for path in files if path.is_file())
    chosen = {name: sorted(some) for name, some in (plugins or {}).items()}
    known = part(PARTS, [_contents(changed), module, chosen]).with_suffix(".code")
    if known.is_file():
        return known.read_text(encoding="utf-8")
    found = fingerprint([*closure(module, plugins=plugins), *lock])
    if PARTS.is_dir():
        with replacing(known) as scratch:
            scratch.write_text(found, encoding="utf-8")
    return found


@cache
def _contents(changed: tuple[tuple[Path, int], ...]) -> str:
    """The fingerprint of files that were last changed then."""
    return fingerprint(path for path, _ in changed)


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
