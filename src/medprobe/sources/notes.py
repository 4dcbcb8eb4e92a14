"""Clinical notes: MIMIC-III's `NOTEEVENTS.csv`, read as a stream of any length."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from medprobe.sources.records import Name, Record, csv_records
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


class Note(Record):
    """The columns that are read."""

    ROW_ID: Name
    ISERROR: str
    TEXT: str


def read(path: Path, skipped: Counter[str]) -> Iterator[Document]:
    """The notes of `NOTEEVENTS.csv` (or `.csv.gz`); a document's id is its ROW_ID.

    Notes marked as errors (ISERROR 1) and empty ones are left out and counted in `skipped`.
    Raises BadInput with the line of a broken quote or a row of the wrong length; no message holds
    text of a note.
    """
    get = "put NOTEEVENTS.csv there or correct its path"
    for _, note in csv_records(path, Note, get):
        if note.ISERROR == "1":
            skipped["marked as an error"] += 1
        else:
            yield from kept(Document(note.ROW_ID, note.TEXT), skipped)
