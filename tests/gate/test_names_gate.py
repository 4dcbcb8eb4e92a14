"""The gate's rules for names that look alike, and for sources that went wrong."""

from typing import Any

import pandas as pd
import pytest

from medprobe.gate.expectations import names
from medprobe.gate.expectations.names import look


@pytest.mark.parametrize(
    "other",
    [
        "acute fever",
        "Acute\u00a0Fever",
        "Acute  Fever",
        "Acute\nFever",
        "Acute Fe\u200bver",
        "Acute Fever.",
    ],
)
def test_names_that_readers_cannot_tell_apart_have_one_look(other: str) -> None:
    assert look(other) == look("Acute Fever")
    rows = pd.DataFrame({"subset": "full", "name": ["Acute Fever", other, "Acute Fevers"]})
    assert names.expect_names_to_look_different(rows) == [True, False, True]


def test_composed_letters_have_one_look() -> None:
    assert look("Sjo\u0308gren") == look("Sjögren")


def queries(**columns: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(columns)


def test_one_answer_for_a_whole_relation_fails() -> None:
    rows = queries(
        subset=["full"] * 23,
        relation=["a"] * 10 + ["b"] * 10 + ["c"] * 3,
        subject_id=[f"s{number}" for number in range(23)],
        answer_ids=[["x"]] * 10 + [["x"]] * 9 + [["y"]] + [["z"]] * 3,
    )
    checked = names.expect_relations_to_have_several_answers(rows, 0.999, 10)
    assert list(checked) == [False] * 10 + [True] * 13


def test_a_relation_with_the_facts_of_another_one_fails() -> None:
    facts = [("full", relation, f"s{n}", [f"o{n}"]) for relation in "ab" for n in range(4)]
    facts += [("full", "c", f"s{n}", [f"o{n % 2}"]) for n in range(4)]
    rows = pd.DataFrame(facts, columns=["subset", "relation", "subject_id", "answer_ids"])
    assert (
        names.expect_relations_to_differ(rows, 0.9, at_least=4)
        == [True] * 4 + [False] * 4 + [True] * 4
    )


def test_a_prompt_that_negates_fails() -> None:
    prompts = pd.Series(
        [
            "x treats [Y] .",
            "x does not treat [Y] .",
            "x doesn't treat [Y] .",
            "x never treats [Y] .",
            "note: x is [Y] .",
        ]
    )
    assert list(names.expect_templates_to_affirm(prompts)) == [True, False, False, False, True]
