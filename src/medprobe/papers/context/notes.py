"""Clinical notes: `NOTEEVENTS.csv` of MIMIC-III, `discharge.csv` and `radiology.csv` of MIMIC-IV.

They are read as a stream of any length, from CSV or Parquet.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.papers.context.texts import Document, Reader
from medprobe.sources.parquet import partition_fields, read_parquet_rows
from medprobe.sources.records import Flag, Name, Record, read_csv_records, validate

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


OF_MIMIC_IV: Final = {"NOTE_ID": "ROW_ID", "NOTE_TYPE": "CATEGORY"}  # its names of columns
CATEGORIES: Final = {  # by MIMIC-IV's types: reports and their addenda
    **dict.fromkeys(("DS", "AD"), "Discharge summary"),
    **dict.fromkeys(("RR", "AR"), "Radiology"),
}
GET: Final = "put MIMIC-III's NOTEEVENTS.csv or MIMIC-IV's discharge.csv there, or correct its path"


class Note(Record):
    """The columns that are read. MIMIC-IV marks no note as an error."""

    ROW_ID: Name
    CATEGORY: str = ""
    ISERROR: Flag = False
    TEXT: str


def _read_file(path: Path, skipped: Counter[str]) -> Iterator[Document]:
    """Read the notes of a file; those marked as errors (ISERROR) are counted.

    MIMIC-IV and the demo of MIMIC-III have the names of the columns in lower case.
    """
    for where, note in _rows(path):
        if note.ISERROR:
            skipped["marked as an error"] += 1
        else:
            category = note.CATEGORY.strip()
            yield Document(note.ROW_ID, note.TEXT, CATEGORIES.get(category, category), where)


def _rows(path: Path) -> Iterator[tuple[str, Note]]:
    if path.suffix.lower() != ".parquet":
        yield from read_csv_records(path, Note, GET, name_column=_column)
        return
    given = partition_fields(path.parent.parts)
    for where, row in read_parquet_rows(path):
        values = {**given, **row}.items()
        fields = {_column(name): "" if pd.isna(v) else str(v) for name, v in values}
        yield where, validate(where, fields, Note, GET)


def _column(name: str) -> str:
    return OF_MIMIC_IV.get(name.upper(), name.upper())


read: Final = Reader(_read_file, (".csv", ".parquet"))
