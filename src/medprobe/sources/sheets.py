"""Sheets for experts: a folder with the items that were drawn, and a sheet for each rater.

An item is a prediction to rate from 1 to 5, or a prompt that states a fact or does not. The items
stand in `items.parquet`, which no rater needs to see; a sheet, CSV or a spreadsheet, shows what is
asked and nothing of the models. Source of the scale: Meng et al., ACL 2022, section 5.3.
"""

import csv
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.errors import BadInput, nearest, quoted
from medprobe.core.files import replacing
from medprobe.core.tables import QUERY_COLUMNS, SLOT, read_table, write_table

FOLDER: Final = "annotations"  # below data/, a folder an evaluation
ITEMS: Final = "items.parquet"
FORMS: Final = ("xlsx", "csv")
SCALES: Final = {  # what is asked: the labels, and what they mean; the last one is right
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
NEEDED: Final = ("item", "rating")  # columns that a filled sheet must have


def write_folder(items: pd.DataFrame, raters: Sequence[str], form: str, folder: Path) -> None:
    """Write items (columns ITEM_COLUMNS, in the order of the sheets) and an empty sheet a rater.
    Raises BadInput where the folder is there already: it may hold somebody's work."""
    if folder.exists():
        raise BadInput(folder, "is there already", "choose another name")
    with replacing(folder) as path:
        path.mkdir()
        write_table(items, path / ITEMS, ITEM_COLUMNS)
        for rater in raters:
            _write(items, path / f"{rater}.{form}")


def _write(items: pd.DataFrame, path: Path) -> None:
    rows = items[["item", "text", "answer"]].assign(rating="", comment="")[SHEET]
    if path.suffix == ".csv":
        rows.to_csv(path, index=False, lineterminator="\n", encoding="utf-8-sig")
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
        cell.data_type = "s"  # "=…" is no formula
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
    """The items that were drawn, columns ITEM_COLUMNS."""
    if not (folder / ITEMS).is_file():
        raise BadInput(folder, f"no {ITEMS}", "make the sheets by `medprobe annotate`")
    return read_table(folder / ITEMS, ITEM_COLUMNS)


def read_ratings(folder: Path, items: pd.DataFrame) -> pd.DataFrame:
    """What all raters of a folder said so far: columns `rater, item, rating`, a row a rating; rows
    of a sheet that are still empty are left out.

    Raises BadInput for the first sheet that lacks a column, or holds an unknown rating, an item
    twice, or an item of another sheet.
    """
    paths = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lstrip(".") in FORMS and not path.name.startswith(("~$", "."))
    )
    if not paths:
        raise BadInput(folder, "no sheet", "put the raters' sheets there, .csv or .xlsx")
    for path, after in pairwise(paths):
        if path.stem == after.stem:
            raise BadInput(after, f"{path.name} is there too", "keep one sheet a rater")
    labels = list(SCALES[str(items["asked"].iloc[0])])
    parts = [_ratings(path, set(items["item"]), labels) for path in paths]
    return pd.concat(parts, ignore_index=True)


def _ratings(path: Path, items: set[str], labels: list[str]) -> pd.DataFrame:
    rows = _rows(path)
    for column in NEEDED:
        if column not in rows:
            known = nearest(column, [str(name) for name in rows])
            problem = f"no column '{column}'{known}"
            raise BadInput(path, problem, "keep the first line as it was written")
    seen: dict[str, int] = {}
    found = []
    ratings = rows["rating"].str.strip().str.lower().str.removesuffix(".0")
    said = zip(rows["item"].str.strip(), ratings, strict=True)
    for line, (item, rating) in enumerate(said, start=2):
        if not item and not rating:
            continue
        where = f"{path}, line {line}"
        if item not in items:
            problem = f"item {quoted(item)} is of another sheet"
            raise BadInput(where, problem, f"keep what `medprobe annotate` wrote to {path.parent}")
        if item in seen:
            raise BadInput(where, f"item '{item}' stands on line {seen[item]} too", "keep one")
        seen[item] = line
        if rating and rating not in labels:
            raise BadInput(where, f"rating {quoted(rating)}", f"write one of: {', '.join(labels)}")
        if rating:
            found.append((path.stem, item, rating))
    return pd.DataFrame(found, columns=["rater", "item", "rating"])


def _rows(path: Path) -> pd.DataFrame:
    """A sheet's rows as text. Programs that use a comma in numbers save CSV with semicolons."""
    try:
        if path.suffix == ".xlsx":
            return pd.read_excel(path, dtype=str, keep_default_na=False, engine="openpyxl")
        with path.open(encoding="utf-8-sig") as stream:
            head = stream.readline()
        mark = max(",;\t", key=head.count)
        return pd.read_csv(
            path, dtype=str, keep_default_na=False, sep=mark, encoding="utf-8-sig", quotechar='"'
        )
    except UnicodeDecodeError as error:
        raise BadInput(path, f"not UTF-8 at byte {error.start}", "save it as UTF-8") from None
    except (ValueError, csv.Error, OSError, KeyError, pd.errors.ParserError) as error:
        raise BadInput(path, f"no table: {error}", "save it anew") from None
    except Exception as error:  # a damaged workbook fails in many ways
        if type(error).__name__ in ("BadZipFile", "InvalidFileException"):
            raise BadInput(path, "no spreadsheet", "save it as .xlsx or .csv") from None
        raise


def shown(prompt: str) -> str:
    """A prompt as a person reads it.

    >>> shown("aspirin might treat [Y] .")
    'aspirin might treat ___ .'
    """
    return prompt.replace(SLOT, "___")
