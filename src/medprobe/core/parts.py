"""Finished parts of long work on disk, and the fingerprints that they are stored under.

A stopped stage reads its finished parts and goes on from there.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from medprobe.core.errors import is_out_of_memory
from medprobe.core.files import list_files, read_any, replacing, write_whole
from medprobe.core.places import PARTS, USED_PARTS
from medprobe.core.plugins import ROOT
from medprobe.core.progress import print_above

if TYPE_CHECKING:
    import pandas as pd

PIECE: Final = 1 << 20  # rows: a row group of parquet. A result can have a hundred times more


def load_or_compute(
    folder: Path, key: Any, compute: "Callable[[], pd.DataFrame]"
) -> "pd.DataFrame":
    """Return the table stored under `key` in `folder`; compute and store it where there is none."""
    path = part_path(folder, key)
    if (stored := read_part(path)) is not None:
        return stored
    table = compute()
    write_part(table, path)
    return table


def read_part(path: Path) -> "pd.DataFrame | None":
    """Return the table of a part; None where there is none that can be read."""
    import pandas as pd  # which takes a second; most callers hash alone

    return read_whole(path, partial(pd.read_parquet, page_checksum_verification=True))


def read_whole(path: Path, reader: Callable[[Path], Any]) -> Any:
    """Return what `reader` makes of a file in outputs/parts; None where there is none.

    A file that cannot be read, as after a power failure, is removed with a line.
    """
    try:
        return reader(path) if path.is_file() else None
    except Exception as error:  # each format has its own
        if is_out_of_memory(error):
            raise
        print_above(f"{path}: cut or damaged ({type(error).__name__}); it is made again")
        path.unlink()
        return None


def part_path(folder: Path, key: Any) -> Path:
    """Return the path of the part with this key."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()
    return folder / f"{digest[:32]}.parquet"


def write_part(table: "pd.DataFrame", path: Path) -> None:
    """Write the table of a part."""
    with replacing(path) as scratch:
        table.to_parquet(scratch, index=False, write_page_checksum=True)


def record_used(result: str, parts: Iterable[Path], key: str = "") -> None:
    """Write which parts a result is made of, so that `medprobe clean` can remove all others."""
    lines = [key, *(path.name for path in parts)]
    write_whole(USED_PARTS / f"{result}.txt", "".join(f"{line}\n" for line in lines))


def read_used(result: str, key: str) -> list[Path] | None:
    """Return the parts that a result is made of; None if one is missing, or with another key."""
    path = USED_PARTS / f"{result}.txt"
    lines = read_any(path).splitlines()
    if lines[:1] != [key]:
        return None
    parts = [PARTS / name for name in lines[1:]]
    return None if any(read_part(part) is None for part in parts) else parts


def read_in_pieces(parts: Iterable[Path]) -> "Iterator[pd.DataFrame]":
    """Yield the tables of parts, one after another, together up to PIECE rows."""
    import pandas as pd

    held: list[pd.DataFrame] = []
    for part in parts:
        table = pd.read_parquet(part)
        if held and sum(map(len, held)) + len(table) > PIECE:
            yield pd.concat(held, ignore_index=True)
            held = []
        held.append(table)
    yield pd.concat(held, ignore_index=True)


def fingerprint(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the names and contents of files, and of all files below folders."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(list_files(path)):
            if "__pycache__" not in file.parts:
                name = file.relative_to(ROOT if file.is_relative_to(ROOT) else path)
                digest.update(name.as_posix().encode())
                with file.open("rb") as stream:
                    digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def table_fingerprint(table: "pd.DataFrame") -> str:
    """Return the SHA-256 of a table's columns and values, in their order."""
    return hashlib.sha256(table.to_json(orient="split", index=False).encode()).hexdigest()
