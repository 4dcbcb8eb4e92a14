"""Identifiers that a program changed, that name too much, or that stand beside another's name."""

import re
from collections.abc import Iterable
from typing import Final

import pandas as pd

from medprobe.gate import umls
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


@row_check
@says("the source has no such name of the id")
def expect_names_to_be_in_umls(rows: pd.DataFrame) -> list[bool]:
    """Each name is one that MRCONSO.RRF has of its concept, letter by letter.

    The columns are pairs: names, or lists of names, and the ids of their concepts.
    """
    columns = [*rows.columns]
    pairs = [
        {
            pair
            for name, id_ in zip(columns[::2], columns[1::2], strict=True)
            for pair in zip(_ids(row[id_]), _ids(row[name]), strict=False)
        }
        for row in rows.to_dict("records")
    ]
    cuis = {cui for of_row in pairs for cui, _ in of_row}
    read = umls.read_names(umls.MRCONSO, cuis, {}, "the gate reads names again")
    known = {(fields[umls.CUI], fields[umls.STR]) for fields in read}
    return [of_row <= known for of_row in pairs]


def _ids(values: object) -> Iterable[str]:
    return [values] if isinstance(values, str) else values  # type: ignore[return-value]
