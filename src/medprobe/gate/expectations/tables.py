"""The expectations that all benchmarks share: on lists, prompts, subsets, and other tables."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core.tables import SLOT
from medprobe.gate.checks import (
    Context,
    is_filled,
    limits,
    row_check,
    says,
    value_check,
)

SUBJECT = "[X]"  # in templates


def _other_length(kwargs: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    column = kwargs["column"]
    count = len(row.get(column, ()))
    return f"{column} has {count} items, not {limits(kwargs)}" if count else f"{column} is empty"


def _other_item(kwargs: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    column = kwargs["column"]
    filled = all(map(is_filled, row.get(column, ())))
    return f"an item of {column} {'has another form' if filled else 'is empty'}"


def _lengths(kwargs: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    counts = [f"{column} has {len(row.get(column, ()))}" for column in kwargs["column_list"]]
    return f"{' items, '.join(counts)} items"


@value_check
@says("the prompt has no slot [Y], or several")
def expect_prompts_to_have_one_slot(prompts: pd.Series) -> pd.Series:
    """Each prompt has `[Y]` exactly once."""
    return prompts.str.count(re.escape(SLOT)) == 1


@row_check
def expect_prompts_to_follow_one_template(rows: pd.DataFrame) -> pd.Series:
    """All prompts of a group are one template, filled with their own subjects.

    The last two columns are subject and prompt, those before them the group, such as subset and
    relation. The template is the one that most prompts of the group have. So a prompt with another
    subject, without its subject, or with an answer fails.
    """
    *_, subject, prompt = rows.columns
    filled = [
        template.replace(SUBJECT, name)
        for template, name in zip(_templates(rows), rows[subject], strict=True)
    ]
    return rows[prompt] == filled


@row_check
@says("the prompt names another subject, and not its own")
def expect_prompts_to_name_their_subject(rows: pd.DataFrame) -> list[bool]:
    """No prompt names another subject of its relation in place of its own.

    Columns `relation, subject, prompt`. Where it does, prompts have slipped by a row.
    """
    relation, subject, _ = rows.columns
    subjects = rows[subject].map(_plain).groupby(rows[relation]).agg(set).to_dict()
    longest = {name: max(map(str.count, of, repeat(" "))) for name, of in subjects.items()}
    accepted = []
    for name, own, prompt in rows.itertuples(index=False, name=None):
        words = _plain(prompt).split()
        starts = range(len(words)) if f" {_plain(own)} " not in f" {' '.join(words)} " else ()
        ends = range(1, longest[name] + 2)
        accepted.append(
            not any(" ".join(words[n : n + end]) in subjects[name] for n in starts for end in ends)
        )
    return accepted


@row_check
def expect_prompts_to_hold_no_answer(rows: pd.DataFrame) -> list[bool]:
    """No prompt has an answer among its words, the subject aside.

    Columns `subject, prompt, answers`.
    """
    return [
        not has_answer(prompt.replace(subject, " ") if subject else prompt, answers)
        for subject, prompt, answers in rows.itertuples(index=False, name=None)
    ]


@row_check
def expect_templates_to_differ(rows: pd.DataFrame) -> pd.Series:
    """No two relations of a subset have one template.

    Columns `subset, relation, subject, prompt`. Of such relations the one with the most rows
    passes.
    """
    subset, relation, *_ = rows.columns
    groups = rows[relation].groupby([rows[subset], _templates(rows)])
    return rows[relation] == groups.transform(lambda values: values.value_counts().index[0])


@value_check
@says(_other_length)
def expect_list_lengths_to_be_between(
    lists: pd.Series, min_value: int, max_value: int
) -> pd.Series:
    """Each list has that many items, both ends included."""
    return lists.map(len).between(min_value, max_value)


@value_check
@says(lambda kwargs, _: f"{kwargs['column']} has an item twice")
def expect_list_items_to_be_unique(lists: pd.Series) -> pd.Series:
    """No list has an item twice."""
    return lists.map(lambda items: len(set(items)) == len(items))


@value_check
@says(_other_item)
def expect_list_items_to_match_regex(lists: pd.Series, regex: str) -> pd.Series:
    """All items of each list match, from their start to their end."""
    pattern = re.compile(regex)
    return lists.map(lambda items: all(pattern.fullmatch(item) for item in items))


@row_check
@says(_lengths)
def expect_lists_to_be_aligned(rows: pd.DataFrame) -> pd.Series:
    """The lists of a row are of one length."""
    return rows.map(len).nunique(axis=1) == 1


@row_check
def expect_item_to_be_in_list(rows: pd.DataFrame) -> list[bool]:
    """The first column's item is in the second column's list."""
    item_column, list_column = rows.columns
    pairs = zip(rows[item_column], rows[list_column], strict=True)
    return [item in items for item, items in pairs]


@row_check
def expect_answers_to_be_ranked(rows: pd.DataFrame, context: Context) -> list[bool]:
    """Each answer, by its id, has a name among the candidates of the subset.

    Columns `subset, answers, answer_ids`. An answer can have several names, and so several items.
    """
    candidates = context.tables["candidates"].groupby("subset")["name"].agg(set)
    is_ranked = []
    for subset, answers, ids in rows.itertuples(index=False, name=None):
        names = candidates.get(subset, set())
        ranked = {id_ for name, id_ in zip(answers, ids, strict=False) if name in names}
        is_ranked.append(ranked == set(ids))
    return is_ranked


@row_check
def expect_candidates_to_have_answers_ids(
    rows: pd.DataFrame, context: Context, other: str
) -> list[bool]:
    """A candidate that is a subject or an answer has an id of one in the table `other`.

    Columns `name, id`. Two concepts can have one name, of which candidates have the first id.
    """
    name, id_ = rows.columns
    columns = ["subject", "subject_id", "answers", "answer_ids"]
    ids_by_name: dict[str, set[str]] = defaultdict(set)
    queries = context.tables[other][columns].dropna()
    for subject, subject_id, answers, ids in queries.itertuples(index=False, name=None):
        for text, id_of_text in [(subject, subject_id), *zip(answers, ids, strict=False)]:
            ids_by_name[text].add(id_of_text)
    return [
        id_of_row in ids_by_name.get(text, {id_of_row})
        for text, id_of_row in zip(rows[name], rows[id_], strict=True)
    ]


@row_check
def expect_items_to_be_in_table(
    rows: pd.DataFrame, context: Context, other: str, key: str, column: str
) -> list[bool]:
    """The last column's items are in `column` of another table of the benchmark.

    They are a list or one text, and must be in the rows whose `key` equals the first column.
    """
    other_table = context.tables[other]
    items_by_key = other_table.groupby(key)[column].agg(set).to_dict()
    key_column, *_, item_column = rows.columns

    def is_in_table(group: str, items: object) -> bool:
        needed = {items} if isinstance(items, str) else set(items)  # type: ignore[call-overload]
        return needed <= items_by_key.get(group, set())

    return [
        is_in_table(group, items)
        for group, items in zip(rows[key_column], rows[item_column], strict=True)
    ]


@row_check
def expect_subset_to_be_within(rows: pd.DataFrame, subset: str, whole: str) -> pd.Series:
    """Each row of `subset` has an equal row of `whole`.

    The first column names the subset; rows are equal in all other columns.
    """
    subset_column, *columns = rows.columns
    whole_keys = set(_keys(rows.loc[rows[subset_column] == whole, columns]))
    is_within = np.array([key in whole_keys for key in _keys(rows[columns])], bool)
    return (rows[subset_column] != subset) | is_within


@row_check
def expect_subset_values_to_be_below(rows: pd.DataFrame, subset: str, below: float) -> pd.Series:
    """In rows whose first column is `subset`, the values of all others are less than `below`."""
    subset_column, *columns = rows.columns
    return (rows[subset_column] != subset) | (rows[columns] < below).all(axis=1)


@row_check
def expect_group_sizes_to_be_between(
    rows: pd.DataFrame, min_value: int, max_value: int
) -> pd.Series:
    """The number of rows that are equal in these columns is between these, both included."""
    columns = list(rows.columns)
    sizes = rows.groupby(columns, dropna=False)[columns[0]].transform("size")
    return sizes.between(min_value, max_value)


@row_check
def expect_groups_to_be_of_like_size(rows: pd.DataFrame, share: float) -> pd.Series:
    """No group is smaller than this share of its part's median group.

    The last column names a group, such as a relation, and the others what it is a part of, such as
    a subset. Of two middle groups the smaller one is the median, so that a large
    group makes no other one small.
    """
    *part, _ = columns = list(rows.columns)
    sizes = rows.groupby(columns, dropna=False).size()
    median = sizes.groupby(part).transform(lambda group: group.quantile(interpolation="lower"))
    return pd.MultiIndex.from_frame(rows).map(sizes >= share * median).to_series(rows.index)


@row_check
def expect_rows_to_be_used(
    rows: pd.DataFrame,
    context: Context,
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
) -> pd.Series | bool:
    """Enough rows of each source are used.

    Columns `what, name, rows` of the table `sources`. For each name of this `what`, the table
    `other` has at least this share of the rows.
    """
    kind, names, numbers = (rows[column] for column in rows.columns)
    used_rows = context.tables[other]
    used_rows = used_rows.query(where) if where else used_rows
    used_names = used_rows[by].astype(str).str.extract(f"^{value}$", expand=False)
    use_counts = (
        used_rows[distinct].groupby(used_names).nunique() if distinct else used_names.value_counts()
    )
    row_names = names.str.extract(f"^{name}$", expand=False)
    is_meant = (kind == what) & row_names.notna()
    if not is_meant.any():
        return False
    dropped_rows = numbers[kind == dropped].groupby(names[kind == dropped]).sum()
    expected = numbers - names.map(dropped_rows).fillna(0)
    expected = expected.clip(upper=at_most).where(expected >= at_least, 0)
    return ~is_meant | (row_names.map(use_counts).fillna(0) >= share * expected)


@row_check
def expect_rows_to_be_few(rows: pd.DataFrame, what: str, of: str, share: float) -> pd.Series:
    """Of the table `sources`, rows of one kind are at most this share of those of another.

    Columns `what, rows`.
    """
    kind, numbers = (rows[column] for column in rows.columns)
    is_few = numbers[kind == what].sum() <= share * numbers[kind == of].sum()
    return (kind != what) | is_few


def _plain(text: str) -> str:
    """The words of a text, in lower case."""
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def has_answer(text: str, answers: Sequence[str]) -> bool:
    """Whether a text has one of the answers among its words, whatever the case."""
    names = "|".join(re.escape(name) for name in answers if name.strip())
    return bool(re.search(rf"(?<!\w)(?:{names})(?!\w)", text, re.IGNORECASE))


def _templates(rows: pd.DataFrame) -> pd.Series:
    """The template of each row's group: the one that most of its prompts have.

    The last two columns are subject and prompt, those before them the group.
    """
    *group, subject, prompt = rows.columns
    texts = zip(rows[subject], rows[prompt], strict=True)
    bare = pd.Series([text.replace(name, SUBJECT, 1) for name, text in texts], index=rows.index)
    return bare.groupby([rows[column] for column in group]).transform(
        lambda values: values.value_counts().index[0]
    )


def _keys(rows: pd.DataFrame) -> list[tuple[object, ...]]:
    """Each row as a hashable key; lists become tuples."""
    plain = rows.map(lambda value: value if pd.api.types.is_scalar(value) else tuple(value))
    return list(plain.itertuples(index=False, name=None))


EITHER: Final = rf"(?:{re.escape(SUBJECT)}|{re.escape(SLOT)})"
BESIDE: Final = r"(?:\w|[^\S ])"  # a letter, a digit, an underscore, a blank of another kind
TOUCHED: Final = re.compile(f"{BESIDE}{EITHER}|{EITHER}{BESIDE}|{EITHER}{EITHER}")


@row_check
@says("a character touches a slot")
def expect_slots_to_stand_alone(rows: pd.DataFrame) -> list[bool]:
    """No letter, digit or odd blank touches the slot or the subject. Columns `subject, prompt`."""
    return [
        not TOUCHED.search(prompt.replace(subject, SUBJECT, 1) if subject else prompt)
        for subject, prompt in rows.itertuples(index=False, name=None)
    ]
