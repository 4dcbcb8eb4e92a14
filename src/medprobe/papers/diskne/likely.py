"""Whether texts probably name a disease, in a form that can also be something else.

`leaks` has the forms that are certain. The gate warns of those here, and a person decides:

- up to three more words among those of a name: "cilund , rather severe , dystrophy";
- typing errors, one in a word of five letters or more, two in one of eight: "cilund dystropyh";
- a clipped word: "cilund dystr.";
- the adjective of a name of one word: "anemic";
- an abbreviation of two letters, spelt: "c.d.", "C D".
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from medprobe.gate.leaks import ARTICLES, normalise, plain, stem
from medprobe.gate.readings import readings, spellings

GAP: Final = 3  # more words among those of a name
ABBREVIATION: Final = 3  # characters; shorter names are not looked for in other forms
ONE_ERROR: Final = 5  # letters of a word
TWO_ERRORS: Final = 8
ALONE: Final = 7  # letters of a name of one word that can have an error
CLIPPED: Final = 4  # letters that stay of a word
LOST: Final = 3  # letters that a clipped word lacks, or more
STOPPED: Final = re.compile(r"\b([^\W\d_]{5,})\.")  # a word that can be a name, clipped
SPELT: Final = re.compile(  # each letter begins a pair: "h/o m.i.", "a C D"
    r"(?<![\w.])([^\W\d_])(?=(?:\.\s*|\s(?:\.\s*)?)([^\W\d_])(?!\w))"
)
LATIN_WORDS: Final = {"am", "eg", "ie", "pm"}  # "a.m.", which is no abbreviation of a disease
ADJECTIVES: Final = {  # endings of a noun, and those of its adjectives
    "osis": ("otic", "ous", "ar"),
    "lysis": ("lyzed",),
    "sis": ("tic", "sed"),
    "tis": ("tic",),
    "is": ("itic",),
    "xia": ("ctic",),
    "sion": ("sive", "ssed", "sed"),
    "tion": ("tive", "ted", "tious"),
    "ia": ("ic", "iac", "ial", "ical", "ed", "iated"),
    "sy": ("tic",),
    "osy": ("ous",),
    "xy": ("ctic",),
    "ism": ("", "ic", "istic", "ian"),
    "ity": ("e",),
    "um": ("ous", "al"),
    "us": ("ic", "al", "ous"),
    "es": ("ic",),
    "a": ("atic", "atous", "al", "ic"),
    "e": ("ed", "al", "ous", "ic"),
    "y": ("ic", "al", "ied"),
    "": ("ic", "al", "ous", "y", "ed", "ated"),
}
Name = tuple[str, str]  # and its CUI


class LikelyDiseases:
    """Finds the diseases of these names, pairs of a name and a CUI, that texts probably name.

    `common_words` are that are no typing errors and not clipped.

    >>> search = LikelyDiseases([("anemia", "C1"), ("cilund dystrophy", "C2")], common_words=())
    >>> search.find("an anemic man with cilund dystr.")
    {'C1': 'anemia', 'C2': 'cilund dystrophy'}
    """

    def __init__(self, names: Iterable[Name], common_words: Iterable[str]) -> None:
        self._of_letters: dict[str, set[Name]] = defaultdict(set)
        self._of_word: dict[str, set[Name]] = defaultdict(set)
        self._of_stem: dict[str, list[tuple[list[str], Name]]] = defaultdict(list)
        words: set[str] = set()
        for name in set(names):
            for spelling in spellings(plain(name[0])):
                line, _, roots = normalise(spelling)
                if len(line) < ABBREVIATION:
                    self._of_letters[line].add(name)
                elif len(roots) == 1:
                    self._of_word[line].add(name)
                elif roots:
                    stems = [stem(root) for root in roots]
                    self._of_stem[min(stems)].append((stems, name))
                    words.update(line.split())
        self._adjectives = {
            adjective: word for word in self._of_word for adjective in adjectives(word)
        }
        common_words = {*common_words, *words, *self._of_word}
        self._alone = Misspelt((word for word in self._of_word if len(word) >= ALONE), common_words)
        self._together = Misspelt(words, common_words)

    def find(self, text: str) -> dict[str, str]:
        """The diseases that a text probably names: the longest name of each, by CUI."""
        names: set[Name] = set()
        for first, second in SPELT.findall(plain(text)):
            if (letters := f"{first}{second}".lower()) not in LATIN_WORDS:
                names |= self._of_letters.get(letters, set())
        for reading in readings(plain(text)):
            words = [word for word in normalise(reading).line.split() if word not in ARTICLES]
            stopped = {word.casefold() for word in STOPPED.findall(reading)}
            names |= self._single(words, stopped) | self._several(words)
        return {cui: name for name, cui in sorted(names, key=lambda name: (len(name[0]), name))}

    def _single(self, words: list[str], stopped: set[str]) -> set[Name]:
        """Names of one word: as an adjective, with typing errors, or clipped by a full stop."""
        singular = {word.removesuffix("s") for word in words}
        nouns = {self._adjectives.get(word, "") for word in singular.union(words)}
        for word in words:
            nouns |= self._alone.corrections(word)
        for word in stopped:
            nouns |= self._alone.begun(word)
        return set().union(*(self._of_word.get(noun, ()) for noun in nouns))

    def _several(self, words: list[str]) -> set[Name]:
        """Names of several words that are near each other."""
        places = [self._together.stems(word) for word in words]
        stems_in_text = set().union(*places)
        return {
            name
            for first in stems_in_text
            for stems, name in self._of_stem.get(first, ())
            if stems_in_text.issuperset(stems) and _are_near(stems, places)
        }


class Misspelt:
    """Which of these words a word of a text can be, with typing errors or clipped.

    >>> words = Misspelt(["dystrophy"], common_words=["atrophy"])
    >>> words.corrections("dsytrophyy"), words.begun("dystr"), words.corrections("atrophy")
    ({'dystrophy'}, {'dystrophy'}, set())
    """

    def __init__(self, words: Iterable[str], common_words: set[str]) -> None:
        self._common_words = common_words
        self._typed: dict[str, set[str]] = defaultdict(set)
        self._begun: dict[str, set[str]] = defaultdict(set)
        self._stems: dict[str, frozenset[str]] = {}
        for word in words:
            for form in _shortened(word, _errors(word)):
                self._typed[form].add(word)
            for end in range(CLIPPED, len(word) - LOST + 1):
                self._begun[word[:end]].add(word)

    def stems(self, word: str) -> frozenset[str]:
        """The stems of a word, and of all words that it can be."""
        if word not in self._stems:
            meant = {word, *self.corrections(word), *self.begun(word)}
            roots = [root for meaning in meant for root in normalise(meaning).roots]
            self._stems[word] = frozenset(map(stem, roots))
        return self._stems[word]

    def corrections(self, word: str) -> set[str]:
        """The words of which this one can be a typing error."""
        if word in self._common_words or len(word) < CLIPPED:
            return set()
        similar = {
            right
            for form in _shortened(word, _errors(word) or 1)
            for right in self._typed.get(form, ())
        }
        return {right for right in similar if distance(word, right) <= _errors(right)}

    def begun(self, word: str) -> set[str]:
        """The words that begin with this one."""
        return set() if word in self._common_words else self._begun.get(word, set())


def adjectives(noun: str) -> set[str]:
    """The adjectives that a noun can have; not all exist.

    >>> {"septic", "hypertensive", "epileptic"} <= set().union(
    ...     *map(adjectives, ["sepsis", "hypertension", "epilepsy"])
    ... )
    True
    """
    return {
        noun.removesuffix(ending) + suffix
        for ending, suffixes in ADJECTIVES.items()
        if noun.endswith(ending)
        for suffix in suffixes
    }


def distance(first: str, second: str) -> int:
    """How many letters are missing, doubled, wrong, or exchanged with the next one.

    Source: Damerau 1964, doi:10.1145/363958.363994; in its restricted form.

    >>> distance("dsytrophyy", "dystrophy")
    2
    """
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, start=1):
        earlier, before, row = before, row, [i]
        for j, other in enumerate(second, start=1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != other)))
            if i > 1 and j > 1 and (letter, first[i - 2]) == (second[j - 2], other):
                row[-1] = min(row[-1], earlier[j - 2] + 1)
    return row[-1]


def _errors(word: str) -> int:
    """How many typing errors a word can have."""
    return (len(word) >= ONE_ERROR) + (len(word) >= TWO_ERRORS)


def _shortened(word: str, most: int) -> set[str]:
    """A word without up to so many of its letters. Similar words have one of these in common."""
    forms = {word}
    for _ in range(most):
        forms |= {form[:at] + form[at + 1 :] for form in forms for at in range(len(form))}
    return forms


def _are_near(stems: Sequence[str], places: Sequence[frozenset[str]]) -> bool:
    """Whether some places next to each other, with few others among them, have these stems."""
    size = len(stems) + GAP
    return any(
        _have(stems, places[start : start + size])
        for start in range(max(1, len(places) - size + 1))
    )


def _have(stems: Sequence[str], places: Sequence[frozenset[str]]) -> bool:
    """Whether each stem has a place of its own."""
    return not stems or any(
        _have(stems[1:], [*places[:at], *places[at + 1 :]])
        for at, place in enumerate(places)
        if stems[0] in place
    )
