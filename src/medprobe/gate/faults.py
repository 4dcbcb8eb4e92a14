"""What is wrong with a row, in words, without a word of the row's text."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from medprobe.gate.expectations.names import first_fault

Row = Mapping[str, Any]
Kwargs = Mapping[str, Any]


def describe(expectation: str, kwargs: Kwargs, row: Row) -> str:
    """Describe why a row fails an expectation; an empty text where only the expectation says it.

    Args:
        expectation: its type.
        kwargs: its arguments.
        row: the values of the columns that it is on, by name.

    >>> kwargs = {"column": "answers", "min_value": 1, "max_value": 2}
    >>> describe("expect_list_lengths_to_be_between", kwargs, {"answers": ["a", "b", "c"]})
    'answers has 3 items, not 1 to 2'
    """
    rule = FAULTS.get(expectation)
    return rule(kwargs, row) if rule else ""


def _missing(kwargs: Kwargs, _: Row) -> str:
    return f"{kwargs['column']} is missing"


def _twice(kwargs: Kwargs, _: Row) -> str:
    if "column" in kwargs:
        return f"{kwargs['column']} occurs twice"
    return f"{', '.join(kwargs['column_list'])} occur twice together"


def _not_allowed(kwargs: Kwargs, _: Row) -> str:
    values = [*map(str, kwargs["value_set"])]
    return f"{kwargs['column']} is none of {', '.join(values[:9])}{', …' * (len(values) > 9)}"


def _other_form(kwargs: Kwargs, row: Row) -> str:
    column = kwargs["column"]
    return f"{column} {'has another form' if _is_filled(row.get(column)) else 'is empty'}"


def _outside(kwargs: Kwargs, _: Row) -> str:
    return f"{kwargs['column']} is not {_limits(kwargs)}"


def _length(kwargs: Kwargs, row: Row) -> str:
    column = kwargs["column"]
    count = len(row.get(column, ()))
    return f"{column} has {count} items, not {_limits(kwargs)}" if count else f"{column} is empty"


def _item(kwargs: Kwargs, row: Row) -> str:
    column = kwargs["column"]
    filled = all(map(_is_filled, row.get(column, ())))
    return f"an item of {column} {'has another form' if filled else 'is empty'}"


def _item_twice(kwargs: Kwargs, _: Row) -> str:
    return f"{kwargs['column']} has an item twice"


def _not_aligned(kwargs: Kwargs, row: Row) -> str:
    counts = [f"{column} has {len(row.get(column, ()))}" for column in kwargs["column_list"]]
    return f"{' items, '.join(counts)} items"


def _limits(kwargs: Kwargs) -> str:
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    if high is None:
        return f"{low} or more"
    return f"{high} or less" if low is None else f"{low} to {high}"


def _plain_list(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else str(value)


def _is_filled(value: Any) -> bool:
    return any(character.isalnum() for character in str(value if value is not None else ""))


FAULTS: Final[dict[str, Callable[[Kwargs, Row], str]]] = {
    "expect_column_values_to_not_be_null": _missing,
    "expect_column_values_to_be_unique": _twice,
    "expect_compound_columns_to_be_unique": _twice,
    "expect_column_values_to_be_in_set": _not_allowed,
    "expect_column_values_to_match_regex": _other_form,
    "expect_column_values_to_be_between": _outside,
    "expect_list_lengths_to_be_between": _length,
    "expect_list_items_to_match_regex": _item,
    "expect_list_items_to_be_unique": _item_twice,
    "expect_lists_to_be_aligned": _not_aligned,
    "expect_names_to_be_whole": lambda _, row: first_fault([*map(_plain_list, row.values())]),
    "expect_names_to_look_different": lambda *_: "another name looks the same",
    "expect_answers_not_to_be_the_subject": lambda *_: "an answer is the subject",
    "expect_aliases_to_be_of_one_object": lambda *_: "a name of an answer is another object's",
    "expect_relations_to_have_several_answers": lambda *_: "all queries have one answer",
    "expect_relations_to_differ": lambda *_: "another relation has the same facts",
    "expect_ids_to_be_whole": lambda *_: "a program changed an id",
    "expect_ids_to_tell_apart": lambda *_: "most names have one id",
    "expect_relations_to_look_different": lambda *_: "another relation's name looks the same",
    "expect_relations_to_point_forward": lambda *_: "subjects and answers are exchanged",
    "expect_slots_to_follow_subjects": lambda *_: "the slot comes before the subject",
    "expect_answers_to_have_capitals": lambda *_: "no answer has a capital, but subjects have",
    "expect_wordings_to_look_different": lambda *_: "another wording looks the same",
    "expect_wordings_to_keep_their_relation": lambda *_: "another relation has the wording",
    "expect_dates_to_be_past": lambda *_: "the date is in the future",
    "expect_templates_to_affirm": lambda *_: "the prompt negates",
    "expect_prompts_to_have_one_slot": lambda *_: "the prompt has no slot [Y], or several",
    "expect_answers_to_be_complete": lambda *_: "a right answer of the source is missing",
    "expect_facts_to_be_in_umls": lambda *_: "the source has no such fact",
    "expect_facts_to_be_in_records": lambda *_: "its record in the source differs",
    "expect_premises_to_be_of_their_pairs": lambda *_: "its pair has several premises",
    "expect_hypotheses_to_be_preferred_names": lambda *_: (
        "the hypothesis is not the preferred name"
    ),
    "expect_articles_to_fit": lambda *_: "the article does not fit the disease's first letter",
    "expect_similar_negatives_to_be_nearest": lambda *_: "its disease is not one of the nearest",
    "expect_roles_to_follow_ids": lambda *_: "the role differs from the one that the ids give",
    "expect_centres_to_follow_ids": lambda *_: "the centre differs from the one that the ids give",
    "expect_layouts_to_follow_kinds": lambda *_: "its mentions are not in the order of its kind",
    "expect_targets_to_be_trained": lambda *_: "the disease has no positive to train on",
    "expect_other_examples_to_be_trained": lambda *_: "too few of the examples that can train do",
}
