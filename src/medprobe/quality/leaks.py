"""Whether texts name a disease: the gate reads UMLS and texts itself.

This module shares nothing with the builder whose tables are checked, so that a mistake of the
builder's names or search cannot hide itself. The rule is the same (docs/decisions.md, DisKnE): a
name counts in any form, without regard to case, accents, widths, invisible characters, punctuation,
plurals and the order of its words, and inside longer words if it has three characters or more. A
text is read without entities of HTML, without hyphens within words and with spelt letters joined.
A name of several words can be run together, and each of its words can be an adjective.

The gate alone reads letters of other alphabets that look Latin as Latin ones. A loose search adds
what can be another disease: one more word among those of the name, and the adjective of a single
word.
"""

import html
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from confusable_homoglyphs import confusables

from medprobe.core.errors import BadInput

CUI: Final = 8  # characters
ENGLISH: Final = "|ENG|"
NAME: Final = 14  # the field STR of MRCONSO.RRF
WITHIN_WORDS: Final = 3  # characters of a name
ARTICLES: Final = ("a", "an", "of", "the")
ENDINGS: Final = ("ides", "ata", "ies", "es", "is", "us", "as", "ys", "um", "s", "i", "y", "e", "a")
SHORTEST: Final = 5  # letters of a word that is cut
ROOT: Final = 3  # letters that stay of it
LATIN: Final = re.compile("[A-Za-z]")
LETTER: Final = r"[^\W\d_]"
SPELT: Final = re.compile(  # C.L.N. or C L N
    rf"(?<![\w.]){LETTER}(?:(?:\.\s?{LETTER}){{2,}}\.?|(?:\s{LETTER}){{2,}})(?!\w)"
)
HYPHEN: Final = re.compile(rf"(?<={LETTER})[-\u2010\u2011]\s*(?={LETTER})")
ADJECTIVE: Final = re.compile(r"(?<=\w{5})(?:ical|ic|al|ous)$")
RUN_TOGETHER: Final = 8  # letters of a name of several words that can be one word


def umls_names(path: Path, cuis: set[str]) -> list[tuple[str, str]]:
    """Read `(name, CUI)`: all English names of concepts in MRCONSO.RRF, suppressed ones too."""
    if not path.is_file():
        raise BadInput(path, "no such file", "the gate needs UMLS's names to find leaks")
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [
            (line.split("|")[NAME], line[:CUI])
            for line in lines
            if line[:CUI] in cuis and line.startswith(ENGLISH, CUI)
        ]


class NormalisedText(NamedTuple):
    """A text in the form in which the gate compares texts."""

    line: str  # its words, with one blank between them
    words: frozenset[str]  # and two capitals whose plural is in the text
    roots: list[str]  # of its words, without their endings


def normalise(text: str) -> NormalisedText:
    """Normalise a text.

    >>> normalise("CLDs, or Cro\u0301hn's diseases of the liver").roots
    ['clds', 'or', 'crohn', 'diseas', 'liver']
    """
    visible = "".join(
        character
        for character in unicodedata.normalize("NFKD", text)
        if unicodedata.category(character) not in {"Mn", "Cf"}
    )
    folded = unicodedata.normalize("NFKD", visible.casefold()).replace("\u2019", "'")
    parts = "".join(c if c.isalnum() or c in "'_" else " " for c in folded).split()
    words = " ".join(map(_without_possessive, parts)).replace("_", " ").split()
    roots = [_root(word) for word in words if word not in ARTICLES]
    return NormalisedText(" ".join(words), frozenset(words) | _plurals(text), roots)


class Diseases:
    """Finds the diseases of these names, pairs of a name and a CUI, in texts.

    With `loose` the search is the loose one.
    """

    def __init__(self, names: Iterable[tuple[str, str]], *, loose: bool = False) -> None:
        self._loose = loose
        self._by_line: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._by_word: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._by_root: dict[str, list[tuple[Counter[str], tuple[str, str]]]] = defaultdict(list)
        for name in set(names):
            line, _, roots = normalise(name[0])
            if len(line) < WITHIN_WORDS:
                self._by_word[line].add(name)
                continue
            self._by_line[line].add(name)
            if " " in line and len(together := line.replace(" ", "")) >= RUN_TOGETHER:
                self._by_line[together].add(name)
            if roots := self._stems(roots, several=len(roots) > 1):
                self._by_root[min(roots)].append((Counter(roots), name))
        self._by_word.pop("", None)

    def find(self, text: str) -> dict[str, str]:
        """The diseases that a text names: the longest name that it has of each, by CUI."""
        names = [name for reading in _readings(text) for name in self._find(reading)]
        names.sort(key=lambda name: (len(name[0]), name))
        return {cui: name for name, cui in names}

    def _stems(self, roots: list[str], *, several: bool) -> list[str]:
        """The roots by which names of one word, or of several ones, are compared."""
        cut = several or self._loose
        return [ADJECTIVE.sub("", root) for root in roots] if cut else roots

    def _find(self, text: str) -> list[tuple[str, str]]:
        """The names, with their CUIs, that a text has."""
        line, words, roots = normalise(text)
        single, stems = self._stems(roots, several=False), self._stems(roots, several=True)
        names_in_text = [
            name for part, names in self._by_line.items() if part in line for name in names
        ]
        names_in_text += [
            name for word in words if len(word) > 1 for name in self._by_word.get(word, ())
        ]  # a single character names nothing
        for root in {*single, *stems}:
            for root_counts, name in self._by_root.get(root, ()):
                total = root_counts.total()
                roots = stems if total > 1 else single
                size = total + 1 if self._loose and total > 1 else total
                starts = range(max(1, len(roots) - size + 1))
                windows = (roots[start : start + size] for start in starts)
                if any(root in window and root_counts <= Counter(window) for window in windows):
                    names_in_text.append(name)
        return names_in_text


def _readings(text: str) -> set[str]:
    """A text as a person reads it: plain, without hyphens within words, spelt words joined.

    >>> sorted(_readings("a C.L.N. of dys-trophy"))
    ['a C.L.N. of dys-trophy', 'a C.L.N. of dystrophy', 'a CLN of dys-trophy']
    """
    plain = "".join(map(as_latin, html.unescape(text)))
    joined = SPELT.sub(lambda match: re.sub(r"[.\s]", "", match[0]), plain)
    return {plain, HYPHEN.sub("", plain), joined}


@cache
def as_latin(character: str) -> str:
    """The Latin letter that a letter of another alphabet looks like, by Unicode's confusables.

    >>> "".join(map(as_latin, "f\u0435v\u0435r, \u03b2"))
    'fever, \u03b2'
    """
    if not character.isalpha() or unicodedata.name(character, "").startswith("LATIN"):
        return character
    entry = confusables.is_confusable(character, greedy=True) or [{"homoglyphs": []}]
    letters = [other["c"] for other in entry[0]["homoglyphs"] if LATIN.fullmatch(other["c"])]
    if letters == ["l"] and character.isupper():
        return "I"  # Unicode holds I and l for one
    return letters[0] if letters else character


def _without_possessive(part: str) -> str:
    """A run of letters and apostrophes, without the s of each possessive, the rest apart."""
    pieces = part.split("'")
    return " ".join([pieces[0], *(piece for piece in pieces[1:] if piece != "s")])


def _plurals(text: str) -> set[str]:
    """Abbreviations of two capitals or digits that are in the plural: `mi` for "MIs"."""
    plain = "".join(
        c if c.isalnum() or c == "_" else " " for c in unicodedata.normalize("NFKC", text)
    )
    return {
        word[:2].lower()
        for word in plain.split()
        if len(word) == 3 and word[2] == "s" and word[:2].isascii() and word[:2] == word[:2].upper()
        if "_" not in word
    }


def _root(word: str) -> str:
    """A word without the ending by which singular and plural differ."""
    for ending in ENDINGS if len(word) >= SHORTEST else ():
        root = word.removesuffix(ending)
        if root != word and len(root) >= ROOT and not word.endswith("ss"):
            return root
    return word
