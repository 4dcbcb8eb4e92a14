"""The steps of all contexts that one document gives for one fact: the rows of the query table.

A *pool* mention is a mention of an entity of the object's type. Segments are cut so that each holds
exactly one; they are added to the prompt one by one, outwards from the centre. Source: the paper on
context variance, Methods, "Context Segmentation and Retrieval" and "Context Variance Prompt
Generation".
"""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple

from medprobe.core.errors import BadInput
from medprobe.core.tables import SLOT
from medprobe.papers.context.texts import RANDOM, Document

ContextKind = Literal["real", "knowledge-only", "knowledge-sorted", "knowledge-random"]
CONTEXT_KINDS: Final[tuple[ContextKind, ...]] = (
    "real",
    "knowledge-only",
    "knowledge-sorted",
    RANDOM,
)


class Mention(NamedTuple):
    """The characters from `start` up to `end` of a document name the entity `id`."""

    start: int
    end: int
    id: str


class Segment(NamedTuple):
    """The characters from `start` up to `end`, which hold one pool mention."""

    start: int
    end: int
    mention: Mention


def nearest(targets: Sequence[Mention], subjects: Sequence[Mention]) -> Mention:
    """Return the target mention with the fewest characters between it and the subject.

    The first one of equals.

    >>> nearest([Mention(0, 5, "fever"), Mention(30, 35, "fever")], [Mention(22, 28, "flu")])
    Mention(start=30, end=35, id='fever')
    """
    return min(targets, key=lambda target: min(_gap(target, subject) for subject in subjects))


def _gap(first: Mention, second: Mention) -> int:
    return max(first.start - second.end, second.start - first.end, 0)


def segments(pool: Sequence[Mention], centre: Mention, length: int, most: int) -> list[Segment]:
    """Divide a document of `length` characters into at most `most` segments, in the order of use.

    The first is the centre's, then in turn the next one on the left and on the right; where one
    side is exhausted, those of the other side.

    `pool` holds all pool mentions, in the order of the text and without overlap; `centre` is one of
    them. A segment reaches from the pool mention before it to the one after it, on the side of the
    centre to the segment before it; so segments leave no gap and do not overlap.
    """
    middle = list(pool).index(centre)
    bounds = [0, *(mention.end for mention in pool[:middle])]
    before = [
        Segment(start, end, mention)
        for start, end, mention in zip(bounds, bounds[1:], pool[:middle], strict=False)
    ][::-1]
    bounds = [*(mention.start for mention in pool[middle + 1 :]), length]
    after = [
        Segment(start, end, mention)
        for start, end, mention in zip(bounds, bounds[1:], pool[middle + 1 :], strict=False)
    ]
    ordered = [Segment(before[0].end if before else 0, bounds[0], centre)]
    for turn in range(max(len(before), len(after))):
        ordered += before[turn : turn + 1] + after[turn : turn + 1]
    return ordered[:most]


def layouts(kind: ContextKind, parts: Sequence[Segment], seed: str) -> list[list[int]]:
    """For each step the numbers of the segments that it shows, left to right.

    Real and knowledge-only contexts keep the document's order, sorted ones that in which segments
    are added. Random ones start with segment 0; then the rest in a random order, each put at a
    random place.
    """
    numbers = list(range(len(parts)))
    if kind == RANDOM:
        return _shuffled(numbers, random.Random(seed))
    nested = list(accumulate(([number] for number in numbers), list.__add__))
    if kind == "knowledge-sorted":
        return nested
    return [sorted(step, key=lambda number: parts[number].start) for step in nested]


def _shuffled(numbers: list[int], draw: random.Random) -> list[list[int]]:
    steps = [numbers[:1]]
    for number in draw.sample(numbers[1:], len(numbers) - 1):
        place = draw.randrange(len(steps[-1]) + 1)
        steps.append([*steps[-1][:place], number, *steps[-1][place:]])
    return steps


def text(kind: ContextKind, parts: Sequence[Segment], document: str) -> str:
    """Return the context made of these segments, which are in the order of the text.

    A real context has the document's own characters. The others have the mentions alone, in the
    document's wording.
    """
    if kind == "real":
        return document[parts[0].start : parts[-1].end].strip()
    return ", ".join(document[part.mention.start : part.mention.end] for part in parts) + "."


WORD: Final = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Evidence:
    """A document that mentions both ends of a fact.

    `mentions` are `(start, end, cui)` in the order of the text; `correct` are all objects of the
    subject, `pool` all entities of the objects' type.
    """

    resource: str
    document: Document
    mentions: list[tuple[int, int, str]]
    relation: str
    subject_id: str
    fact_id: str
    prompt: str
    correct: frozenset[str]
    pool: frozenset[str]

    def digest(self, *more: str) -> str:
        """A name for what is made of this evidence."""
        parts = (self.resource, self.document.id, self.relation, self.subject_id, self.fact_id)
        return hashlib.sha256("\n".join([*parts, *more]).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Limits:
    """How long a context may grow: segments, and words of the whole input."""

    segments: int
    words: int


def words(passage: str) -> int:
    """Count the words and marks of a text.

    >>> words("No fever, no cough.")
    6
    """
    return sum(1 for _ in WORD.finditer(passage))


def steps(
    evidence: Evidence, limits: Limits, seed: int, dropped: Counter[str], draws: int = 1
) -> list[dict]:
    """Return one row per step of eight contexts, two of each kind, random ones `draws` times.

    One is around the target, one around the negative target, which is the first incorrect entity
    that the target's context adds.

    No rows where a context cannot be made; `dropped` counts these, by rule. Raises BadInput where
    the document does not mention the fact's two ends.
    """
    if SLOT in evidence.document.text:
        dropped["document: its text holds the slot"] += 1
        return []
    pool, subjects = _mentions(evidence)
    targets = [mention for mention in pool if mention.id == evidence.fact_id]
    if not targets or not subjects:
        dropped["document: subject and object share all their mentions"] += 1
        return []
    centre = nearest(targets, subjects)
    parts = _cut(evidence, pool, centre, limits)
    wrong = [part.mention for part in parts if part.mention.id not in evidence.correct]
    if not parts or not wrong:
        rule = "no incorrect entity in the context" if parts else "first segment beyond the window"
        dropped[f"document: {rule}"] += 1
        return []
    negative = _cut(evidence, pool, wrong[0], limits)
    if not negative:
        dropped["document: first segment beyond the window"] += 1
        return []
    rows: list[dict] = []
    for name, segments_around in (("target", parts), ("negative", negative)):
        for kind in CONTEXT_KINDS:
            for draw in range(draws if kind == RANDOM else 1):
                rows += _context(evidence, (name, kind, draw), segments_around, seed)
    return rows


def _mentions(evidence: Evidence) -> tuple[list[Mention], list[Mention]]:
    """Pool mentions and mentions of the subject.

    A mention of several entities counts as one of the target, otherwise of a correct object,
    otherwise of the first entity by CUI. No mention counts as one of the subject and of the pool.
    """
    spans: dict[tuple[int, int], set[str]] = {}
    for start, end, cui in evidence.mentions:
        spans.setdefault((start, end), set()).add(cui)
    named = {cui for ids in spans.values() for cui in ids}
    for cui in (evidence.subject_id, evidence.fact_id):
        if cui not in named:
            where = f"{evidence.resource}, document {evidence.document.id}"
            raise BadInput(where, f"does not mention {cui}", "delete its index and build again")
    pool, subjects = [], []
    for (start, end), ids in sorted(spans.items()):
        if evidence.subject_id in ids:
            subjects.append(Mention(start, end, evidence.subject_id))
        elif pooled := ids & evidence.pool:
            correct = pooled & evidence.correct
            target = pooled & {evidence.fact_id}
            pool.append(Mention(start, end, min(target or correct or pooled)))
    return pool, subjects


def _cut(evidence: Evidence, pool: list[Mention], centre: Mention, limits: Limits) -> list[Segment]:
    """Return the segments around a mention that fit into the window with the prompt."""
    document = evidence.document.text
    parts = segments(pool, centre, len(document), limits.segments)
    room = limits.words - words(evidence.prompt)
    while (
        parts
        and max(words(text(kind, sorted(parts), document)) for kind in CONTEXT_KINDS[:2]) > room
    ):
        parts.pop()
    return parts


def _context(
    evidence: Evidence, name: tuple[str, ContextKind, int], parts: list[Segment], seed: int
) -> Iterable[dict[str, Any]]:
    """Rows of one context, from step 0, the prompt alone. `name`: its centre, kind and draw."""
    centre, kind, draw = name
    drawn = [str(draw)] if draw else []
    context = evidence.digest(centre, kind, *drawn)
    target = parts[0].mention.id
    shared = {
        "relation": evidence.relation,
        "subject_id": evidence.subject_id,
        "fact_id": evidence.fact_id,
        "context_id": context,
        "pair_id": evidence.digest(kind, *drawn),
        "resource": evidence.resource,
        "document": evidence.document.id,
        "centre": centre,
        "kind": kind,
        "draw": draw,
        "target_id": target,
    }
    held = {part.mention.id for part in parts}
    orders = layouts(kind, parts, f"{seed} {context}")
    main = (centre, kind) == ("target", "real")
    for step, order in enumerate([[], *orders]):
        visible = [parts[number] for number in order]
        before = [] if step < 2 else orders[step - 2]
        added = next((parts[number] for number in order if number not in before), None)
        subset = "alone" if not step else "full" if step == len(orders) else "steps"
        passage = text(kind, visible, evidence.document.text) if visible else ""
        prompt = f"{passage} {evidence.prompt}".strip()
        yield shared | {
            "query_id": f"{context}/{step}",
            "subset": subset if main else "steps",
            "step": step,
            "prompt": prompt,
            "words": words(prompt),
            "added_id": added.mention.id if added else "",
            "added_role": _role(added.mention.id, target, evidence) if added else "",
            "added_start": added.start if added else 0,
            "added_end": added.end if added else 0,
            "shown_ids": sorted({part.mention.id for part in visible}),
            "tracked_ids": sorted(held | evidence.correct if main and subset != "steps" else held),
        }


def _role(added: str, target: str, evidence: Evidence) -> str:
    if added == target:
        return "target"
    return "correct" if added in evidence.correct else "incorrect"
