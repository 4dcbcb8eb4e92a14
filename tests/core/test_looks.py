"""How a name, a prompt or a sentence looks: damaged, or no value at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import FolderOf
from medprobe.core.looks import find_fault

WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=9)
WHOLE = [  # which only look odd
    *("5-HT", "p53", "17q21", "SEPT2", "2-Septin", "1926", "E10", "NO", "NA", "AT&T", "Na+"),
    *("N,N-dimethyltryptamine", "Fever > 38 °C", "T<3 cm", "µ-opioid receptor", "50% AB", "A→G"),
    *("[M]Malignant lymphoma", "(+)-catechin", "HLA-A*02:01", "Guillain–Barré syndrome", "x² ™ ½"),
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
        *((text, "markup") for text in ("Crohn&#39;s disease", "A &amp; B")),
        *((text, "an escape of a URL") for text in ("%C5%A0ibenik", "heart%20failure")),
        *((text, "a character of print") for text in ("\ufb01brosis", "Ｆever")),
        ("Sj\ufffdgren", "a character that was lost"),
    ],
)
def test_a_damaged_text_is_named(text: str, fault: str) -> None:
    assert find_fault(text) == fault


@pytest.mark.parametrize("name", ["9-Sep", "Sep-02", "asthma; COPD", "gout|fever"])
def test_a_cell_that_is_no_single_name_is_none_as_a_name_alone(name: str) -> None:
    assert find_fault(name, is_name=True)
    assert not find_fault(name), "a sentence can have it"


def test_no_name_of_the_released_medlama_looks_damaged(released_data: FolderOf) -> None:
    import pandas as pd

    for path in sorted(released_data("medlama-released").glob("2021AA/*.csv")):
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
        names = {*rows["head_name"], *rows["tail_names"].str.split(r"\|\|").explode()}
        assert [name for name in sorted(names) if find_fault(name, is_name=True)] == []
