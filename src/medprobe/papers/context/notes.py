"""Clinical notes: MIMIC-III's `NOTEEVENTS.csv`, read as a stream of any length."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from medprobe.papers.context.texts import Document, Reader
from medprobe.sources.records import Flag, Name, Record, read_csv_records

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
    CATEGORY: str = ""
    ISERROR: Flag
    TEXT: str


def _read_file(path: Path, skipped: Counter[str]) -> Iterator[Document]:
    """Read the notes of `NOTEEVENTS.csv`; those marked as errors (ISERROR) are counted.

    The demo of MIMIC-III has the names of the columns in lower case.

    Yields:
        Documents; an id is a note's ROW_ID, a category its CATEGORY.

    Raises:
        BadInput: a quote is broken or a row has a wrong length, with the line. No message contains
            text of a note.
    """
    get = "put NOTEEVENTS.csv there or correct its path"
    for where, note in read_csv_records(path, Note, get, name_column=str.upper):
        if note.ISERROR:
            skipped["marked as an error"] += 1
        else:
            yield Document(note.ROW_ID, note.TEXT, note.CATEGORY.strip(), where)


read: Final = Reader(_read_file, (".csv",))
