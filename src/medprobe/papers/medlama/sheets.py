"""Sheets for experts: a folder with the drawn items, and one sheet per rater.

An item is a prediction to rate from 1 to 5, or a prompt that states a fact or does not. The items
are in `items.parquet`, which raters do not need; a sheet, CSV or a spreadsheet, shows the question
and hides the models. Source of the scale: Meng et al., ACL 2022, section 5.3.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final
from zipfile import ZipFile

import pandas as pd
from pydantic import AfterValidator

from medprobe.core.errors import BadInput, quote
from medprobe.core.files import replacing
from medprobe.core.spreadsheets import csv_text
from medprobe.core.tables import QUERY_COLUMNS, read_table, write_table
from medprobe.sources.records import Record, read_csv_rows, read_lines, validate

FOLDER: Final = "annotations"  # in data/, one folder per evaluation
ITEMS: Final = "items.parquet"
FORMS: Final = ("xlsx", "csv")
SCALES: Final = {  # question: its labels and their meanings; the last label means right
    "predictions": {
        "1": "completely unrelated",
        "2": "same domain or slight relation",
        "3": "related to the query but not correct",
        "4": "similar to the gold answer, could somehow be the answer",
        "5": "perfectly answers the query",
    },
    "prompts": {"no": "states no fact", "yes": "states a fact"},
}
SHEET: Final = ["item", "text", "answer", "rating", "comment"]
ITEM_COLUMNS: Final = ["item", "asked", "text", "answer", *QUERY_COLUMNS]
LARGEST: Final = 64_000_000  # bytes of a workbook, unzipped
MOST_ROWS: Final = 20_000
MOST_COLUMNS: Final = 100
KEEP: Final = "keep the lines as they were written"


class Rating(Record):
    """A row of a filled-in sheet. A rating is a label of its scale, or empty."""

    item: Annotated[str, AfterValidator(str.strip)]
    rating: Annotated[str, AfterValidator(lambda text: text.strip().lower().removesuffix(".0"))]


def write_folder(items: pd.DataFrame, raters: Sequence[str], form: str, folder: Path) -> None:
    """Write the items of an evaluation and an empty sheet per rater.

    Args:
        items: columns ITEM_COLUMNS, in the order of the sheets.
        raters: their names.
        form: one of FORMS.
        folder: the folder to write.

    Raises:
        BadInput: the folder exists, since it can contain finished ratings.
    """
    if folder.exists():
        raise BadInput(folder, "already exists", "choose another name")
    with replacing(folder) as path:
        path.mkdir()
        write_table(items, path / ITEMS, ITEM_COLUMNS)
        for rater in raters:
            _write(items, path / f"{rater}.{form}")


def _write(items: pd.DataFrame, path: Path) -> None:
    rows = items[["item", "text", "answer"]].assign(rating="", comment="")[SHEET]
    if path.suffix == ".csv":
        path.write_text(csv_text(rows), encoding="utf-8-sig")
        return
    from openpyxl import Workbook
    from openpyxl.worksheet.datavalidation import DataValidation

    scale = SCALES[str(items["asked"].iloc[0])]
    book = Workbook()
    sheet = book.active
    sheet.title = "items"
    for row in [SHEET, *rows.to_numpy().tolist()]:
        sheet.append(row)
    for cell in (cell for line in sheet.iter_rows() for cell in line if cell.value):
        cell.data_type = "s"  # so that "=…" is not a formula
    allowed = DataValidation("list", formula1=f'"{",".join(scale)}"', allow_blank=True)
    allowed.add(f"D2:D{len(rows) + 1}")
    sheet.add_data_validation(allowed)
    for column, width in zip("ABCDE", (14, 60, 40, 8, 40), strict=True):
        sheet.column_dimensions[column].width = width
    sheet.freeze_panes = "A2"
    meanings = book.create_sheet("scale")
    for meaning in [("rating", "meaning"), *scale.items()]:
        meanings.append(meaning)
    book.save(path)


def read_items(folder: Path) -> pd.DataFrame:
    """Read the drawn items, columns ITEM_COLUMNS."""
    if not (folder / ITEMS).is_file():
        raise BadInput(folder, f"no {ITEMS}", "make the sheets by `medprobe annotate`")
    return read_table(folder / ITEMS, ITEM_COLUMNS)


def read_ratings(folder: Path, items: pd.DataFrame) -> pd.DataFrame:
    """Read all raters' ratings so far. Rows without a rating are left out.

    Args:
        folder: of the sheets.
        items: the drawn items.

    Returns:
        One row per rating, columns `rater, item, rating`.

    Raises:
        BadInput: a sheet lacks a column, or has an unknown rating, an item twice, or an item that
            was not drawn.
    """
    paths = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lstrip(".") in FORMS and not path.name.startswith(("~$", "."))
    )
    if not paths:
        raise BadInput(folder, "no sheet", "put the raters' sheets there, .csv or .xlsx")
    for path, next_path in pairwise(paths):
        if path.stem == next_path.stem:
            raise BadInput(next_path, f"{path.name} is also there", "keep one sheet per rater")
    labels = list(SCALES[str(items["asked"].iloc[0])])
    parts = [_ratings(path, set(items["item"]), labels) for path in paths]
    return pd.concat(parts, ignore_index=True)


def _ratings(path: Path, items: set[str], labels: list[str]) -> pd.DataFrame:
    first_places: dict[str, str] = {}
    ratings = []
    for where, fields in _workbook(path) if path.suffix == ".xlsx" else _table(path):
        row = validate(where, fields, Rating, KEEP)
        if not row.item and not row.rating:
            continue
        if row.item not in items:
            problem = f"item {quote(row.item)} is from another sheet"
            raise BadInput(where, problem, f"keep what `medprobe annotate` wrote to {path.parent}")
        if row.item in first_places:
            raise BadInput(
                where, f"item '{row.item}' is also on {first_places[row.item]}", "keep one"
            )
        first_places[row.item] = where.rpartition(", ")[2]
        if row.rating and row.rating not in labels:
            raise BadInput(
                where, f"rating {quote(row.rating)}", f"write one of: {', '.join(labels)}"
            )
        if row.rating:
            ratings.append((path.stem, row.item, row.rating))
    return pd.DataFrame(ratings, columns=["rater", "item", "rating"])


def _table(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A sheet's rows. Programs that use a comma in numbers save CSV with semicolons."""
    _, head = next(read_lines(path, KEEP), ("", ""))
    return read_csv_rows(
        path, KEEP, needed=Rating.model_fields, delimiter=max(",;\t", key=head.count), remedy=KEEP
    )


def _workbook(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a workbook's first sheet.

    A small file can unzip to gigabytes, and a sheet can have a single cell far out: both are
    refused.
    """
    from openpyxl import load_workbook

    try:
        with ZipFile(path) as parts:
            size = sum(part.file_size for part in parts.infolist())
        if size > LARGEST:
            raise BadInput(path, f"{size:,} bytes unzipped, expected at most {LARGEST:,}", KEEP)
        sheet = load_workbook(path, read_only=True, data_only=True).worksheets[0]
        head, *table = sheet.iter_rows(1, MOST_ROWS + 1, 1, MOST_COLUMNS, values_only=True)
        if len(table) == MOST_ROWS:
            raise BadInput(path, f"{MOST_ROWS:,} lines or more", KEEP)
    except BadInput:
        raise
    except Exception:  # a damaged workbook fails in many ways
        raise BadInput(path, "not a spreadsheet", "save it as .xlsx or .csv") from None
    for number, row in enumerate(table, start=2):
        cells = ("" if cell is None else str(cell) for cell in row)
        yield f"{path}, line {number}", dict(zip(map(str, head), cells, strict=True))
