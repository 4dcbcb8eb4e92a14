"""Where names occur in texts: whole words, the longest name, exact spans, half a million names.

A text is read as *tokens*: words (runs of letters, digits and `_`) and single marks such as `,` or
`+`. White space and hyphens only separate tokens. A name occurs where its tokens follow each other:
"Type-2  diabetes" contains "type 2 diabetes", "type 2, diabetes" does not, and "mi" is not in
"family". Case does not matter, except in names of three characters or fewer, or in those that the
caller declares to be exact. Nor does how Unicode writes a character: both are compared under NFKC
and without invisible characters, so that a ligature, a mark of its own or a soft hyphen hides no
name; a curved apostrophe is a straight one, and a minus sign a hyphen. Spans are always those of
the text as it was given.

Each token becomes a code of three bytes, and an Aho-Corasick automaton (Aho and Corasick 1975,
doi:10.1145/360825.360855) searches all names at once in these codes. The first byte of a code is
above 127, the others are not, so that a match never begins or ends inside a code. It is one of few,
so that the automaton has few ways on from the end of a token: that makes it faster.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from html.entities import html5
from itertools import accumulate, repeat
from typing import Any, Final, NamedTuple

import numpy as np
from ahocorasick_rs import BytesAhoCorasick, MatchKind

from medprobe.core.errors import BadInput, quote


def entity_text(entity: Any) -> str:
    """Return the character of a named entity, by the names that HTML and ISO share."""
    if text := html5.get(f"{entity.name};"):
        return text
    where = f"{entity.getroottree().docinfo.URL or 'XML'}, line {entity.sourceline}"
    problem = f"{quote(f'&{entity.name};')} is no entity of HTML"
    raise BadInput(where, problem, "write the character in its place")


SHORT: Final = 3  # characters; names up to this length match case-sensitively
WORD: Final = re.compile(r"[\w\u0300-\u036f]+")
TOKEN: Final = re.compile(rf"({WORD.pattern}|[^\w\s\u2010-\u2013-])")
RUN: Final = re.compile(r"[\0-\x7f]+(?![^\0-\x7f])|[\0-\x7f]?[^\0-\x7f]+")  # ASCII, and the rest
INVISIBLE: Final = "Cf"  # Unicode's category of soft hyphens, joiners and marks of direction
UNKNOWN: Final = b"\0\0\0"  # the code of a token of no name
STEP: Final = len(UNKNOWN)

# ASCII's characters: 1 those of words, 2 marks, 0 what separates.
KINDS: Final = bytes(
    1 if re.match(r"\w", character) else 2 if TOKEN.match(character) else 0
    for character in map(chr, range(128))
).ljust(256, b"\0")
MARKS: Final = [chr(place) for place, kind in enumerate(KINDS) if kind == 2]

# What print has in place of keys.
TYPED: Final = {**dict.fromkeys("‘’ʼ′´", "'"), "ŉ": "'n", "−": "-"}

Ids = tuple[str, ...]


def is_short(name: str) -> bool:
    """Whether a name matches in its own case only because it has three characters or fewer."""
    return len(name) <= SHORT


def is_symbol(name: str) -> bool:
    """Whether a name is short or a word in capitals: a gene's symbol, such as LARGE and REST.

    >>> [name for name in ("REST", "aspirin", "BRX2", "CAT") if is_symbol(name)]
    ['REST', 'CAT']
    """
    return is_short(name) or (name.isalpha() and name.isupper())


class NameMention(NamedTuple):
    """A name in a text: `text[start:end]` is how it is written there.

    `ids` are the ids of all names written so, in the order in which they were given.
    """

    start: int
    end: int
    ids: Ids

    @property
    def id(self) -> str:
        """The first of the ids."""
        return self.ids[0]


class Mentions:
    """Finds any of many names in texts. Names without a token are left out.

    `names` are pairs of a name and its id; an id may have many names, a name many ids. `exact` says
    which of them occur in their own case only.

    >>> names = Mentions([("heart failure", "C1"), ("failure", "C2"), ("MI", "C3")])
    >>> names.find("Heart  failure in the family after MI.")
    [NameMention(start=0, end=14, ids=('C1',)), NameMention(start=35, end=37, ids=('C3',))]
    >>> [mention.id for mention in names.every("Heart failure")]
    ['C1', 'C2']
    """

    def __init__(
        self, names: Iterable[tuple[str, str]], exact: Callable[[str], bool] = is_short
    ) -> None:
        self._codes: dict[str, bytes] = {}  # folded token → code
        self._rows: dict[bytes, int] = {}  # name in codes → its row
        self._ids: list[Ids] = []  # by row: ids of the names in any case
        self._short: dict[int, dict[str, Ids]] = {}  # by row: ids of exact names by spelling
        for name, identifier in names:
            pattern = b"".join(map(self._code, words(name)))
            if not pattern:
                continue
            row = self._rows.setdefault(pattern, len(self._rows))
            if row == len(self._ids):
                self._ids.append(())
            if exact(name):
                spellings = self._short.setdefault(row, {})
                spelling = _spelling(name)
                spellings[spelling] = _with(spellings.get(spelling, ()), identifier)
            else:
                self._ids[row] = _with(self._ids[row], identifier)

    def __getstate__(self) -> dict[str, Any]:
        automata = ("_longest", "_overlapping")  # which a copy in another process makes itself
        return {name: value for name, value in vars(self).items() if name not in automata}

    def find(self, text: str) -> list[NameMention]:
        """The mentions found from left to right, always the longest name. They do not overlap."""
        return _TextSearch(self, text).longest()

    def every(self, text: str) -> list[NameMention]:
        """All mentions, also those inside longer ones, in the order of their ends."""
        return _TextSearch(self, text).every()

    def _code(self, token: str) -> bytes:
        if token not in self._codes:
            number = len(self._codes) + 1
            self._codes[token] = bytes((128 | number >> 14, number >> 7 & 127, number & 127))
        return self._codes[token]

    @cached_property
    def _longest(self) -> BytesAhoCorasick:
        return BytesAhoCorasick(list(self._rows), matchkind=MatchKind.LeftmostLongest)

    @cached_property
    def _overlapping(self) -> BytesAhoCorasick:
        return BytesAhoCorasick(list(self._rows), matchkind=MatchKind.Standard)


class _TextSearch:
    """One text, searched for the names."""

    def __init__(self, names: Mentions, text: str) -> None:
        self.names = names
        self.text = text
        self.tokens, self.starts, self.ends = _tokens(text)
        self.codes = b"".join(map(names._codes.get, self.tokens, repeat(UNKNOWN)))

    def longest(self) -> list[NameMention]:
        mentions: list[NameMention] = []
        begin = 0
        while begin < len(self.codes):
            begin = self._append_longest(begin, mentions)
        return mentions

    def every(self) -> list[NameMention]:
        matches = self.names._overlapping.find_matches_as_indexes(self.codes, overlapping=True)
        return [mention for mention in self._mentions(matches) if mention.ids]

    def _append_longest(self, begin: int, mentions: list[NameMention]) -> int:
        """Append the longest names from byte `begin` of the codes on.

        The automaton ignores case. It can match an exact name that the text spells in another case,
        which is no mention. The shorter names inside that match, which the automaton passed over,
        may be mentions: the search has to begin again after the first of them.
        """
        matches = self.names._longest.find_matches_as_indexes(self.codes[begin:])
        if begin:
            matches = [(row, start + begin, end + begin) for row, start, end in matches]
        for mention, (_, start, end) in zip(self._mentions(matches), matches, strict=True):
            if mention.ids:
                mentions.append(mention)
            elif end - start > STEP:  # more than one token: there is room for a shorter name
                return self._append_shorter(start, end, mentions)
        return len(self.codes)

    def _append_shorter(self, start: int, end: int, mentions: list[NameMention]) -> int:
        """Append the longest name at byte `start` that ends before `end`, if there is one.

        Returns the byte after that name, or after the first token.
        """
        for stop in range(end - STEP, start, -STEP):
            row = self.names._rows.get(self.codes[start:stop])
            if row is not None and (mention := self._mentions([(row, start, stop)])[0]).ids:
                mentions.append(mention)
                return stop
        return start + STEP

    def _mentions(self, matches: list[tuple[int, int, int]]) -> list[NameMention]:
        """Return the mention of each match `(row, first byte, byte after the last)`.

        A short name in another case has no ids.
        """
        ids, starts, ends = self.names._ids, self.starts, self.ends
        mentions = [
            NameMention(int(starts[first_byte // STEP]), int(ends[end // STEP - 1]), ids[row])
            for row, first_byte, end in matches
        ]
        exact_spellings = self.names._short
        for number, (row, _, _) in enumerate(matches):
            if row in exact_spellings:
                mentions[number] = self._with_short(mentions[number], exact_spellings[row])
        return mentions

    def _with_short(self, mention: NameMention, spellings: dict[str, Ids]) -> NameMention:
        """The mention with the ids of the short names of this spelling."""
        ids = mention.ids
        for identifier in spellings.get(_spelling(self.text[mention.start : mention.end]), ()):
            ids = _with(ids, identifier)
        return mention._replace(ids=ids)


def words(text: str) -> list[str]:
    """A text's tokens in the form in which they are compared.

    >>> words("Interferon-gamma") == words("interferon  gamma")
    True
    """
    return _tokens(text)[0]


def _tokens(text: str) -> tuple[list[str], Sequence[int], Sequence[int]]:
    """A text's tokens, normalised and case-folded, and where each starts and ends in the text."""
    if text.isascii():
        return _ascii_tokens(text)
    folded, first, last = _folded(text)
    pieces = TOKEN.split(folded)  # gap, token, gap, token, ..., gap
    bounds = list(accumulate(map(len, pieces)))[:-1]
    starts, ends = [first[at] for at in bounds[::2]], [last[at - 1] for at in bounds[1::2]]
    return pieces[1::2], starts, ends


def _folded(text: str) -> tuple[str, list[int], list[int]]:
    """A text, normalised and case-folded, and where each character of it starts and ends."""
    forms: list[str] = []
    first: list[int] = []
    last: list[int] = []
    for run in RUN.finditer(text):
        if run[0].isascii():  # most of a text, and quickly done
            forms.append(run[0].lower())
            first += range(*run.span())
            last += range(run.start() + 1, run.end() + 1)
            continue
        for piece, start, end in _pieces(run[0]):
            forms.append(form := _normal(piece, fold=True))
            first += [run.start() + start] * len(form)
            last += [run.start() + end] * len(form)
    return "".join(forms), first, last


def _pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """The pieces of a text that are normalised one by one, without invisible characters.

    A piece is a character with what Unicode composes with it, and where they begin and end.
    """
    piece, start, end = "", 0, 0
    for place, character in enumerate(text):
        if unicodedata.category(character) == INVISIBLE:
            continue
        if piece and not _composes(piece, character):
            yield piece, start, end
            piece = ""
        piece, start, end = piece + character, start if piece else place, place + 1
    if piece:
        yield piece, start, end


def _composes(piece: str, character: str) -> bool:
    """Whether a character belongs to the piece before it: a mark, or a part of a syllable."""
    if character.isascii():
        return False
    apart = unicodedata.normalize("NFKC", piece) + unicodedata.normalize("NFKC", character)
    together = unicodedata.normalize("NFKC", piece + character)
    return unicodedata.combining(character) > 0 or together != apart


@lru_cache(maxsize=4096)
def _normal(piece: str, *, fold: bool) -> str:
    """A piece under NFKC, case-folded too, if the form is of its kind.

    A word stays one word and a mark one mark. So the sign ™ does not become letters of the word
    before it, and ½ no three tokens.

    >>> [_normal(piece, fold=True) for piece in ("\ufb01", "\uff08", "\u2122", "\u00bd")]
    ['fi', '(', '\u2122', '\u00bd']
    """
    piece = TYPED.get(piece, piece)
    normal = unicodedata.normalize("NFKC", piece)
    if fold:
        normal = unicodedata.normalize("NFKC", normal.casefold())
    if WORD.fullmatch(normal) if WORD.match(piece) else not WORD.match(normal) and len(normal) == 1:
        return normal
    return piece.casefold() if fold else piece


def _ascii_tokens(text: str) -> tuple[list[str], Sequence[int], Sequence[int]]:
    """As `_tokens`, for an ASCII text, twice as fast."""
    kinds = np.frombuffer(text.encode().translate(KINDS), np.uint8)
    goes_on = kinds[1:] & kinds[:-1] & 1  # a word
    starts, ends = kinds.copy(), kinds.copy()
    starts[1:] -= goes_on
    ends[:-1] -= goes_on
    spaced = text.lower().replace("-", " ")
    for mark in MARKS:
        if mark in spaced:
            spaced = spaced.replace(mark, f" {mark} ")
    return spaced.split(), np.flatnonzero(starts), np.flatnonzero(ends) + 1  # type: ignore[return-value]


def _spelling(name: str) -> str:
    """A name's tokens in their own case."""
    normal = name
    if not name.isascii():
        normal = "".join(_normal(piece, fold=False) for piece, *_ in _pieces(name))
    return " ".join(TOKEN.findall(normal))


def _with(ids: Ids, identifier: str) -> Ids:
    return ids if identifier in ids else (*ids, identifier)
