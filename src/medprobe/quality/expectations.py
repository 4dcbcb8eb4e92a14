"""The expectations that all benchmarks share: on lists, prompts, subsets, and other tables."""

import re

import pandas as pd

from medprobe.quality.checks import row_check, tables, value_check
from medprobe.tables import SLOT


@value_check
def expect_prompts_to_have_one_slot(prompts: pd.Series) -> pd.Series:
    """Each prompt has `[Y]` exactly once."""
    return prompts.str.count(re.escape(SLOT)) == 1


@value_check
def expect_list_lengths_to_be_between(
    lists: pd.Series, min_value: int, max_value: int
) -> pd.Series:
    """Each list has that many items, both ends included."""
    return lists.map(len).between(min_value, max_value)


@value_check
def expect_list_items_to_be_unique(lists: pd.Series) -> pd.Series:
    """No list has an item twice."""
    return lists.map(lambda items: len(set(items)) == len(items))


@value_check
def expect_list_items_to_match_regex(lists: pd.Series, regex: str) -> pd.Series:
    """All items of each list match, from their start to their end."""
    whole = re.compile(regex)
    return lists.map(lambda items: all(whole.fullmatch(item) for item in items))


@row_check
def expect_lists_to_be_aligned(rows: pd.DataFrame) -> pd.Series:
    """The lists of a row are of one length."""
    return rows.map(len).nunique(axis=1) == 1


@row_check
def expect_items_to_be_in_table(rows: pd.DataFrame, other: str, key: str, column: str) -> pd.Series:
    """The last column's items (a list, or one text) are in `column` of another table of the
    benchmark, in the rows whose `key` is the first column's."""
    there = tables.get()[other]
    known = there.groupby(key)[column].agg(set).to_dict()
    first, *_, last = rows.columns

    def inside(group: str, items: object) -> bool:
        wanted = {items} if isinstance(items, str) else set(items)  # type: ignore[call-overload]
        return wanted <= known.get(group, set())

    found = [inside(group, items) for group, items in zip(rows[first], rows[last], strict=True)]
    return pd.Series(found, index=rows.index)


@row_check
def expect_subset_to_be_within(rows: pd.DataFrame, subset: str, whole: str) -> pd.Series:
    """Each row whose first column is `subset` has a row like it (in all other columns) whose first
    column is `whole`."""
    first, *rest = rows.columns
    all_of_it = set(_keys(rows.loc[rows[first] == whole, rest]))
    inside = [key in all_of_it for key in _keys(rows[rest])]
    return (rows[first] != subset) | pd.Series(inside, index=rows.index)


@row_check
def expect_subset_values_to_be_below(rows: pd.DataFrame, subset: str, below: float) -> pd.Series:
    """In rows whose first column is `subset`, the values of all others are less than `below`."""
    first, *rest = rows.columns
    return (rows[first] != subset) | (rows[rest] < below).all(axis=1)


@row_check
def expect_group_sizes_to_be_between(
    rows: pd.DataFrame, min_value: int, max_value: int
) -> pd.Series:
    """As many rows are alike in these columns, both ends included."""
    columns = list(rows.columns)
    sizes = rows.groupby(columns, dropna=False)[columns[0]].transform("size")
    return sizes.between(min_value, max_value)


def _keys(rows: pd.DataFrame) -> list[tuple[object, ...]]:
    """Each row as something that can be looked up, lists too."""
    plain = rows.map(lambda value: value if pd.api.types.is_scalar(value) else tuple(value))
    return list(plain.itertuples(index=False, name=None))
