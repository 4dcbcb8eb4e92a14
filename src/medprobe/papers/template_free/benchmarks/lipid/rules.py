"""The rules by which a sentence of PubMed becomes a prompt of LIPID, or does not.

Source: Shaier et al., section 3.2.3 (the creation of LIPID).
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from medprobe.core.tables import SLOT
from medprobe.papers.template_free.sentence_length import TOO_LONG, is_too_long
from medprobe.sources.mentions import Mentions

# The paper's words of hypotheses, plans and reports rather than facts. A parenthesis often gives
# the entity's other name away.
PAPER: Final = (
    *("here", "we", "investigate", "study", "propose", "outline", "(", "our", "performed"),
    *("suggest", "However"),
)
# The paper's, with the other forms of its verbs and nouns.
OURS: Final = (
    *PAPER,
    *("investigates", "investigated", "investigating", "studies", "studied", "studying"),
    *("proposes", "proposed", "proposing", "outlines", "outlined", "outlining"),
    *("suggests", "suggested", "suggesting"),
)
KEYWORDS: Final = {"paper": PAPER, "ours": OURS}

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


def keyword_pattern(keywords: Sequence[str], where: str = "word") -> re.Pattern[str]:
    """Return the pattern that finds the first of these keywords in a sentence.

    A keyword with a capital letter occurs as it is written, any other one in any case.

    Args:
        keywords: such as `PAPER`.
        where: keywords of letters occur as a whole `word`, or `anywhere`, within others too.

    >>> keyword_pattern(["we", "However"]).findall("WE saw; however, he went. However, it fell.")
    ['WE', 'However']
    >>> keyword_pattern(["we"], "anywhere").findall("They were few.")
    ['we']
    """
    edges = (r"(?<!\w)", r"(?!\w)") if where == "word" else ("", "")
    patterns = []
    for word in keywords:
        literal = re.escape(word) if word != word.lower() else f"(?i:{re.escape(word)})"
        before = edges[0] if word[0].isalnum() else ""
        after = edges[1] if word[-1].isalnum() else ""
        patterns.append(f"{before}{literal}{after}")
    return re.compile("|".join(patterns) or r"(?!)")


def prompt(
    sentence: str,
    entities: Mentions,
    keywords: re.Pattern[str],
    max_words: int | None = None,
) -> MaskedSentence | str:
    """Return the sentence as a prompt, or the rule that drops it.

    A sentence must hold exactly one mention of any listed entity, as whole words, none of the
    keywords, and no more than `max_words` words.

    >>> prompt("Aspirin lowers fever.", Mentions([("aspirin", "A")]), keyword_pattern(PAPER))
    MaskedSentence(text='[Y] lowers fever.', entities=('A',))
    >>> prompt("Here, aspirin lowers fever.", Mentions([("aspirin", "A")]), keyword_pattern(PAPER))
    'filter word: here'
    """
    mentions = entities.find(sentence)
    if len(mentions) != 1:
        return "several mentions" if mentions else "no mention"
    if word := keywords.search(sentence):
        return f"filter word: {word[0] if word[0] == 'However' else word[0].lower()}"
    if is_too_long(sentence, max_words):
        return TOO_LONG
    if SLOT in sentence:
        return f"holds {SLOT} itself"
    mention = mentions[0]
    return MaskedSentence(sentence[: mention.start] + SLOT + sentence[mention.end :], mention.ids)
