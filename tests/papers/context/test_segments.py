"""Segments and contexts: a worked example, and what holds for any document."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from medprobe.papers.context.benchmarks.context.steps import (
    CONTEXT_KINDS,
    Mention,
    Segment,
    layouts,
    nearest,
    segments,
    text,
)

# A case like that of the paper's Figure 1, in other words.
CASE = (
    "Since spring she had heartburn at night, felt sick in the morning, and with her nasal polyp "
    "came a runny nose and mucus in the throat; her nose was blocked. No wheeze was heard."
)
POOL = ["heartburn", "felt sick", "runny nose", "mucus in the throat", "nose was blocked", "wheeze"]


def find(names: list[str], document: str) -> list[Mention]:
    return sorted(
        Mention(match.start(), match.end(), name)
        for name in names
        for match in re.finditer(name, document)
    )


def case(most: int = 10) -> list[Segment]:
    pool = find(POOL, CASE)
    centre = nearest(find(["runny nose"], CASE), find(["nasal polyp"], CASE))
    return segments(pool, centre, len(CASE), most)


def test_the_case_is_cut_outwards_from_the_target() -> None:
    assert [CASE[part.start : part.end] for part in case()] == [
        " in the morning, and with her nasal polyp came a runny nose and ",
        " at night, felt sick",
        "mucus in the throat; her ",
        "Since spring she had heartburn",
        "nose was blocked. No ",
        "wheeze was heard.",
    ]


def test_the_cases_inputs_grow_in_the_documents_order() -> None:
    parts = case(most=4)
    mention_steps = [[parts[n].mention.id for n in step] for step in layouts("real", parts, "")]
    assert mention_steps == [
        ["runny nose"],
        ["felt sick", "runny nose"],
        ["felt sick", "runny nose", "mucus in the throat"],
        ["heartburn", "felt sick", "runny nose", "mucus in the throat"],
    ]
    assert text("real", sorted(parts), CASE) == CASE[: CASE.index("nose was")].strip()
    assert text("knowledge-only", sorted(parts), CASE) == (
        "heartburn, felt sick, runny nose, mucus in the throat."
    )


def test_sorted_contexts_keep_the_order_of_adding() -> None:
    parts = case()
    last = layouts("knowledge-sorted", parts, "")[-1]
    assert text("knowledge-sorted", [parts[n] for n in last], CASE) == (
        "runny nose, felt sick, mucus in the throat, heartburn, nose was blocked, wheeze."
    )


def test_a_single_mention_takes_the_whole_document() -> None:
    only = Mention(3, 5, "x")
    assert segments([only], only, 9, 10) == [Segment(0, 9, only)]


def test_the_nearest_target_is_the_first_of_equals() -> None:
    targets = [Mention(0, 2, "t"), Mention(12, 14, "t"), Mention(30, 32, "t")]
    assert nearest(targets, [Mention(6, 8, "s")]) == targets[0]
    assert nearest(targets, [Mention(6, 8, "s"), Mention(33, 35, "s")]) == targets[2]


@st.composite
def documents(draw: st.DrawFn) -> tuple[list[Mention], Mention, int]:
    """Pool mentions that do not overlap, one of them, and a document's length."""
    gaps = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=25))
    pool, at = [], 0
    for gap, length in gaps:
        pool.append(Mention(at + gap, at + gap + length, draw(st.sampled_from("abcde"))))
        at += gap + length
    return pool, draw(st.sampled_from(pool)), at + draw(st.integers(0, 9))


@given(documents(), st.integers(1, 12))
def test_segments_partition_a_window_with_one_entity_each(
    document: tuple[list[Mention], Mention, int], most: int
) -> None:
    pool, centre, length = document
    parts = segments(pool, centre, length, most)
    assert len(parts) == min(most, len(pool))
    assert parts[0].mention == centre
    ordered = sorted(parts)
    for segment, following in pairwise(ordered):
        assert segment.end == following.start
    for part in parts:
        inside = [m for m in pool if part.start <= m.start and m.end <= part.end]
        assert inside == [part.mention]
    if len(parts) == len(pool):
        assert (ordered[0].start, ordered[-1].end) == (0, length)


@given(documents(), st.integers(2, 12))
def test_sides_alternate_until_one_is_exhausted(
    document: tuple[list[Mention], Mention, int], most: int
) -> None:
    pool, centre, length = document
    parts = segments(pool, centre, length, most)
    left_count, right = pool.index(centre), len(pool) - pool.index(centre) - 1
    turns = ["left" if part.mention < centre else "right" for part in parts[1:]]
    both = 2 * min(left_count, right)
    assert turns[:both] == (["left", "right"] * both)[: len(turns[:both])]
    assert len(set(turns[both:])) <= 1


@given(documents(), st.sampled_from(CONTEXT_KINDS), st.text(max_size=5))
def test_each_step_adds_one_segment_and_keeps_the_order_of_the_others(
    document: tuple[list[Mention], Mention, int], kind: str, seed: str
) -> None:
    parts = segments(*document, most=10)
    steps = layouts(kind, parts, seed)
    assert steps[0] == [0]
    for before, after in pairwise(steps):
        added = set(after) - set(before)
        assert len(added) == 1
        assert [number for number in after if number not in added] == before
    assert sorted(steps[-1]) == list(range(len(parts)))
    if kind in ("real", "knowledge-only"):
        assert all(step == sorted(step, key=lambda n: parts[n].start) for step in steps)
    if kind == "knowledge-sorted":
        assert all(step == list(range(len(step))) for step in steps)
    assert layouts(kind, parts, seed) == steps


@given(documents())
def test_real_texts_are_nested_pieces_of_the_document(
    document: tuple[list[Mention], Mention, int],
) -> None:
    pool, centre, length = document
    words = "".join(chr(97 + n % 26) for n in range(length))
    parts = segments(pool, centre, length, 10)
    step_texts = [
        text("real", [parts[n] for n in step], words) for step in layouts("real", parts, "")
    ]
    for before, after in zip(step_texts, [*step_texts[1:], words], strict=True):
        assert before in after
