"""The gate's rules for names that a program changed, and for sources that went wrong."""

from typing import Any

import pandas as pd
import pytest

from medprobe.gate.checks import providing
from medprobe.gate.expectations import names
from medprobe.gate.expectations.names import find_fault, look

CHANGED = {
    "a missing value": ["nan", "None", "null", "N/A", "<NA>", " nan "],
    "an error of a spreadsheet": ["#REF!", "#NAME?", "#N/A", "#DIV/0!", "########"],
    "a date": ["2-Sep", "Sep-02", "1-Mar-2020", "2020-03-01", "01.03.2020", "3/1/2020"],
    "a number": ["1.23E+12", "2e5", "2E-10"],
    "an identifier": ["C0018099", "Q1234", "D006073", "MESH:D006073", "73211009", "HP:0001250"],
    "a name with the kind of its concept": ["Gout (disorder)", "Ibuprofen 400 mg (product)"],
    "markup": ["<i>BRCA1</i> Gene", "&lt;i&gt;p53", "Graves&#39; disease", "Gout<br/>"],
    "a character that was lost": ["Sj\ufffdgren syndrome", "Sj?gren syndrome"],
    "text in another encoding": [
        "SjÃ¶gren syndrome",
        "Î²-catenin",
        "Graves’ disease".encode().decode("cp1252"),
    ],
}
WHOLE = [
    *("Gout", "Sjögren syndrome", "β-catenin", "Graves’ disease", "5-HT", "p53", "17q21", "SEPT2"),
    *("2-Septin", "1,2-dichloroethane", "HLA-B27", "CD4+ T-Lymphocyte", "Nano", "Nullipara", "NA"),
    *("What is it?", "1926", "E10", "Q fever", "C-peptide", "D-dimer", "Fever > 38 °C", "AT&T"),
    *("Cell (biology)", "Disorder of kidney", "T<3 cm", "µ-opioid receptor", "naïve cell"),
]


@pytest.mark.parametrize(
    ("fault", "name"),
    [(fault, name) for fault, names_of_fault in CHANGED.items() for name in names_of_fault],
)
def test_what_a_program_made_of_a_name_is_named(fault: str, name: str) -> None:
    assert find_fault(name) == fault


@pytest.mark.parametrize("name", WHOLE)
def test_a_name_that_only_looks_odd_is_whole(name: str) -> None:
    assert find_fault(name) == ""


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


def test_an_answer_that_is_the_subject_fails() -> None:
    rows = queries(
        subject=["Gout", "Gout", "Gout"], answers=[["fever"], ["flu", "gout "], ["Gouts"]]
    )
    assert names.expect_answers_not_to_be_the_subject(rows) == [True, False, True]


def test_a_name_of_two_objects_fails() -> None:
    candidates = queries(subset=["full"] * 2, name=["flu", "fever"], id=["D1", "D2"])
    rows = queries(
        subset=["full"] * 3,
        answers=[["flu", "grippe"], ["fever", "Flu"], ["flu"]],
        answer_ids=[["D1", "D1"], ["D2", "D2"], ["D1"]],
    )
    with providing({"candidates": candidates}) as context:
        assert names.expect_aliases_to_be_of_one_object(rows, context) == [True, False, True]


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
