"""How a name, a prompt or a sentence looks: damaged, or no value at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import FolderOf
from medprobe.core.looks import NO_NAMES, find_fault

WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=9)
WHOLE = [  # which only look odd
    *("5-HT", "p53", "17q21", "SEPT2", "2-Septin", "1926", "E10", "NO", "NA", "AT&T", "Na+"),
    *("N,N-dimethyltryptamine", "Fever > 38 °C", "T<3 cm", "µ-opioid receptor", "50% AB", "A→G"),
    *("[M]Malignant lymphoma", "(+)-catechin", "HLA-A*02:01", "Guillain–Barré syndrome", "x² ™ ½"),
    *("Ca²⁺", "10⁹", "1,25-(OH)2D3", "GO", "IL-2 [PMID]", "Vitamin E.", "5'-AMP", "CYP2D6*4"),
    *("t(5;17)(q35;q21)", "c.[76A>C];[0]", "AML with inv(16)(p13.1q22); CBFB-MYH11", "β-catenin"),
]


@pytest.mark.parametrize("name", WHOLE)
def test_a_name_that_only_looks_odd_is_whole(name: str) -> None:
    assert find_fault(name, is_name=True) == ""


@given(st.text("abcdeäöüßéñ", min_size=4).filter(lambda word: not word.isascii()))
def test_utf8_that_was_read_as_another_encoding_is_found(word: str) -> None:
    assert find_fault(f"{word} syndrome".encode().decode("cp1252", errors="replace"))


@given(WORD, st.characters(categories=["Cc", "Cf", "Co", "Zl", "Zp"]))
def test_what_nobody_sees_is_found(word: str, unseen: str) -> None:
    assert find_fault(f"{word}{unseen}{word}")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        *((value, "no value") for value in ("nan", " NaN ", "None", "N/A", "#N/A", "", "–")),
        *((value, "no value") for value in ("#REF!", "#VALUE!")),
        *((text, "markup") for text in ("Crohn&#39;s disease", "A &amp; B")),
        *((text, "an escape of a URL") for text in ("%C5%A0ibenik", "heart%20failure")),
        *((text, "a character of print") for text in ("\ufb01brosis", "Ｆever")),
        ("Sj\ufffdgren", "a character that was lost"),
    ],
)
def test_a_damaged_text_is_named(text: str, fault: str) -> None:
    assert find_fault(text) == fault


NO_NAME = {
    "a date": ("9-Sep", "Sep-02", "2-Sep-2019", "2019-09-02", "2019-09-02 00:00:00", "2/9/2019"),
    "a number": ("44805", "0004096"),
    "several names in one": ("asthma; COPD", "gout|fever"),
    "a formula": ("=VLOOKUP(A2,B:C,2)", "=A2"),
    "markup": ("<i>asthma</i>", "vitamin B<sub>12</sub>", "gout<br/>"),
    "a character that was lost": ("Sj?gren syndrome",),
}


@pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for fault, names in NO_NAME.items() for name in names]
)
def test_a_cell_that_is_no_single_name_is_none_as_a_name_alone(name: str, fault: str) -> None:
    assert find_fault(name, is_name=True) == fault
    assert not find_fault(name), "a sentence can have it"


def test_the_faults_of_names_are_those_that_are_looked_for() -> None:
    assert {*NO_NAME} == {*NO_NAMES}


def test_no_name_of_the_released_medlama_looks_damaged(released_data: FolderOf) -> None:
    import pandas as pd

    for path in sorted(released_data("medlama-released").glob("2021AA/*.csv")):
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
        names = {*rows["head_name"], *rows["tail_names"].str.split(r"\|\|").explode()}
        assert [name for name in sorted(names) if find_fault(name, is_name=True)] == []
