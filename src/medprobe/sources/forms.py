"""Names in any form that a writer can give them: where a text mentions a disease.

A *reading* is a text of its own: what a writer can do to a name and still mean it. `Forms` looks
into all readings of a text.
"""

import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from ahocorasick_rs import AhoCorasick

WORD: Final = r"[^\W_]+"
LETTER: Final = r"[^\W\d_]"
STOP: Final = r"\s?\.\s*"
SPELT: Final = re.compile(  # of two letters with full stops only if they are capitals
    rf"(?<![\w.])(?<!\b\w/){LETTER}(?:(?:{STOP}{LETTER}){{2,}}\.?|(?:\s{LETTER}){{2,}})(?!\w)"
    rf"|(?<![\w.])[A-Z](?:\.[A-Z]\.?|{STOP}[A-Z]\s?\.)(?!\w)"
    rf"|(?<![\w./'])(?!a\s){LETTER}\s{LETTER}(?![\w./'])"  # "m i"
)
STOPPED: Final = re.compile(  # a full stop for each letter, and no blanks: small ones, too
    rf"(?<![\w.])(?!(?:[aApP]\.m|[eE]\.g|[iI]\.e)\.(?!\w))(?:{LETTER}\.){{2,}}(?!\w)"
)
HYPHEN: Final = re.compile(rf"(?<={LETTER})[-\u2010\u2011]\s*(?={LETTER})")
NOISE: Final = re.compile(  # tags, masks of names, escapes of URLs, of mails and of strings
    r"<[/!?]?[A-Za-z-][^<>]*>|\[\*\*.*?\*\*\]|_{2,}|[%=][0-9A-F]{2}|=\r?\n|\\[nrt]",
    re.DOTALL | re.IGNORECASE,
)
ESCAPE: Final = re.compile(r"(?:[%=]|\\x|\\u00)([2-7][0-9A-F])", re.IGNORECASE)  # of one letter
APOSTROPHES: Final = re.compile("[`\u00b4\u02bc\u2018\u2032]")
ITEM: Final = rf"{WORD}(?:-{WORD})*-?"
AND: Final = (
    r"(?:\s*,)?(?:\s+(?:and(?:\s*/\s*or)?|or|nor|on|as\s+well\s+as|versus|vs\.?)\s+"
    r"|\s*&\s*/\s*or\s+|\s*[/&+]\s*)"
)
LIST: Final = re.compile(rf"\b{ITEM}(?:\s*,\s*{ITEM})*(?:{AND}{ITEM})+", re.IGNORECASE)
SEPARATOR: Final = re.compile(rf"{AND}|\s*,\s*", re.IGNORECASE)
OF: Final = re.compile(r"\b(?:of|in)(?:\s+the)?\s+$", re.IGNORECASE)
NUMBER: Final = re.compile(r"\w{1,2}|[IVX]+|\d+")  # "hepatitis B and C"
AMERICAN: Final = [  # a British spelling, and the American one
    (re.compile(r"\u00e6|\u0153|[ao]e(?=[a-z]{2}|a\b)"), "e"),
    (re.compile(r"(?<=[a-z]{2})our(?=al|s?\b)"), "or"),
    (re.compile(r"(?<=[bt])re(?=s?\b)"), "er"),
    (re.compile(r"(?<=[iy])s(?=(?:e[ds]?|ing|ation)\b)"), "z"),
    (re.compile(r"sulph"), "sulf"),
    (re.compile(r"leuco"), "leuko"),
]
INSIDE: Final = 3  # characters; shorter names must be words of their own
POSSESSIVE: Final = re.compile(r"['\u2019]s\b")
PLURAL: Final = re.compile(r"\b[A-Z0-9]{2}s\b")  # of an abbreviation of two letters
SMALL: Final = frozenset({"a", "an", "of", "the"})
ENDING: Final = re.compile(r"(?<=...)(?:ides|ata|ies|es|is|us|as|ys|um|(?<!s)s|i|y|e|a)$")
ADJECTIVE: Final = re.compile(r"(?<=\w{5})(?:ical|ic|al|ous)$")
TOGETHER: Final = 8  # letters of a name of several words that can be one word
STEMMED: Final = 5  # letters; shorter words keep their endings
RUN: Final = re.compile(WORD)


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
            words = RUN.findall(fold(form))
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
        words = RUN.findall(fold(text))
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


def readings(text: str) -> set[str]:
    """Read a text in all ways: each of these changes or none, and in American spelling.

    - without entities of HTML, and without tags, masks and escapes: "fever<br>, [** **]";
    - without hyphens within words: "dys-trophy";
    - with spelt letters joined: "C.L.D.", "C. D.", "C L D", "c d", and "c.d.", but not "a.m.",
      "p.m.", "e.g." and "i.e.";
    - with one item of a list of words in the list's place: "acute and chronic fever".

    >>> sorted(readings("C.L.D. &amp; dys-trophy"))
    ['C.L.D. & dys-trophy', 'C.L.D. & dystrophy', 'CLD & dys-trophy']
    """
    plain = _visible(text)
    decoded = ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), plain)
    texts = {plain, decoded, NOISE.sub("", plain), NOISE.sub(" ", plain)}
    texts |= {item for plain in texts for item in _items(plain)}
    texts |= {HYPHEN.sub("", plain) for plain in texts} | {
        _joined(spelt, plain) for plain in texts for spelt in (SPELT, STOPPED)
    }
    return {spelling for plain in texts for spelling in spellings(plain)}


def spellings(text: str) -> set[str]:
    """Spell a text as it is, and as Americans do.

    >>> sorted(spellings("Oedema and a tumour"))
    ['Oedema and a tumour', 'edema and a tumor']
    """
    lower = american = text.lower()
    for british, letters in AMERICAN:
        american = british.sub(letters, american)
    return {text, american} if american != lower else {text}


def _visible(text: str) -> str:
    """What a reader sees: without entities, widths and invisible characters."""
    while (again := html.unescape(text)) != text:
        text = again
    text = APOSTROPHES.sub("'", unicodedata.normalize("NFKC", text))
    return "".join(c for c in text if unicodedata.category(c) != "Cf")


def _joined(spelt: re.Pattern[str], text: str) -> str:
    return spelt.sub(lambda found: "".join(filter(str.isalpha, found[0])), text)


def _items(text: str) -> Iterator[str]:
    """The text with one item of a list of words in the list's place.

    The words before the list belong to its first item, and to all of them after "of" or "in" or
    where the items are numbers or letters.

    >>> [*_items("acute and chronic failure of the heart or liver")][2:]
    ['acute and chronic failure of the heart', 'acute and chronic failure of the liver']
    """
    for words in LIST.finditer(text):
        before = text[: words.start()]
        for place, item in enumerate(SEPARATOR.split(words[0])):
            belongs = not place or OF.search(before) or NUMBER.fullmatch(item)
            for after in _after(text[words.end() :]):
                yield f"{before if belongs else ''}{item}{after}"


def _after(text: str) -> Iterator[str]:
    """What follows a list: the text, and with one item of the list that it begins with, if any."""
    yield text
    text = text.lstrip()
    if words := LIST.match(text):
        yield from (f" {item}{text[words.end() :]}" for item in SEPARATOR.split(words[0]))
