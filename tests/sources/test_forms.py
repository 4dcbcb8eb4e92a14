"""Forms of names that a text can have."""

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from medprobe.sources.forms import Forms

NAMES = ["kidney disease, chronic", "CLD", "MI", "fracture", "Crohn's disease", "stenosis", "B"]
NAMES += [
    "Cilund dystrophy",
    "acute renal failure",
    "heart failure",
    "hepatitis C",
    "tumor, benign",
]
NAMES += ["edema of lung", "leukemia", "heart disease", "diarrhea"]


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
        ("known M.I. , stable", ["MI"]),  # two letters, spelt
        ("h/o M. I., stable", ["MI"]),
        ("two M.I.s", ["MI"]),
        ("at 9 a.m. i. e. today; M. I went", []),  # the last is a sentence's end
        ("s/p m.i. in 1998", ["MI"]),
        ("m.i. c.l.d.", ["CLD", "MI"]),  # each by itself
        ("h/o m i, stable", ["MI"]),
        ("m. i. , xm.i., m i.v.", []),
        ("acute and chronic renal failure", ["acute renal failure"]),  # lists
        ("acute on chronic renal failure", ["acute renal failure"]),
        ("heart and liver failure", ["heart failure"]),
        ("heart, liver, and lung failures", ["heart failure"]),
        ("failure of the liver and heart", ["heart failure"]),
        ("acute or chronic cardiac and renal failure", ["acute renal failure"]),
        ("acute/chronic renal failure", ["acute renal failure"]),
        ("Cilund & Borpal dystrophies", ["Cilund dystrophy"]),
        ("hepatitis B and C", ["hepatitis C"]),
        ("acute pain and renal failure", []),  # two conditions, of which one is acute
        ("heart surgery and liver failure", []),
        ("failure to thrive and heart murmur", []),
        ("pain in the heart and liver", []),
        ("Cilund<br/>dystrophy, hea<b>rt</b> failure", ["Cilund dystrophy", "heart failure"]),
        ("Cilund [**Name 12**] dystrophy", ["Cilund dystrophy"]),
        ("Ci[** **]lund dys___trophy", ["Cilund dystrophy"]),
        ("heart%20failure, Cilund=20dystrophy", ["Cilund dystrophy", "heart failure"]),
        ("BP < 90 with heart rate > 60, failure", []),  # no tag
        ("a benign tumour", ["tumor, benign"]),  # British spelling
        ("oedema of the lung, leucaemia", ["edema of lung"]),
        ("leukaemia, Leuk\u00e6mia", ["leukemia"]),
        ("known diarrhoea", ["diarrhea"]),
        ("does four hours", []),
        ("C.L. and D.", []),
        ("frac - ture, c 1-d", []),
        ("acute and/or chronic renal failure", ["acute renal failure"]),  # more lists
        ("heart as well as liver failure", ["heart failure"]),
        ("heart vs. liver failure", ["heart failure"]),
        (
            "heart + liver failure; Cilund- and Borpal dystrophies",
            ["Cilund dystrophy", "heart failure"],
        ),
        ("known M . I . and C .L .D .", ["CLD", "MI"]),  # spelt, with more blanks
        ("h/o M.\u200bI.", ["MI"]),
        ("h/o \uff2d\uff0e\uff29\uff0e", ["MI"]),
        ("Croh\u02bcs, Crohn\u02bcs disease", ["Crohn's disease"]),
        ("frac<!-- 1 -->ture, Cilund<?p?>dystrophy", ["Cilund dystrophy", "fracture"]),
        ("Cilund [**Name\n 12**] dystrophy", ["Cilund dystrophy"]),
        ("Cilund%2fdystrophy, fr%61cture", ["Cilund dystrophy", "fracture"]),
        ("heart=\r\n failure, l=65ukemia", ["heart failure", "leukemia"]),
        ("fra\u200ecture\u2069", ["fracture"]),
        ("\u03b2-\u03b1, C4d, at [**Hospital1 18**]", []),
        ("fr\\u0061cture; heart&amp;amp;nbsp;failure", ["fracture", "heart failure"]),
        ("Cilund dy\ufb06rophy", ["Cilund dystrophy"]),  # a ligature
        ("heart-failure, Cilund-\ndystrophies", ["Cilund dystrophy", "heart failure"]),
        ("heart\n\tfailure, Cilund's dystrophy", ["Cilund dystrophy", "heart failure"]),
        ("fr&#97;cture, frac-\nture", ["fracture"]),
        ("h/o c l d", ["CLD"]),
        ("C-L-D, known", ["CLD"]),
        ("HEART/FAILURE", ["heart failure"]),
        ("kidney\u00a0disease, chronic", ["kidney disease, chronic"]),
    ],
)
def test_a_name_is_found_in_any_form(text: str, names_in_text: list[str]) -> None:
    pairs = [(name, name) for name in NAMES]
    assert Forms(pairs).diseases(text) == set(names_in_text)


LETTERS = st.sampled_from("abcdefghijklmnopqrstuvwxyz")
NO_NAMES = {"am", "pm", "eg", "ie"}  # "a.m.", "i.e."


@example("e", "g", str.upper, "", " c.h.f.")
@settings(max_examples=300)
@given(
    LETTERS,
    LETTERS,
    st.sampled_from([str.lower, str.upper, str.title]),
    st.sampled_from(["", "s/p ", "(", "old ", "e.g. ", "c.h.f. "]),
    st.sampled_from(["", " since 1998", ",", ")", "\n", " c.h.f."]),
)
def test_two_letters_with_a_full_stop_each_are_an_abbreviation(
    first: str, second: str, case: Callable[[str], str], before: str, after: str
) -> None:
    """Not where a word or a sentence ends: "vitamin c. d. dimer"."""
    name = first + second
    pairs = [(name.upper(), "C1")]
    spelt = case(f"{first}.{second}.")
    is_name = name not in NO_NAMES or spelt.isupper()
    for text, expected in (
        (f"{before}{spelt}{after}", is_name),
        (f"vitamin {first}. {second}. dimer", False),
        (f"grade 7{first}.{second}. normal", False),
        (f"vitamin {first}. {second} dimer", False),
        (f"{first}.{second}.x.", False),
    ):
        found = {"C1"} if expected else set()
        assert Forms(pairs).diseases(text) == found, text
