"""Contexts for one fact out of one document: segments, their order, and their text.

A *pool* mention is a mention of an entity of the object's type. Segments are cut so that each holds
exactly one; they are added to the prompt one by one, outwards from the centre. Source: the paper on
context variance, Methods, "Context Segmentation and Retrieval" and "Context Variance Prompt
Generation".
"""

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, Literal, NamedTuple

ContextKind = Literal["real", "knowledge-only", "knowledge-sorted", "knowledge-random"]
CONTEXT_KINDS: Final[tuple[ContextKind, ...]] = (
    "real",
    "knowledge-only",
    "knowledge-sorted",
    "knowledge-random",
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
    if kind == "knowledge-random":
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
