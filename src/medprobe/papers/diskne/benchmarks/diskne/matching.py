"""Which diseases a text mentions, in any form.

Nothing a model trains on may name the one it is tested on.

The paper's rule is "check for occurrences of all the synonyms" (Alghanmi et al. 2021, section 3.3);
its released code looks for raw characters, which misses a comma or an accent. Here texts and names
are folded first: case, accents, full-width letters, invisible characters, punctuation, a possessive
's, and British or American spelling make no difference. A name is mentioned where

- it is in the text, within a longer word too, if it has three characters or more;
- it is a word of its own, or in capitals with a plural s, if it has two;
- its words, plural or not, are adjacent in any order: "failure of the heart". Of a name of several
  words, each can be an adjective: "allergic asthma" for "asthma, allergy".

The search looks into all readings of a text (gate/readings.py): without tags and masks, with
lists of words taken apart, with spelt letters joined. A name of several words can be one word, if
it has eight letters or more. Names of one character are not looked for. The gate has a search of
its own for the same forms.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from ahocorasick_rs import AhoCorasick

from medprobe.gate.readings import readings, spellings

INSIDE: Final = 3  # characters; shorter names must be words of their own
WORD: Final = re.compile(r"[^\W_]+")
POSSESSIVE: Final = re.compile(r"['\u2019]s\b")
PLURAL: Final = re.compile(r"\b[A-Z0-9]{2}s\b")  # of an abbreviation of two letters
SMALL: Final = frozenset({"a", "an", "of", "the"})
ENDING: Final = re.compile(r"(?<=...)(?:ides|ata|ies|es|is|us|as|ys|um|(?<!s)s|i|y|e|a)$")
ADJECTIVE: Final = re.compile(r"(?<=\w{5})(?:ical|ic|al|ous)$")
TOGETHER: Final = 8  # letters of a name of several words that can be one word
STEMMED: Final = 5  # letters; shorter words keep their endings


class Forms:
    """Finds diseases by their names, pairs of a name and its disease, in any form.

    >>> forms = Forms([("Kidney disease, chronic", "C1"), ("CLD", "C2"), ("MI", "C3")])
    >>> sorted(forms.diseases("Chronic diseases of the kidney; h/o clds, family"))
    ['C1', 'C2']
    >>> forms.diseases("Two MIs") == forms.diseases("the mi") == {"C3"}
    True
    """

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._inside: dict[str, set[str]] = defaultdict(set)
        self._short: dict[str, set[str]] = defaultdict(set)
        self._bags: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for form, disease in {(form, cui) for name, cui in names for form in spellings(name)}:
            words = WORD.findall(fold(form))
            whole = " ".join(words)
            if len(whole) >= INSIDE:
                self._inside[whole].add(disease)
                if len(words) > 1 and len(together := "".join(words)) >= TOGETHER:
                    self._inside[together].add(disease)
                if roots := _roots(words):
                    bag = _stems(roots) if len(roots) > 1 else roots
                    self._bags[tuple(sorted(bag))].add(disease)
            elif len(whole) > 1:
                self._short[whole].add(disease)
        self._texts = list(self._inside)
        self._automaton = AhoCorasick(self._texts)
        self._lengths = sorted({len(bag) for bag in self._bags})

    def diseases(self, text: str) -> set[str]:
        """The diseases that the text mentions."""
        return set().union(*map(self._diseases, readings(text)))

    def _diseases(self, text: str) -> set[str]:
        """The diseases that one reading of a text mentions."""
        plain = unicodedata.normalize("NFKC", text)
        words = WORD.findall(fold(text))
        mentioned: set[str] = set()
        for number, _, _ in self._automaton.find_matches_as_indexes(
            " ".join(words), overlapping=True
        ):
            mentioned |= self._inside[self._texts[number]]
        for word in {*words, *(plural[:-1].lower() for plural in PLURAL.findall(plain))}:
            mentioned |= self._short.get(word, set())
        roots = _roots(words)
        stems = _stems(roots)
        for length in self._lengths:
            bag = stems if length > 1 else roots
            for start in range(len(bag) - length + 1):
                mentioned |= self._bags.get(tuple(sorted(bag[start : start + length])), set())
        return mentioned


def fold(text: str) -> str:
    """Text without case, accents, invisible characters and a possessive 's.

    >>> fold("Cro\u200bhn\u2019s di\u0301sease, ＭＩ")
    'crohn disease, mi'
    """
    apart = unicodedata.normalize("NFKD", text.casefold())
    seen = "".join(c for c in apart if unicodedata.category(c) not in ("Mn", "Cf"))
    return POSSESSIVE.sub("", seen.casefold())


def _roots(words: list[str]) -> list[str]:
    """Return the words that count, without the endings of singular and plural."""
    return [
        ENDING.sub("", word) if len(word) >= STEMMED else word
        for word in words
        if word not in SMALL
    ]


def _stems(roots: list[str]) -> list[str]:
    """Roots without the endings of adjectives, if five letters or more stay.

    >>> _stems(_roots(["dystrophic", "dystrophy", "cardiac", "toxic"]))
    ['dystroph', 'dystroph', 'cardiac', 'toxic']
    """
    return [ADJECTIVE.sub("", root) for root in roots]
