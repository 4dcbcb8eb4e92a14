"""Clinical notes: MIMIC-III's `NOTEEVENTS.csv`, read as a stream of any length."""

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from medprobe.core.errors import BadInput
from medprobe.sources.texts import Document, kept

COLUMNS: Final = [
    "ROW_ID",
    "SUBJECT_ID",
    "HADM_ID",
    "CHARTDATE",
    "CHARTTIME",
    "STORETIME",
    "CATEGORY",
    "DESCRIPTION",
    "CGID",
    "ISERROR",
    "TEXT",
]
LONGEST_NOTE: Final = 4_000_000  # characters: more is a quote that was never closed


def read(path: Path, skipped: Counter[str]) -> Iterator[Document]:
    """The notes of `NOTEEVENTS.csv` (or `.csv.gz`); a document's id is its ROW_ID.

    Notes marked as errors (ISERROR 1) and empty ones are left out and counted in `skipped`.
    Raises BadInput with the record and line of a broken quote or a row of the wrong length; no
    message holds text of a note.
    """
    if not path.is_file():
        raise BadInput(path, "no such file", "put NOTEEVENTS.csv there or correct its path")
    csv.field_size_limit(LONGEST_NOTE)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as lines:
        rows = csv.reader(iter(partial(lines.readline, LONGEST_NOTE), ""), strict=True)
        first = record = 1
        try:
            place = _places(path, next(rows, []))
            first = rows.line_num + 1
            for row in filter(None, rows):
                yield from _note(row, place, skipped)
                first, record = rows.line_num + 1, record + 1
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            where = f"{path}, after record {record - 1}"
            raise BadInput(where, f"broken gzip ({error})", "fetch the file anew") from None
        except (csv.Error, IndexError, UnicodeDecodeError) as error:
            where = f"{path}, record {record} (from line {first})"
            raise BadInput(where, _problem(error), "correct the record or fetch the file") from None


def _places(path: Path, header: list[str]) -> dict[str, int]:
    missing = [column for column in ("ROW_ID", "ISERROR", "TEXT") if column not in header]
    if missing:
        raise BadInput(path, f"no column {', '.join(missing)} in the header", "expected NOTEEVENTS")
    return {column: place for place, column in enumerate(header)} | {"fields": len(header)}


def _note(row: list[str], place: dict[str, int], skipped: Counter[str]) -> Iterator[Document]:
    if len(row) != place["fields"]:
        raise IndexError(f"{len(row)} fields, expected {place['fields']}")
    if row[place["ISERROR"]] == "1":
        skipped["marked as an error"] += 1
        return
    yield from kept(Document(row[place["ROW_ID"]], row[place["TEXT"]]), skipped)


def _problem(error: Exception) -> str:
    if isinstance(error, IndexError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8 in or near it"
    return f"broken quote ({error})"
