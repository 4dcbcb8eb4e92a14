"""Which answer a text is that a model wrote: one rule for folders and servers.

A text that is no answer is *unanswered*. It is counted, and never an answer by chance.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pandas as pd

from medprobe.core.answers import THINK_END, biolama
from medprobe.core.tables import DISTRACTOR, SLOT

NAMES: Final = "names"
LINES: Final = {"first_line": 0, "last_line": -1}
CUT, EMPTY, NO_NAME, SEVERAL = "cut", "no text", "no name", "several names"

_END_MARK: Final = re.compile(r"<[|｜][^<>]{1,40}[|｜]>|</?s>|<eos>|<(?:end|start)_of_turn>")
# Thoughts stand between tags such as <think> and [THINK], or in a channel of gpt-oss's, whose marks
# some servers leave out ("analysis…assistantfinal…"), or between marks of one family's own.
_TAG: Final = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning)[>\]▷]"
_MARKS: Final = {  # of single families, that begin thoughts and end them
    r"<\|begin_of_thought\|>": r"<\|end_of_thought\|>",
    r"<\|START_THINKING\|>": r"<\|END_THINKING\|>",
    r"<\|channel>thought": r"<channel\|>",
    r"<unused94>(?:thought)?": r"<unused95>",  # MedGemma
    r"## Thinking\n": r"## Final Response\n",  # HuatuoGPT-o1
}
_BEGIN: Final = re.compile(
    rf"[<\[◁]{_TAG}|<\|channel\|>(?:analysis|commentary)|analysis(?=[^\W\d_])|{'|'.join(_MARKS)}",
    re.IGNORECASE,
)
_END: Final = re.compile(
    rf"(?:[<\[]/|◁/){_TAG}|<\|channel\|>final[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    rf"|{'|'.join(_MARKS.values())}",
    re.IGNORECASE,
)
_BARE_END: Final = "assistantfinal"
# These begin at the first of a run only and never go back: their time is linear.
_EMPHASIS: Final = re.compile(r"(?<![\w*_`])[*_`]++(?=\S)|(?<=[^\s*_`])[*_`]++(?!\w)")
_HEADING: Final = re.compile(r"^[^\S\n]*#{1,6}\s+", re.MULTILINE)
_SENTENCE_END: Final = re.compile(r"(?<=[a-z0-9)]{2})[.!?](?=\s|$)")  # after no initial, no Dr.
_POSSESSIVE: Final = re.compile(r"(?<=\w)['’]s\b")

Words = tuple[str, ...]


class Answer(NamedTuple):
    """An answer, or "" and why there is none."""

    name: str
    unanswered: str = ""


@dataclass(frozen=True)
class Extraction:
    """How a text is read.

    Attributes:
        extract: `names` takes the one name of the benchmark that occurs; `first_line` and
            `last_line` take a line; anything else is a pattern, of which the first group counts.
        think_end: ends the thoughts before an answer. Empty: there are none.
    """

    extract: str = NAMES
    think_end: str = THINK_END

    def read(self, text: str, names: "Names", query: Any = None, *, is_cut: bool = False) -> Answer:
        """Return the answer that a text is."""
        plain = strip_marks(strip_thoughts(text, self.think_end))
        if is_cut:
            return Answer("", CUT)
        if not plain:
            return Answer("", EMPTY)
        lines = [" ".join(line.split()) for line in plain.splitlines() if line.strip()]
        if self.extract in LINES:
            return names.match(lines[LINES[self.extract]], query)
        if self.extract != NAMES:
            found = re.search(self.extract, plain)
            part = (found[1] if found.re.groups else found[0]) if found else ""
            return names.match(" ".join((part or "").split()), query)
        whole = names.match(lines[0], query)
        return whole if whole.name or not names else names.find(plain, query)


class Names:
    """The names of a benchmark, as whole words of texts.

    Letter case, accents, punctuation, a possessive and the plural's s of longer words are ignored.
    Names of one identifier are one answer.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._whole: dict[str, str] = {}  # by the rule for whole texts
        self._names: dict[Words, str] = {}
        self._ids = defaultdict[Words, set[str]](set)
        self._lengths = defaultdict[str, set[int]](set)  # of names by their first word
        for name, identifier in pairs:
            self._whole.setdefault(biolama(name), name)
            words = _words(name)
            words = words[1:] if words[:1] == ("the",) and len(words) > 1 else words
            if words:
                self._names.setdefault(words, name)
                self._ids[words].add(identifier or name)
                self._lengths[words[0]].add(len(words))

    def __bool__(self) -> bool:
        return bool(self._whole)

    @classmethod
    def of_tables(cls, queries: pd.DataFrame, candidates: pd.DataFrame) -> "Names":
        """Return the candidates, distractors aside, and all names of the queries' answers."""
        listed = candidates[candidates["type"] != DISTRACTOR]
        pairs = [*zip(listed["name"], listed["id"], strict=True)]
        for row in queries.itertuples():
            pairs += zip(row.answers, row.answer_ids, strict=True)
        return cls(pairs)

    def match(self, text: str, query: Any = None) -> Answer:
        """Return the name that a text is, or the query's own subject; any text if none is known."""
        if not self:
            return Answer(text, "" if text else EMPTY)
        rule = biolama(text)
        if rule in self._whole:
            return Answer(self._whole[rule])
        subject = getattr(query, "subject", "")
        if subject and rule == biolama(subject):
            return Answer(subject)
        return Answer("", NO_NAME if rule else EMPTY)

    def find(self, text: str, query: Any = None) -> Answer:
        """Return the one name that occurs in a text, longest first; none where several do.

        What the text repeats of the query's prompt does not count.

        >>> names = Names([("Paris", "1"), ("New York", "2"), ("York", "3")])
        >>> names.find("The capital of France is Paris.")
        Answer(name='Paris', unanswered='')
        >>> names.find("It is new york, I think.").name
        'New York'
        >>> names.find("Paris or York.")
        Answer(name='', unanswered='several names')
        """
        prompt = getattr(query, "prompt", "")
        words = _words(text)
        for part in prompt.split(SLOT):
            words = _without(words, _words(part))
        found = self._occurring(words)
        asked = {*self._occurring(_words(prompt))}
        found = [name for name in found if name not in asked] or (found if found == [words] else [])
        if not found:
            return Answer("", NO_NAME)
        if not set.intersection(*(self._ids[name] for name in found)):
            return Answer("", SEVERAL)
        return Answer(self._names[found[0]])

    def _occurring(self, words: Words) -> list[Words]:
        """Return the names in a text, longest first; one within a longer one does not count."""
        spans = [
            (-length, start)
            for start, word in enumerate(words)
            for length in self._lengths.get(word, ())
            if words[start : start + length] in self._names
        ]
        found: list[Words] = []
        taken: set[int] = set()
        for negative, start in sorted(spans):
            places = {*range(start, start - negative)}
            if not places & taken:
                taken |= places
                found.append(words[start : start - negative])
        return found


class Ranked(NamedTuple):
    """An answer at its rank, its score, its text without thoughts, and why there is none."""

    name: str
    score: float
    text: str
    unanswered: str


def rank_answers(
    texts: Iterable[tuple[str, bool, float]],
    names: Names,
    query: Any,
    extraction: Extraction,
    *,
    add: bool,
) -> list[Ranked]:
    """Return the answers that the texts to a query are, best first, each once.

    >>> texts = [("It is Paris.", False, 0.4), ("I do not know", False, 0.3), ("Paris", False, 0.3)]
    >>> names = Names([("Paris", "1")])
    >>> [(a.name, a.score) for a in rank_answers(texts, names, None, Extraction(), add=True)]
    [('Paris', 0.7), ('', 0.3)]
    """
    ranked: dict[str, Ranked] = {}
    for text, is_cut, score in texts:
        name, reason = extraction.read(text, names, query, is_cut=is_cut)
        plain = strip_thoughts(text, extraction.think_end).strip()
        first = ranked.setdefault(name, Ranked(name, 0.0 if add else score, plain, reason))
        if add:
            ranked[name] = first._replace(score=first.score + score)
    return sorted(ranked.values(), key=lambda answer: -answer.score)


def first_sentence(text: str, *, is_cut: bool) -> tuple[str, bool]:
    """Return what a text that goes on with a prompt says of it, and whether that is cut.

    It is the first sentence: such a text runs on to other things.

    >>> first_sentence("F. Scott Fitzgerald. The novel is", is_cut=True)
    ('F. Scott Fitzgerald.', False)
    >>> first_sentence("gout and pa", is_cut=True)
    ('gout and pa', True)
    """
    end = _SENTENCE_END.search(text)
    return (text[: end.end()], False) if end else (text, is_cut)


def strip_thoughts(text: str, end: str = THINK_END) -> str:
    """Return what follows the thoughts; nothing where they begin and do not end.

    >>> strip_thoughts("<think>pain?</think> gout"), strip_thoughts("[THINK]pain")
    (' gout', '')
    >>> strip_thoughts("analysisThey ask of pain.assistantfinalgout")
    'gout'
    """
    if not end:
        return text
    if end != THINK_END:
        _, mark, rest = text.rpartition(end)
        begin = end.replace("/", "", 1)
        is_open = not mark and begin != end and text.lstrip().startswith(begin)
        return "" if is_open else rest
    if begins_thoughts(text) and text.lstrip()[:1].isalpha() and _BARE_END in text:
        return text.rpartition(_BARE_END)[2]
    ends = [found.end() for found in _END.finditer(text)]
    return text[ends[-1] :] if ends else "" if begins_thoughts(text) else text


def begins_thoughts(text: str) -> bool:
    """Return whether a text begins with the mark of thoughts."""
    return bool(_BEGIN.match(text.lstrip()))


def ends_thoughts(text: str) -> bool:
    """Return whether a text has the mark that ends thoughts."""
    return bool(_END.search(text))


def opened_thoughts(prompt: str) -> str:
    """Return the mark with which a prompt begins the thoughts of the text that follows, or "".

    >>> opened_thoughts("user: gout?\\nassistant: <think>\\n"), opened_thoughts("<think></think>")
    ('<think>', '')
    """
    marks = [found for found in _BEGIN.finditer(prompt) if not prompt[found.end() :].strip()]
    return marks[-1][0] if marks else ""


def strip_marks(text: str) -> str:
    """Return a text up to its first end mark, without Markdown emphasis and headings.

    >>> strip_marks("**Answer:** _gout_</s><|im_end|>"), strip_marks("HLA-B*27 or HLA-C*06")
    ('Answer: gout', 'HLA-B*27 or HLA-C*06')
    """
    parts = (part.strip() for part in _END_MARK.split(text))
    plain = next(filter(None, parts), "")
    return _EMPHASIS.sub("", _HEADING.sub("", plain)).strip()


def _words(text: str) -> Words:
    """Return the words of a text by which names are found.

    >>> _words("The Sjögren's syndromes (AIDS)")
    ('the', 'sjogren', 'syndrome', 'aids')
    """
    folded = unicodedata.normalize("NFKD", _POSSESSIVE.sub("", text)).casefold()
    bare = "".join(letter for letter in folded if not unicodedata.combining(letter))
    words = re.findall(r"[^\W_]+", bare)
    return tuple(
        word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word
        for word in words
    )


def _without(words: Words, part: Sequence[str]) -> Words:
    """Return words without the first occurrence of a part of at least two words."""
    part, size = tuple(part), len(part)
    if size > 1:
        for start in range(len(words) - size + 1):
            if words[start : start + size] == part:
                return words[:start] + words[start + size :]
    return words
