"""The expectations that all benchmarks share: on lists, prompts, subsets, and other tables."""

import re

import pandas as pd

from medprobe.core.tables import SLOT
from medprobe.quality.checks import row_check, tables, value_check


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


@row_check
def expect_groups_to_be_of_like_size(rows: pd.DataFrame, share: float) -> pd.Series:
    """Columns of which the last names a group, such as a relation, and the others what it is a
    part of, such as a subset: no group is smaller than this share of its part's median group."""
    *part, _ = columns = list(rows.columns)
    sizes = rows.groupby(columns, dropna=False).size()
    enough = sizes >= share * sizes.groupby(part).transform("median")
    return pd.MultiIndex.from_frame(rows).map(enough).to_series(rows.index).astype(bool)


@row_check
def expect_rows_to_be_used(
    rows: pd.DataFrame,
    *,
    what: str,
    other: str,
    by: str,
    share: float,
    where: str = "",
    distinct: str = "",
    name: str = "(.*)",
    value: str = "(.*)",
    dropped: str = "",
    at_most: int | None = None,
    at_least: int = 1,
) -> pd.Series:
    """Columns `what, name, rows` of the table `sources`: of the things of this `what`, at least
    this share has come into the table `other`, name by name.

    There, `where` chooses rows (a pandas query), the column `by` holds the names, and `distinct`
    is a column whose different values count in place of rows. `name` and `value` are patterns
    whose group is the name in either table. What a rule has dropped, counted in `sources` too, as
    the `what` of `dropped`, is not expected there; no more than `at_most` is, where a builder draws
    so many; nothing where there are fewer than `at_least`.
    """
    kind, names, numbers = (rows[column] for column in rows.columns)
    there = tables.get()[other]
    there = there.query(where) if where else there
    held = there[by].astype(str).str.extract(f"^{value}$", expand=False)
    count = there[distinct].groupby(held).nunique() if distinct else held.value_counts()
    found = names.str.extract(f"^{name}$", expand=False)
    mine = (kind == what) & found.notna()
    if not mine.any():
        return pd.Series(False, index=rows.index)
    left_out = numbers[kind == dropped].groupby(names[kind == dropped]).sum()
    expected = numbers - names.map(left_out).fillna(0)
    expected = expected.clip(upper=at_most).where(expected >= at_least, 0)
    return ~mine | (found.map(count).fillna(0) >= share * expected)


def _keys(rows: pd.DataFrame) -> list[tuple[object, ...]]:
    """Each row as something that can be looked up, lists too."""
    plain = rows.map(lambda value: value if pd.api.types.is_scalar(value) else tuple(value))
    return list(plain.itertuples(index=False, name=None))
