"""Finished parts of long work are kept, so that a stopped stage goes on where it stopped."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.core.code import ROOT, closure
from medprobe.core.files import replacing

LIBRARIES: Final = Path("requirements.lock")  # the versions of the libraries that compute


def kept(folder: Path, key: Any, compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """The table that `compute` gives, from `folder` where it was made before under the same `key`.

    `key` is anything JSON can say, and must name all that the table depends on.
    """
    path = place(folder, key)
    if path.is_file():
        return pd.read_parquet(path)
    table = compute()
    with replacing(path) as scratch:
        table.to_parquet(scratch, index=False)
    return table


def place(folder: Path, key: Any) -> Path:
    """Where the table of a key is kept."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()
    return folder / f"{digest[:32]}.parquet"


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
