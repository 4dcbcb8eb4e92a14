"""CSV files that people open in a spreadsheet, which takes some texts for formulas.

A text that begins like a formula is written with an apostrophe before it, as spreadsheets write it
themselves. `read_csv` takes it away, so that a table is read as it was.
"""

import csv
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TextIO

import pandas as pd
from pandas.api.types import is_numeric_dtype

FORMULA_STARTS: Final = ("=", "+", "-", "@")  # after blanks, and in full width too
CONTROLS: Final = ("\t", "\r")  # which some programs skip


def escape_formula(cell: Any) -> Any:
    """Return a cell so that a spreadsheet shows it and computes nothing.

    >>> escape_formula("=1+1"), escape_formula("-2+3"), escape_formula("-2"), escape_formula("gout")
    ("'=1+1", "'-2+3", '-2', 'gout')
    """
    return f"'{cell}" if _is_formula(cell) else cell


def _is_formula(cell: Any) -> bool:
    """Whether a cell begins like a formula, after apostrophes, and is no plain number."""
    if not isinstance(cell, str):
        return False
    plain = unicodedata.normalize("NFKC", cell.lstrip("'"))
    if plain.startswith(CONTROLS):
        return True
    if not plain.lstrip().startswith(FORMULA_STARTS):
        return False
    try:
        float(plain)
    except ValueError:
        return True
    return False


def _restore(cell: Any) -> Any:
    return cell[1:] if _is_formula(cell) and cell.startswith("'") else cell


def csv_text(table: pd.DataFrame, float_format: str | None = None) -> str:
    """Format a table as CSV, with its numbers as `float_format` says, such as `%.6g`."""
    safe = _map_texts(table, escape_formula)
    options = {"index": False, "float_format": float_format, "lineterminator": "\n"}
    text = str(safe.to_csv(**options))
    # A carriage return ends a line unless it is quoted, which Python does only for "\n".
    return str(safe.to_csv(**options, quoting=csv.QUOTE_ALL)) if "\r" in text else text


def read_csv(path: Path | TextIO, **options: Any) -> pd.DataFrame:
    """Read a table that `csv_text` formatted, with options of `pandas.read_csv`."""
    return _map_texts(pd.read_csv(path, **options), _restore)


def _map_texts(table: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    """Change the cells that begin like a formula, and such names of columns."""
    changed = table.rename(columns=change)
    for place, (_, column) in enumerate(table.items()):
        if not is_numeric_dtype(column) and any(map(_is_formula, column)):
            changed.isetitem(place, column.map(change))
    return changed
