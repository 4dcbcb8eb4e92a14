"""Forms of names: the builder's search and the gate's, by examples and one against the other."""

import html

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medprobe.benchmarks.diskne.matching import Forms
from medprobe.quality import leaks
from medprobe.quality.leaks import Diseases

NAMES = ["kidney disease, chronic", "CLD", "MI", "fracture", "Crohn's disease", "stenosis", "B"]
NAMES += ["Cilund dystrophy"]


@pytest.mark.parametrize(
    ("text", "names_in_text"),
    [
        ("Known chronic kidney disease.", ["kidney disease, chronic"]),  # an inversion
        ("chronic disease of the kidneys", ["kidney disease, chronic"]),
        ("Kidney/Disease; CHRONIC", ["kidney disease, chronic"]),
        ("kidney disease", []),  # not all of it
        ("chronic pain, kidney disease", []),  # not side by side
        ("h/o cld", ["CLD"]),
        ("two CLDs, clds", ["CLD"]),
        ("precldish", ["CLD"]),  # within a word, as the released code finds it
        ("h/o mi", ["MI"]),
        ("two MIs", ["MI"]),
        ("the family's miner", []),  # two letters within a word are no name
        ("Fractures", ["fracture"]),
        ("cro\u0301hn disease", ["Crohn's disease"]),
        ("Crohn\u2019s diseases", ["Crohn's disease"]),
        ("ｆｒａｃｔｕｒｅ", ["fracture"]),
        ("frac\u200bture, frac\u00adture", ["fracture"]),
        ("two stenoses", ["stenosis"]),
        ("B, b", []),
        ("a C.L.D. and C L D", ["CLD"]),
        ("frac-ture, frac- ture", ["fracture"]),
        ("f r a c t u r e", ["fracture"]),
        ("kidney&nbsp;disease,&#32;chronic", ["kidney disease, chronic"]),
        ("kidneydiseasechronic", ["kidney disease, chronic"]),
        ("a dystrophic Cilund", ["Cilund dystrophy"]),  # an adjective
        ("dystrophic, stenosal", []),
        ("C.L. and D.", []),
        ("frac - ture, c 1-d", []),
    ],
)
def test_a_name_is_found_in_any_form(text: str, names_in_text: list[str]) -> None:
    pairs = [(name, name) for name in NAMES]
    assert Forms(pairs).diseases(text) == set(names_in_text)
    assert set(Diseases(pairs).find(text)) == set(names_in_text)


@pytest.mark.parametrize("text", ["fr\u0430ctur\u0435", "\u041cI", "\u039c\u0399"])
def test_the_gate_reads_letters_that_look_latin_as_latin(text: str) -> None:
    pairs = [(name, name) for name in NAMES]
    assert set(Diseases(pairs).find(text)) == {"fracture" if len(text) > 2 else "MI"}
    assert not Diseases(pairs).find("\u03b2-\u03b1")


PIECES = [
    *("MI", "mi", "CLD", "cld", "s", "s", "'s", "\u2019s", "_", "-", " ", " ", " ", ", ", "/"),
    *("kidney", "disease", "diseases", "of", "the", "stenos", "is", "es", "ss", "e", "ies", "y"),
    *(".", ".", "&nbsp;", "- ", "C", "L", "D", "k", "i", "ic", "al", "dystroph"),
    *("\u0301", "\u200b", "\u00a0", "ﬁ", "ß", "İ", "ｍ", "A", "a", "4", "µ", "ΐ"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=9).map("".join) | st.text(max_size=12)


@settings(max_examples=500)
@given(st.lists(TEXTS, max_size=5), TEXTS)
def test_the_gate_finds_what_the_builder_finds(names: list[str], text: str) -> None:
    """Two implementations of one rule: where the gate found more, it would stop sound tables; where
    it found less, it would let a leak pass."""
    names = [leaks.plain(name) for name in names]
    pairs = [(name, str(number)) for number, name in enumerate(names)]
    text = leaks.plain(html.unescape(text))  # whose letters the builder does not look at
    assert set(Diseases(pairs).find(text)) == Forms(pairs).diseases(text)
