"""DisKnE's annotation: which pairs say that the patient has a disease, and what infers it.

Two forms are read: the sheet that medprobe writes and a person fills in, and the files that
DisKnE's authors released, which name concepts of UMLS 2020AA. Source: Alghanmi et al. 2021,
section 3.1.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import pandas as pd

from medprobe.core.errors import BadInput, nearest, quoted
from medprobe.core.files import replacing

Category = Literal["symptoms", "treatments", "tests", "procedures", "terminological"]
CATEGORIES: Final[tuple[Category, ...]] = (
    *("symptoms", "treatments", "tests", "procedures"),  # medical knowledge
    "terminological",
)
RELEASED_CATEGORIES: Final = {
    "symptoms_diseases": "symptoms",
    "treatments_diseases": "treatments",
    "tests_diseases": "tests",
    "procedure_diseases": "procedures",
}
LABELS: Final = {"entailment": 1, "non-entailment": 0}
MARKS: Final = (",ng", ",neg")  # end a negative's pair id: in the files, in the released reader
COLUMNS: Final = ["pair_id", "cui", "label", "category", "original_cui", "start", "end"]
SHEET: Final = ["pair_id", "premise", "hypothesis", "disease", "cui", "start", "end", "category"]
KEEP: Final = "keep"  # the sheet's last column: yes, no, or empty where nobody has looked yet
CUI: Final = re.compile(r"C\d{7}")
OF_POSITIVE: Final = ["pair_id", "category", "original_cui"]  # what a positive's negatives share


def read_released(path: Path) -> pd.DataFrame:
    """A released `DisknE_*_annotation.csv`, row for row.

    Columns `pair_id, cui, label` (1 or 0), `category, original_cui, start, end`: the disease is
    `hypothesis[start:end]`, and -1 in negatives. Files without a category are terminological.
    Raises BadInput with the line of the first row that is amiss: a positive that is of another
    disease than it says, a negative that is of its positive's, a label that the pair id's mark
    belies, a negative of a pair that has no positive.
    """
    numbered = list(_rows(path))
    rows = pd.DataFrame([_released_row(where, row) for where, row in numbered], columns=COLUMNS)
    known = set(rows.loc[rows["label"] == 1, "pair_id"])
    for place in rows.index[~rows["pair_id"].isin(known)][:1]:
        problem = f"pair {rows.loc[place, 'pair_id']} has a negative and no positive"
        raise BadInput(numbered[place][0], problem, "fetch the file anew")
    return rows


def oddities(rows: pd.DataFrame) -> pd.DataFrame:
    """What is odd about each row of a released file, and no reason to refuse it. Booleans, a row
    each: `twice`, a row like an earlier one; `alone`, a positive without negatives, or a negative
    whose disease is not that of a positive of its pair and category; `by_premise`, a premise's text
    in place of a pair's id."""
    key = pd.MultiIndex.from_frame(rows[OF_POSITIVE])
    positive = rows["label"] == 1
    paired = key.isin(key[~positive]) & key.isin(key[positive])
    return pd.DataFrame(
        {
            "twice": rows.duplicated([*OF_POSITIVE, "cui", "label"]),
            "alone": ~paired,
            "by_premise": is_premise(rows["pair_id"]),
        }
    )


def is_premise(ids: pd.Series) -> pd.Series:
    """Which ids hold a blank: they are no ids but the text of a premise, as two of the release."""
    return ids.str.contains(" ", regex=False)


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
    marked = pair.endswith(MARKS)
    if marked == bool(LABELS[label]):
        problem = f"pair id {pair!r} {'ends' if marked else 'does not end'} in ,ng"
        raise BadInput(where, f"{problem}, but the label is {label}", "fetch the file anew")
    if (cui == original) != bool(LABELS[label]):
        problem = f"CUI {cui} and original_cui {original} are {'not ' * (cui != original)}the same"
        raise BadInput(where, f"{problem}, but the label is {label}", "fetch the file anew")
    if not LABELS[label]:
        return pair.rpartition(",")[0], cui, 0, category, original, -1, -1
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
            raise BadInput(where, f"keep is {quoted(row[KEEP])}", "expected yes or no")
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
    digits = start.isdecimal() and end.isdecimal() and max(len(start), len(end)) < 10
    if not (digits and int(start) <= int(end)):
        raise BadInput(
            where, f"span {quoted(start)} to {quoted(end)}", "expected two rising whole numbers"
        )
    return int(start), int(end)


def _check_cui(where: str, cui: str) -> None:
    if not CUI.fullmatch(cui):
        raise BadInput(where, f"{quoted(cui)} is no CUI", "expected C and 7 digits")


def _unknown(where: str, what: str, found: str, known: list[str]) -> BadInput:
    return BadInput(
        where, f"{what} {quoted(found)}{nearest(found, known)}", f"one of {', '.join(known)}"
    )
