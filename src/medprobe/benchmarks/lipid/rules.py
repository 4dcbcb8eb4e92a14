"""The rules by which a sentence of PubMed becomes a prompt of LIPID, or does not.

Source: Shaier et al., section 3.2.3 (the creation of LIPID).
"""

import re
from typing import Final, NamedTuple

from medprobe.core.tables import SLOT
from medprobe.sources.mentions import Mentions

# Words of hypotheses, plans and reports rather than facts, with the forms in which verbs and nouns
# among them stand; whole words, these in any case ...
FILTER_WORDS: Final = {
    "here": (),
    "we": (),
    "investigate": ("investigates", "investigated", "investigating"),
    "study": ("studies", "studied", "studying"),
    "propose": ("proposes", "proposed", "proposing"),
    "outline": ("outlines", "outlined", "outlining"),
    "our": (),
    "performed": (),
    "suggest": ("suggests", "suggested", "suggesting"),
}
_FORMS = [form for word, more in FILTER_WORDS.items() for form in (word, *more)]
# ... and these as they stand. A parenthesis often gives the entity's other name away.
FILTER_EXACT: Final = (r"\bHowever\b", r"\(")
FILTER: Final = re.compile("|".join([rf"\b(?i:{'|'.join(_FORMS)})\b", *FILTER_EXACT]))

# A sentence ends at a mark before something that can start one: a capital, a digit, a Greek letter,
# or a name such as "p53" and "mTOR".
_END = re.compile(r"[.!?][\"'”’)\]]*\s+(?=[\"'“‘(\[]?(?:[A-ZΑ-Ωα-ω0-9]|[a-z]{1,3}[A-Z0-9]))")
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|cf|vs|al|approx|ca|Figs?|Tabs?|Nos?|Dr|Prof|Mr|Mrs|St|spp?|subsp|var|resp)"
    r"|(?:^|[\s(])(?:[A-Z]\.)*[A-Z])\.$"
)
LONGEST: Final = 12  # characters back from a mark in which an abbreviation is looked for


class MaskedSentence(NamedTuple):
    """A sentence with its one entity masked; `entities` are the ids of the names it may be."""

    text: str
    entities: tuple[str, ...]


def sentences(text: str) -> list[str]:
    """Divide a text into sentences. Abbreviations and initials, "U.S." too, end none.

    >>> sentences("E. coli was grown, e.g. In vitro. p53 fell! Why?")
    ['E. coli was grown, e.g. In vitro.', 'p53 fell!', 'Why?']
    """
    parts, start = [], 0
    for end in _END.finditer(text):
        if not _NO_END.search(text, max(start, end.start() - LONGEST), end.start() + 1):
            parts.append(text[start : end.end()].strip())
            start = end.end()
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


def prompt(sentence: str, entities: Mentions) -> MaskedSentence | str:
    """Return the sentence as a prompt, or the rule that drops it.

    A sentence must hold exactly one mention of any listed entity, as whole words, and none of the
    filter's words.

    >>> prompt("Aspirin lowers fever.", Mentions([("aspirin", "A")]))
    MaskedSentence(text='[Y] lowers fever.', entities=('A',))
    >>> prompt("Here, aspirin lowers fever.", Mentions([("aspirin", "A")]))
    'filter word: here'
    """
    mentions = entities.find(sentence)
    if len(mentions) != 1:
        return "several mentions" if mentions else "no mention"
    if word := FILTER.search(sentence):
        return f"filter word: {word[0] if word[0] == 'However' else word[0].lower()}"
    if SLOT in sentence:
        return f"holds {SLOT} itself"
    mention = mentions[0]
    return MaskedSentence(sentence[: mention.start] + SLOT + sentence[mention.end :], mention.ids)
