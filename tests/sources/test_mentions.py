"""Mentions: exact spans of whole words, the longest name, case of short names."""

import pickle
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medprobe.sources.mentions import Mentions, NameMention


def spans(names: list[str], text: str) -> list[str]:
    matches = Mentions((name, name) for name in names).find(text)
    return [text[mention.start : mention.end] for mention in matches]


def test_takes_the_longest_name_and_every_gives_the_inner_ones() -> None:
    names = Mentions([("kidney disease", "C1"), ("chronic kidney disease", "C2")])
    text = "Has chronic kidney disease."
    assert names.find(text) == [NameMention(4, 26, ("C2",))]
    assert names.every(text) == [
        NameMention(12, 26, ("C1",)),
        NameMention(4, 26, ("C2",)),
    ] or names.every(text) == [NameMention(4, 26, ("C2",)), NameMention(12, 26, ("C1",))]


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        (["mi"], "family of miners", []),  # never inside a word
        (["asthma", "copd"], "asthma copd", ["asthma", "copd"]),  # neighbours
        (["type 2 diabetes"], "Type-2\n  DIABETES,", ["Type-2\n  DIABETES"]),
        (["heart failure"], "of the heart. Failure to", []),  # a mark parts words
        (["CD4+"], "CD4 and cd4+.", ["cd4+"]),
        (["2"], "12 2", ["2"]),
        (["café au lait"], "CAFÉ AU LAIT", ["CAFÉ AU LAIT"]),
        (["cafe"], "cafe\u0301", []),  # an accent belongs to its letter
        ([" - ", ""], "a - b", []),
    ],
)
def test_tokens(names: list[str], text: str, expected: list[str]) -> None:
    assert spans(names, text) == expected


def test_names_of_three_characters_keep_their_case() -> None:
    names = Mentions([("MI", "C1"), ("mi", "C2"), ("Acute MI", "C3"), ("ARDS", "C4")])
    matches = names.find("MI, mi, Mi, acute mi, ards")
    assert [mention.ids for mention in matches] == [("C1",), ("C2",), ("C3",), ("C4",)]


def test_a_short_name_in_another_case_hides_no_other() -> None:
    names = Mentions([("T-3", "C1"), ("3 toxin", "C2"), ("t", "C3")])
    assert [mention.id for mention in names.find("t-3 toxin")] == ["C3", "C2"]
    assert [mention.id for mention in names.find("T 3 toxin")] == ["C1"]


def test_a_copy_in_another_process_finds_the_same() -> None:
    names = Mentions([("heart failure", "C1"), ("failure", "C2"), ("MI", "C3")])
    text = "MI, heart failure and mi"
    found = names.find(text), names.every(text)
    copy = pickle.loads(pickle.dumps(names))  # after a search, with automata that have no copy
    assert (copy.find(text), copy.every(text)) == found


def test_one_name_of_two_concepts() -> None:
    names = Mentions([("cold", "C2"), ("Cold", "C1"), ("cold", "C2")])
    (mention,) = names.find("a cold")
    assert mention.ids == ("C2", "C1")
    assert mention.id == "C2"


@pytest.mark.parametrize("before", ["İİ ", "ß ", "ﬁ ", "𝛼 ", "日本 "])
def test_spans_are_exact_where_folding_changes_lengths(before: str) -> None:
    assert spans(["heart failure"], before + "HEART FAILURE") == ["HEART FAILURE"]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("aspirin", "Aspirin\u2122 helps", "Aspirin"),  # a sign is no letters of the word before it
        ("Gift", "a gi\ufb05", ""),  # a ligature of other letters
        ("IL2", "IL\u00b2", "IL\u00b2"),
        ("il2", "IL\u00b2", ""),  # a short name keeps its case in any form
        ("2", "\u00bd", ""),
        ("vitamin (B6)", "vitamin \uff08B\u2086\uff09", "vitamin \uff08B\u2086\uff09"),
        ("fever", "\u00adfe\u00adver\u00ad.", "fe\u00adver"),
        ("Crohn's disease", "Crohn\u2019s disease", "Crohn\u2019s disease"),
        ("Crohn\u2019s disease", "Crohn's disease", "Crohn's disease"),
        ("5'-AMP", "of 5\u2032\u2212AMP", "5\u2032\u2212AMP"),
        ("O'X", "\u03b2 O\u02bcX", "O\u02bcX"),
        ("O'nX", "\u03b2 O\u0149X", "O\u0149X"),
    ],
)
def test_what_a_character_stands_for(name: str, text: str, found: str) -> None:
    assert spans([name], text) == [found] * bool(found)


FORMS: dict[str, list[str]] = {}  # of letters: all characters that Unicode takes for them
for character in map(chr, range(0x80, 0x20000)):
    normal = unicodedata.normalize("NFKC", character)
    if character.isalnum() and normal.isalnum() and normal != character:
        FORMS.setdefault(normal, []).append(character)
UNSEEN = ["", "", "", "\u00ad", "\u200b", "\u2060"]  # between letters
UNITS = st.sampled_from(["a", "x", "9", "\u00f6", "\u00e9", "\u03bc", "\u00df", "\uac04", *FORMS])


@st.composite
def spelt(draw: st.DrawFn) -> tuple[str, str]:
    """A name, and another way to write it."""
    units = draw(st.lists(UNITS | st.just(" "), min_size=5, max_size=9))
    units = ["a", *units, "b"]
    apart = [[unicodedata.normalize(form, unit) for form in ("NFD", "NFKD")] for unit in units]
    spellings = [
        draw(st.sampled_from([unit, *forms, *FORMS.get(unit, [])]))
        for unit, forms in zip(units, apart, strict=True)
    ]
    blanks = [draw(st.sampled_from(UNSEEN)) for _ in units[1:]]
    written = "".join(map("".join, zip(spellings, [*blanks, ""], strict=True)))
    capitals = written.upper()
    if capitals.casefold() != written.casefold():  # a dotless i, whose capital is another letter's
        capitals = written
    return "".join(units), draw(st.sampled_from([written, capitals]))


@settings(max_examples=500)
@given(
    spelt(),
    st.sampled_from(["", "in ", "(", "\u03b2 \ufb01 ", "\u00ad"]),
    st.sampled_from(["", ".", " of"]),
)
def test_a_name_is_found_however_it_is_written(
    pair: tuple[str, str], before: str, after: str
) -> None:
    name, written = pair
    assert spans([name], f"{before}{written}{after}") == [written]
    assert spans([written], f"{before}{name}{after}") == [name]


@settings(max_examples=300)
@given(st.text(st.characters(max_codepoint=127), max_size=20))
def test_a_text_beyond_ascii_is_read_by_the_same_rule(text: str) -> None:
    names = Mentions((name, name) for name in re.findall(r"\S+", text))
    assert names.every(text) == [
        mention._replace(start=mention.start - 2, end=mention.end - 2)
        for mention in names.every(f"\u2122 {text}")
    ]


def slow(names: list[str], text: str) -> list[tuple[int, int, tuple[str, ...]]]:
    """The rule, read out."""
    tokens = [(m.start(), m.end()) for m in re.finditer(r"\w+|[^\w\s-]", text)]
    words = [text[start:end] for start, end in tokens]

    def ids(piece: list[str]) -> tuple[str, ...]:
        mentions = []
        for name in [n for n in names if len(n) > 3] + [n for n in names if len(n) <= 3]:
            parts = re.findall(r"\w+|[^\w\s-]", name)
            same = parts == piece
            if len(name) > 3:
                same = [part.lower() for part in parts] == [part.lower() for part in piece]
            if same and name not in mentions:
                mentions.append(name)
        return tuple(mentions)

    mentions, i = [], 0
    while i < len(words):
        for j in range(len(words), i, -1):
            if match := ids(words[i:j]):
                mentions.append((tokens[i][0], tokens[j - 1][1], match))
                i = j
                break
        else:
            i += 1
    return mentions


PIECES = st.lists(st.sampled_from(["a", "B", "ab", "Ab", "abc", " ", "-", "+", ","]), max_size=8)


@settings(max_examples=300)
@given(st.lists(PIECES.map("".join), max_size=6), PIECES.map("".join), PIECES.map("".join))
def test_equals_the_rule_read_out(names: list[str], prefix: str, right: str) -> None:
    text = f"{prefix} {right}"
    assert [tuple(m) for m in Mentions((n, n) for n in names).find(text)] == slow(names, text)
