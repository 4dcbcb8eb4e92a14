"""Identifiers that a program changed, or that name too much."""

import re
from collections.abc import Iterable
from typing import Final

import pandas as pd

from medprobe.gate.checks import row_check, says

CHANGED: Final = re.compile(
    r"nan|NaN|None|null|NULL|N/A|<NA>|#.*[!?]|#N/A|#{2,}|[+-]?\d+(?:\.\d+)?[Ee][+-]?\d+"
)


@row_check
@says("a program changed an id")
def expect_ids_to_be_whole(rows: pd.DataFrame) -> list[bool]:
    """No id is a missing value, an error of a spreadsheet or a number in scientific notation.

    The columns have ids or lists of ids.
    """
    return [
        not any(CHANGED.fullmatch(id_) for ids in row for id_ in _ids(ids))
        for row in rows.itertuples(index=False, name=None)
    ]


@row_check
@says("most names have one id")
def expect_ids_to_tell_apart(rows: pd.DataFrame, at_least: int) -> pd.Series:
    """No id has more than half of all names, if there are at least so many.

    Columns `name, id`. Rows without an id pass.
    """
    name, id_ = rows.columns
    names = rows.groupby(id_)[name].nunique()
    many = rows[name].nunique()
    passes = (names <= many / 2) | (names < at_least) | (names.index == "")
    return rows[id_].map(passes).astype(bool)


def _ids(values: object) -> Iterable[str]:
    return [values] if isinstance(values, str) else values  # type: ignore[return-value]
