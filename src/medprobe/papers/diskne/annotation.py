"""DisKnE's annotation: which pairs say that the patient has a disease, and what it follows from.

Two formats are read: the sheet that medprobe writes and a person fills in, and the files that
DisKnE's authors released, which name concepts of UMLS 2020AA. Source: Alghanmi et al. 2021,
section 3.1.
"""

from pathlib import Path
from typing import Annotated, Final, Literal, Self, get_args

import pandas as pd
from pydantic import BeforeValidator, model_validator

from medprobe.core.errors import BadInput, quote
from medprobe.core.files import replacing
from medprobe.sources.records import (
    DOWNLOAD_AGAIN,
    Count,
    Cui,
    Name,
    Record,
    read_csv_records,
    read_csv_rows,
    validate,
)

Category = Literal["symptoms", "treatments", "tests", "procedures", "terminological"]
CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
ReleasedCategory = Literal[
    "symptoms_diseases", "treatments_diseases", "tests_diseases", "procedure_diseases"
]
RELEASED_CATEGORIES: Final[dict[ReleasedCategory, Category]] = {
    "symptoms_diseases": "symptoms",
    "treatments_diseases": "treatments",
    "tests_diseases": "tests",
    "procedure_diseases": "procedures",
}
MARKS: Final = (",ng", ",neg")  # end a negative's pair id: in the files, in the released reader
COLUMNS: Final = ["pair_id", "cui", "label", "category", "original_cui", "start", "end"]
SHEET: Final = ["pair_id", "premise", "hypothesis", "disease", "cui", "start", "end", "category"]
KEEP: Final = "keep"  # the sheet's last column: yes, no, or empty if not annotated yet
OF_POSITIVE: Final = ["pair_id", "category", "original_cui"]  # what a positive's negatives share
GET: Final = "put the annotation there"
FRESH: Final = "correct the row or start from a fresh sheet"


class ReleasedRow(Record):
    """A row of a released file."""

    pair_id: Name
    CUI: Cui
    label: Literal["entailment", "non-entailment"]
    category: ReleasedCategory | None = None
    original_cui: Cui
    start_index: str  # of positives a number
    end_index: str


class Span(Record):
    """Where the disease is in the hypothesis."""

    start: Count
    end: Count

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.start > self.end:
            raise ValueError(f"span {self.start} to {self.end}, expected two rising numbers")
        return self


class Decision(Record):
    """Whether a row of the sheet is kept."""

    keep: Annotated[Literal["yes", "no"], BeforeValidator(lambda text: text.strip().lower())]


class SheetRow(Span):
    """A row of the sheet that is kept."""

    pair_id: Name
    cui: Cui
    category: Category


def read_released(path: Path) -> pd.DataFrame:
    """Read a released `DisknE_*_annotation.csv`.

    Files without a category are terminological.

    Returns:
        One row per row of the file, columns `pair_id, cui, label` (1 or 0), `category,
        original_cui, start, end`: the disease is `hypothesis[start:end]`; both are -1 in negatives.
    """
    numbered = list(read_csv_records(path, ReleasedRow, GET))
    rows = pd.DataFrame([_released_row(where, row) for where, row in numbered], columns=COLUMNS)
    positive_pairs = set(rows.loc[rows["label"] == 1, "pair_id"])
    for place in rows.index[~rows["pair_id"].isin(positive_pairs)][:1]:
        problem = f"pair {quote(rows.loc[place, 'pair_id'])} has a negative but no positive"
        raise BadInput(numbered[place][0], problem, DOWNLOAD_AGAIN)
    return rows


def is_premise(ids: pd.Series) -> pd.Series:
    """Which ids contain a blank: they are the text of a premise, as two of the release are."""
    return ids.str.contains(" ", regex=False)


def _released_row(where: str, row: ReleasedRow) -> tuple[object, ...]:
    pair, cui, original = row.pair_id, row.CUI, row.original_cui
    positive = row.label == "entailment"
    category = RELEASED_CATEGORIES[row.category] if row.category else "terminological"
    if pair.endswith(MARKS) == positive:
        problem = f"pair id {quote(pair)} {'ends' if positive else 'does not end'} in ,ng"
        raise BadInput(where, f"{problem}, but the label is {row.label}", DOWNLOAD_AGAIN)
    if (cui == original) != positive:
        problem = f"CUI {cui} and original_cui {original} are {'not ' * positive}the same"
        raise BadInput(where, f"{problem}, but the label is {row.label}", DOWNLOAD_AGAIN)
    if not positive:
        return pair.rpartition(",")[0], cui, 0, category, original, -1, -1
    span = validate(where, {"start": row.start_index, "end": row.end_index}, Span)
    return pair, cui, 1, category, original, span.start, span.end + 1


def read_sheet(path: Path) -> pd.DataFrame:
    """Read the rows of a filled-in sheet whose `keep` is yes, as positives."""
    positives = []
    for where, row in read_csv_rows(path, GET, needed=[*SHEET, KEEP], remedy=FRESH):
        if validate(where, row, Decision, "write yes or no").keep == "yes":
            pair = validate(where, row, SheetRow, FRESH)
            span = (pair.start, pair.end)
            positives.append((pair.pair_id, pair.cui, 1, pair.category, pair.cui, *span))
    return pd.DataFrame(positives, columns=COLUMNS)


def write_sheet(candidates: pd.DataFrame, path: Path) -> None:
    """Write candidates (the columns of SHEET) for a person to fill in.

    `keep` is empty; the category is a suggestion that can be corrected.
    """
    with replacing(path) as scratch:
        sheet = candidates[SHEET].assign(**{KEEP: ""})
        sheet.to_csv(scratch, index=False, lineterminator="\n")
