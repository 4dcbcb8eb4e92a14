"""DisKnE's annotation: which pairs say that the patient has a disease, and what infers it.

Two forms are read: the sheet that medprobe writes and a person fills in, and the files that
DisKnE's authors released. Source: Alghanmi et al. 2021, section 3.1.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing

CATEGORIES: Final = ("symptoms", "treatments", "tests", "procedures", "terminological")
RELEASED_CATEGORIES: Final = {
    "symptoms_diseases": "symptoms",
    "treatments_diseases": "treatments",
    "tests_diseases": "tests",
    "procedure_diseases": "procedures",
}
LABELS: Final = {"entailment": 1, "non-entailment": 0}
NEGATIVE: Final = ",ng"  # ends the pair id of a negative row
COLUMNS: Final = ["pair_id", "cui", "label", "category", "original_cui", "start", "end"]
SHEET: Final = ["pair_id", "premise", "hypothesis", "disease", "cui", "start", "end", "category"]
KEEP: Final = "keep"  # the sheet's last column: yes, no, or empty where nobody has looked yet
CUI: Final = re.compile(r"C\d{7}")


def read_released(path: Path) -> pd.DataFrame:
    """A released `DisknE_*_annotation.csv`, row for row.

    Columns `pair_id, cui, label` (1 or 0), `category, original_cui, start, end`: the disease is
    `hypothesis[start:end]`, and -1 in negatives. Files without a category are terminological.
    Raises BadInput with the line of the first row that is amiss.
    """
    return pd.DataFrame([_released_row(where, row) for where, row in _rows(path)], columns=COLUMNS)


def _released_row(where: str, row: dict[str, str]) -> tuple[object, ...]:
    try:
        pair, cui, label, original = (
            row[name] for name in ("pair_id", "CUI", "label", "original_cui")
        )
        start, end = row["start_index"], row["end_index"]
    except KeyError as error:
        raise BadInput(where, f"no column {error.args[0]}", "fetch the file anew") from None
    category = "terminological"
    if "category" in row:
        if row["category"] not in RELEASED_CATEGORIES:
            raise _unknown(where, "category", row["category"], list(RELEASED_CATEGORIES))
        category = RELEASED_CATEGORIES[row["category"]]
    if label not in LABELS:
        raise _unknown(where, "label", label, list(LABELS))
    _check_cui(where, cui)
    _check_cui(where, original)
    if not LABELS[label]:
        return pair.removesuffix(NEGATIVE), cui, 0, category, original, -1, -1
    first, last = _span(where, start, end)
    return pair, cui, 1, category, original, first, last + 1


def read_sheet(path: Path) -> pd.DataFrame:
    """The rows of a filled-in sheet that are kept, as positives: columns as of `read_released`.

    Raises BadInput for the first row that is amiss, and where nobody has said yes or no.
    """
    kept = []
    for where, row in _rows(path):
        if missing := [name for name in (*SHEET, KEEP) if row.get(name) is None]:
            raise BadInput(where, f"no column {missing[0]}", "start from a fresh sheet")
        answer = row[KEEP].strip().lower()
        if answer not in ("yes", "no"):
            raise BadInput(where, f"keep is {row[KEEP]!r}", "expected yes or no")
        if answer == "no":
            continue
        _check_cui(where, row["cui"])
        if row["category"] not in CATEGORIES:
            raise _unknown(where, "category", row["category"], list(CATEGORIES))
        start, end = _span(where, row["start"], row["end"])
        kept.append((row["pair_id"], row["cui"], 1, row["category"], row["cui"], start, end))
    return pd.DataFrame(kept, columns=COLUMNS)


def write_sheet(candidates: pd.DataFrame, path: Path) -> None:
    """Write candidates (the columns of SHEET) for a person to fill in: `keep` is empty, and the
    category a suggestion to correct."""
    with replacing(path) as scratch:
        sheet = candidates[SHEET].assign(**{KEEP: ""})
        sheet.to_csv(scratch, index=False, lineterminator="\n")


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """`(file and line, row)`; a row of another length than the header is an error."""
    if not path.is_file():
        raise BadInput(path, "no such file")
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                if len(row) != len(header):
                    raise BadInput(where, f"{len(row)} fields, expected {len(header)}")
                yield where, dict(zip(header, row, strict=True))
        except csv.Error as error:
            raise BadInput(f"{path}, line {reader.line_num}", str(error)) from None
        except UnicodeDecodeError as error:
            raise BadInput(path, f"not UTF-8 at byte {error.start}", "convert the file") from None


def _span(where: str, start: str, end: str) -> tuple[int, int]:
    if not (start.isdecimal() and end.isdecimal() and int(start) <= int(end)):
        raise BadInput(where, f"span {start!r} to {end!r}", "expected two rising whole numbers")
    return int(start), int(end)


def _check_cui(where: str, cui: str) -> None:
    if not CUI.fullmatch(cui):
        raise BadInput(where, f"{cui!r} is no CUI", "expected C and 7 digits")


def _unknown(where: str, what: str, found: str, known: list[str]) -> BadInput:
    return BadInput(where, f"{what} {found!r}{nearest(found, known)}", f"one of {', '.join(known)}")
