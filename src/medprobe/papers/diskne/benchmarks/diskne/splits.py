"""DisKnE's splits: for each disease, nothing that mentions it is trained on.

Source: Alghanmi et al. 2021, section 3.3.

Nothing a model trains on may name the disease it is tested on, in any form. The paper's rule is
"check for occurrences of all the synonyms"; its released code looks for raw characters, which
misses a comma or an accent. Here texts and names are folded first: case, accents, full-width
letters, invisible characters, punctuation, a possessive 's, and British or American spelling make
no difference. A name is mentioned where

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

import numpy as np
import pandas as pd
from ahocorasick_rs import AhoCorasick

from medprobe.gate.readings import readings, spellings

Match = Literal["forms", "substrings"]
Names = Mapping[str, Sequence[str]]  # of each target disease
SPLITS: Final = ["target", "split", "example_id"]
TEXTS: Final = ("premise", "full_hypothesis", "hypothesis")


def touched(
    examples: pd.DataFrame,
    names: Names,
    match: Match = "forms",
    below: Mapping[str, Names] | None = None,
) -> np.ndarray:
    """Find which examples mention which disease: bool [examples, diseases of `names` in order].

    An example mentions its own disease, the disease that this replaced, and every disease of which
    a name in any form, or the CUI, is in its premise, full hypothesis or hypothesis.
    `match="substrings"` looks for names as the released code does: as raw characters, and in the
    premise only. An example that mentions a disease `below` another one, with the names of that
    disease, mentions that one too.
    """
    below = below or {}
    every = {**names}
    for descendants in below.values():
        every |= descendants
    mentions = _mentioned(examples, every, match)
    places = {cui: place for place, cui in enumerate(every)}
    families = ([target, *below.get(target, ())] for target in names)
    columns = [mentions[:, [places[cui] for cui in family]].any(axis=1) for family in families]
    return np.array(columns, dtype=bool).reshape(len(names), len(examples)).T


def _mentioned(examples: pd.DataFrame, names: Names, match: Match) -> np.ndarray:
    places = {cui: place for place, cui in enumerate(names)}
    by_form = Forms([*_pairs(names), *((cui, cui) for cui in names)])
    search = by_form.diseases if match == "forms" else _substrings(names)
    is_mentioned = np.zeros((len(examples), len(places)), dtype=bool)
    for column in ("cui", "original_cui"):
        place = examples[column].map(places)
        is_target = place.notna().to_numpy()
        is_mentioned[np.flatnonzero(is_target), place[is_target].astype(int)] = True
    for column in TEXTS if match == "forms" else TEXTS[:1]:
        codes, texts = pd.factorize(examples[column])
        mentions = np.zeros((len(texts), len(places)), dtype=bool)
        for row, text in enumerate(texts):
            mentions[row, [places[cui] for cui in search(text)]] = True
        is_mentioned |= mentions[codes]
    return is_mentioned


def _pairs(names: Names) -> list[tuple[str, str]]:
    return [(name, cui) for cui, disease_names in names.items() for name in disease_names]


def _substrings(names: Names) -> Callable[[str], set[str]]:
    lowered = [(name.lower(), cui) for name, cui in _pairs(names) if name]

    def search(text: str) -> set[str]:
        text = text.lower()
        return {cui for name, cui in lowered if name in text}

    return search


def split(
    examples: pd.DataFrame,
    mentions: np.ndarray,
    targets: Sequence[str],
    share: float,
    seed: int,
    *,
    shared_premises: bool = False,
) -> pd.DataFrame:
    """Divide the examples for each target disease, of which `touched` gives the `mentions`.

    The columns are `target, split, example_id`.

    `test` are the positives of the target and their negatives. `train` and `validation` are the
    examples that do not mention it and, unless `shared_premises` are allowed, have no premise that
    is tested; validation is this share of their pairs (at least one), so that a pair is on one side
    only.
    """
    original = examples["original_cui"].to_numpy()
    pairs, distinct = pd.factorize(examples["pair_id"], sort=True)
    premises, _ = pd.factorize(examples["premise"].map(fold).str.split().str.join(" "))
    parts = [pd.DataFrame(columns=SPLITS, dtype=str)]
    for place, target in enumerate(targets):
        test = original == target
        train = ~mentions[:, place] & ~test
        if not shared_premises:
            train &= ~np.isin(premises, premises[test]) & ~np.isin(pairs, pairs[test])
        generator = np.random.default_rng([seed, place])
        mixed = generator.permutation(np.unique(pairs[train]))
        held = np.zeros(len(distinct), dtype=bool)
        held[mixed[: max(1, round(share * len(mixed)))]] = True
        validation = train & held[pairs]
        sides = {"train": train & ~validation, "validation": validation, "test": test}
        for name, rows in sides.items():
            parts.append(examples.loc[rows, ["example_id"]].assign(target=target, split=name))
    return pd.concat(parts, ignore_index=True)


def split_as_released(
    examples: pd.DataFrame, mentions: np.ndarray, targets: Sequence[str], share: float
) -> pd.DataFrame:
    """Divide the examples as the authors' released code divides one annotation file.

    Of rows alike in premise and disease the first stays, in each category's test set and in what
    trains; what trains is mixed, always in the same way, and its last rows validate, so that a pair
    may be on both sides. Source: `splits.py` of israa-alghanmi/DisKnE, commit 11bbdb9.
    """
    from sklearn.model_selection import train_test_split
    from sklearn.utils import shuffle

    alike = ["premise", "hypothesis"]
    parts = [pd.DataFrame(columns=SPLITS, dtype=str)]
    for place, target in enumerate(targets):
        about = examples[examples["original_cui"] == target]
        test = about.drop_duplicates(["category", *alike])
        rest = shuffle(examples[~mentions[:, place]].drop_duplicates(alike), random_state=42)
        train, validation = train_test_split(rest, test_size=share, shuffle=False)
        for name, rows in (("train", train), ("validation", validation), ("test", test)):
            parts.append(rows[["example_id"]].assign(target=target, split=name))
    return pd.concat(parts, ignore_index=True)


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
