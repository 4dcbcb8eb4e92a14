"""Whether texts name a disease: the gate reads UMLS and texts itself.

This module shares no search with the builder whose tables are checked, so that a mistake of the
builder's names or search cannot hide itself. The rule is the same (decisions.md): a
name counts in any form, without regard to case, accents, widths, invisible characters, punctuation,
plurals and the order of its words, and inside longer words if it has three characters or more. All
`readings` of a text are searched. A name of several words can be run together, and each of its
words can be an adjective.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from ahocorasick_rs import AhoCorasick

from medprobe.gate.readings import readings, spellings
from medprobe.gate.umls import CUI, ENGLISH, STR, read_names

WITHIN_WORDS: Final = 3  # characters of a name
ARTICLES: Final = ("a", "an", "of", "the")
ENDINGS: Final = ("ides", "ata", "ies", "es", "is", "us", "as", "ys", "um", "s", "i", "y", "e", "a")
SHORTEST: Final = 5  # letters of a word that is cut
ROOT: Final = 3  # letters that stay of it
ADJECTIVE: Final = re.compile(r"(?<=\w{5})(?:ical|ic|al|ous)$")
RUN_TOGETHER: Final = 8  # letters of a name of several words that can be one word


def umls_names(path: Path, cuis: set[str]) -> list[tuple[str, str]]:
    """Read `(name, CUI)`: all English names of concepts in MRCONSO.RRF, suppressed ones too."""
    rows = read_names(path, cuis, ENGLISH, "the gate needs UMLS's names to find leaks")
    return [(fields[STR], fields[CUI]) for fields in rows]


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
        if unicodedata.category(character) not in {"Mn", "Me", "Cf"}
    )
    folded = unicodedata.normalize("NFKD", visible.casefold()).replace("\u2019", "'")
    parts = "".join(c if c.isalnum() or c in "'_" else " " for c in folded).split()
    words = " ".join(map(_without_possessive, parts)).replace("_", " ").split()
    roots = [_root(word) for word in words if word not in ARTICLES]
    return NormalisedText(" ".join(words), frozenset(words) | _plurals(text), roots)


def stem(root: str) -> str:
    """A root without the ending of an adjective.

    >>> [stem(normalise(word).roots[0]) for word in ("dystrophic", "dystrophies", "toxic")]
    ['dystroph', 'dystroph', 'toxic']
    """
    return ADJECTIVE.sub("", root)


class Diseases:
    """Finds the diseases of these names, pairs of a name and a CUI, in texts.

    >>> Diseases([("fever, acute", "C1"), ("TB", "C2")]).find("an acute or chronic fever")
    {'C1': 'fever, acute'}
    """

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        by_line: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._by_word: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._by_root: dict[str, list[tuple[Counter[str], tuple[str, str]]]] = defaultdict(list)
        for name in set(names):
            for spelling in spellings(name[0]):
                line, _, roots = normalise(spelling)
                if len(line) < WITHIN_WORDS:
                    self._by_word[line].add(name)
                    continue
                by_line[line].add(name)
                if " " in line and len(together := line.replace(" ", "")) >= RUN_TOGETHER:
                    by_line[together].add(name)
                if stems := [stem(root) for root in roots] if len(roots) > 1 else roots:
                    self._by_root[min(stems)].append((Counter(stems), name))
        self._by_word.pop("", None)
        self._lines = [*by_line.items()]
        self._search = AhoCorasick([line for line, _ in self._lines])

    def find(self, text: str) -> dict[str, str]:
        """The diseases that a text names: the longest name that it has of each, by CUI."""
        names = {name for reading in readings(text) for name in self._find(reading)}
        return {cui: name for name, cui in sorted(names, key=lambda name: (len(name[0]), name))}

    def _find(self, text: str) -> list[tuple[str, str]]:
        """The names, with their CUIs, that a text has."""
        line, words, roots = normalise(text)
        matches = self._search.find_matches_as_indexes(line, overlapping=True)
        names = [name for number, _, _ in matches for name in self._lines[number][1]]
        names += [
            name for word in words if len(word) > 1 for name in self._by_word.get(word, ())
        ]  # a single character names nothing
        stems = [stem(root) for root in roots]
        for root in {*roots, *stems}:
            for counts, name in self._by_root.get(root, ()):
                size = counts.total()
                places = stems if size > 1 else roots
                starts = range(len(places) - size + 1)
                if any(counts == Counter(places[start : start + size]) for start in starts):
                    names.append(name)
        return names


def _without_possessive(part: str) -> str:
    """A run of letters and apostrophes, without the s of each possessive, the rest apart."""
    pieces = part.split("'")
    return " ".join([pieces[0], *(piece for piece in pieces[1:] if piece != "s")])


def _plurals(text: str) -> set[str]:
    """Abbreviations of two capitals or digits that are in the plural: `mi` for "MIs"."""
    words = "".join(
        c if c.isalnum() or c == "_" else " " for c in unicodedata.normalize("NFKC", text)
    ).split()
    return {
        word[:2].lower()
        for word in words
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
