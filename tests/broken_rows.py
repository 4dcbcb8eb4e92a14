"""Rows that are broken, each for one check of a suite, so that it and no other reports them."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from medprobe.quality.suites import Suite

Reported = dict[int, set[int]]  # the numbers of the rows that each check reports

# What breaks a row for one type of check: it changes the row, and may copy another one.
Row = dict[str, Any]
Spoil = Callable[[Row, Row, dict[str, Any]], object]
SPOILS: dict[str, Spoil] = {}
APT = {  # the rows that a type of check can be broken in
    "expect_first_added_to_be_the_target": "step == 1",
    "expect_labels_to_follow_kinds": "label == 0",
    "expect_negatives_to_be_unrelated": "label == 0",
}
NEUTRAL = {  # the rows that no other row is held against
    "medlama/queries": lambda t: (t["subset"] == "full") & ~t["subject_id"].isin(hard(t)),
    "medlama/candidates": lambda t: (t["subset"] == "full") & ~t["id"].isin(hard(t)),
    "lama/queries": lambda t: t["subset"].isin(["conceptnet", "squad"]),
    "lama/sources": lambda t: t["what"] != "facts",
    "lama/candidates": lambda t: t["subset"].isin(["conceptnet", "squad"]),
    "context/queries": lambda t: (t["kind"] == "knowledge-only") & (t["step"] == 1),
    "diskne/examples": lambda t: t["label"] == 0,
    "diskne_released/examples": lambda t: t["label"] == 0,
}


def hard(rows: pd.DataFrame) -> "pd.Series[str]":
    return rows.loc[rows["subset"] == "hard", "subject_id" if "subject_id" in rows else "id"]


def spoils(*types: str) -> Callable[[Spoil], Spoil]:
    def known(spoil: Spoil) -> Spoil:
        SPOILS.update(dict.fromkeys(types, spoil))
        return spoil

    return known


def to(value: Any) -> Spoil:
    """The check's column, or the last of its columns, becomes a value."""

    def spoil(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
        row[column(kwargs)] = value(kwargs) if callable(value) else value

    return spoil


def column(kwargs: dict[str, Any]) -> str:
    name: str = kwargs["column"] if "column" in kwargs else kwargs["column_list"][-1]
    return name


def filled(row: Row) -> None:
    """The sentence of a row becomes its prompt with its answer, as before it was changed."""
    if "sentence" in row:
        row["sentence"] = row["prompt"].replace("[Y]", row["answers"][0])


SPOILS |= {
    "expect_column_values_to_not_be_null": to(None),
    "expect_column_values_to_be_in_set": to(lambda k: 7 if 1 in k["value_set"] else "no such"),
    "expect_column_value_lengths_to_be_between": to(lambda k: "x" * (k.get("max_value", -1) + 1)),
    "expect_column_values_to_be_between": to(lambda k: k["min_value"] - 1),
    "expect_cuis_to_be_known": to("C7777777"),
    "expect_texts_to_hold_one_candidate": to("nothing of the kind"),
    "expect_filled_prompts": to("nothing of the kind"),
    "expect_first_added_to_be_the_target": lambda row, other, _: row.update(added_id="C7777777"),
    "expect_dates_to_be_later": lambda row, other, _: row.update(date=row["cut_off"]),
    "expect_labels_to_follow_kinds": lambda row, other, _: row.update(label=1),
    "expect_negatives_to_be_unrelated": lambda row, other, _: row.update(
        cui=row["original_cui"], hypothesis=row["disease"]
    ),
    "expect_names_to_be_of_their_cuis": lambda row, other, k: row.update(
        {k["column_list"][0]: "no such name"}
    ),
    "expect_column_pair_values_a_to_be_greater_than_b": lambda row, other, k: row.update(
        {k["column_A"]: row[k["column_B"]] - 1}
    ),
    "expect_list_lengths_to_be_between": lambda row, other, _: row.update(
        answers=[], answer_ids=[]
    ),
    "expect_lists_to_be_aligned": lambda row, other, _: row.update(
        answer_ids=[*row["answer_ids"], "C7777777"]
    ),
}


@spoils("expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique")
def twice(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
    for name in kwargs.get("column_list", [kwargs.get("column")]):
        row[name] = other[name]


@spoils("expect_column_values_to_match_regex")
def other_form(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
    """Blank, or, where some rows may be so, one long word."""
    word = "x" * 20 + re.sub(r"\W", "", row[kwargs["column"]])
    row[kwargs["column"]] = word if "mostly" in kwargs else " "


@spoils("expect_column_values_to_not_match_regex")
def forbidden(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
    samples = ["a\x00b ", "a [MASK] ", "However so ", "a \ufffd ", "a\u200bb "]
    found = next(text for text in samples if re.search(kwargs["regex"], text))
    row[kwargs["column"]] = found + row[kwargs["column"]]
    if kwargs["column"] == "prompt":
        filled(row)


@spoils("expect_prompts_to_have_one_slot")
def no_slot(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
    row["prompt"] = row["prompt"].replace("[Y]", row["answers"][0])


@spoils("expect_list_items_to_be_unique")
def items_twice(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
    for name in (kwargs["column"], *(["answer_ids"] if kwargs["column"] == "answers" else [])):
        row[name] = [*row[name][:1]] * 2


@spoils("expect_list_items_to_match_regex", "expect_items_to_be_in_table")
def other_item(row: Row, other: Row, kwargs: dict[str, Any]) -> None:
    name = kwargs["column"] if "regex" in kwargs else kwargs["column_list"][-1]
    text = " " if "regex" in kwargs else "no such name"
    row[name] = text if isinstance(row[name], str) else [text, *row[name][1:]]
    filled(row)


def rounds(suite: Suite, rows: pd.DataFrame, path: str) -> Iterator[tuple[pd.DataFrame, Reported]]:
    """Tables in which a row is broken for each of some checks, and the rows that each is to report:
    its own, or both that are alike. In few rounds, each row is broken for one check."""
    left = [n for n, listed in enumerate(suite.listed) if listed.type in SPOILS]
    neutral = NEUTRAL.get(path, lambda table: pd.Series(True, table.index))(rows)
    while left:
        free, expected, changed = neutral.copy(), {}, rows.to_dict("records")
        for number in list(left):
            listed = suite.listed[number]
            apt = rows.query(
                listed.kwargs.get("row_condition") or APT.get(listed.type, "index >= 0")
            )
            chosen = [row for row in apt.index if free[row]]
            if "mostly" in listed.kwargs:
                if expected:
                    continue
                chosen, mine = [*rows.index], [*rows.index]
            elif SPOILS[listed.type] is twice:
                mine = [chosen[0], chosen[-1]] if len(chosen) > 1 else []
            else:
                mine = chosen[:1]
            if not mine:
                continue
            for row in mine if "mostly" in listed.kwargs else mine[:1]:
                SPOILS[listed.type](changed[row], changed[mine[-1]], listed.kwargs)
            free[mine] = False
            expected[number] = {-1} if "mostly" in listed.kwargs else {row + 1 for row in mine}
            left.remove(number)
            if "mostly" in listed.kwargs:
                break
        assert expected, f"no row of {path} can be broken for {suite.listed[left[0]]}"
        table = pd.DataFrame(changed, columns=rows.columns, dtype=object)
        numbers = rows.select_dtypes("number").columns
        whole = [name for name in numbers if table[name].notna().all()]
        yield table.astype(rows.dtypes[whole].to_dict()), expected
