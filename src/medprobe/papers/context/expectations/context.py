"""Expectations on contexts, and on what UCM is computed from: roles, centres, kinds and counts.

These are derived again. Source: the paper on context variance, Methods and the UCM metric. Checks
that read text take the ids of steps and look the text up, so that no report of the gate shows it.
"""

from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter
from typing import Any

import pandas as pd

from medprobe.gate.checks import Context, row_check, says, value_check


@value_check
def expect_real_contexts_to_be_in_their_documents(ids: pd.Series, context: Context) -> list[bool]:
    """In a real context, the text before the prompt is a piece of its document's text."""
    queries = context.tables["queries"]
    steps = queries.set_index("query_id").loc[ids]
    documents = context.tables["documents"].set_index(["resource", "document"])["text"].to_dict()
    return [
        row.kind != "real" or passage in documents[row.resource, row.document]
        for row, passage in zip(steps.itertuples(), passages(steps, queries), strict=True)
    ]


@value_check
def expect_segments_to_hold_one_entity(ids: pd.Series, context: Context) -> list[bool]:
    """The segment that a step adds holds exactly one mention of a candidate of its relation."""
    steps = context.tables["queries"].set_index("query_id").loc[ids]
    spans_of = entity_spans(context)
    return [row.step == 0 or len(spans_of(row)) == 1 for row in steps.itertuples()]


@value_check
def expect_steps_to_be_nested(ids: pd.Series, context: Context) -> pd.Series:
    """A step shows what the previous step shows and one more segment.

    The text of a real context contains the previous text.
    """
    queries = context.tables["queries"]
    steps = queries.set_index("query_id")
    texts = dict(zip(steps.index, passages(steps, queries), strict=True))
    names_by_step = {step: set(names) for step, names in steps["shown"].items()}
    rows = {row.Index: row for row in steps.itertuples()}

    def is_nested(step: str) -> bool:
        row = rows[step]
        if row.step == 0:
            return not texts[step] and not names_by_step[step]
        previous = f"{row.context_id}/{row.step - 1}"
        if previous not in names_by_step:
            return False
        adds_one_name = names_by_step[step] == names_by_step[previous] | {row.added}
        return adds_one_name and (row.kind != "real" or texts[previous] in texts[step])

    return ids.map(is_nested)


@row_check
def expect_first_added_to_be_the_target(rows: pd.DataFrame) -> pd.Series:
    """Where the first column, the step, is 1, the second, the entity added, is the third."""
    step, added, target = (rows[column] for column in rows)
    return (step != 1) | (added == target)


@row_check
def expect_both_centres_in_pairs(rows: pd.DataFrame) -> pd.Series:
    """Contexts of one pair (the first column) are around the target and the negative target."""
    pair, centre = rows.columns
    return rows.groupby(pair)[centre].transform("nunique") == 2


def passages(steps: pd.DataFrame, queries: pd.DataFrame) -> Iterable[str]:
    """The text of each step before its prompt, which is the whole text of the context's step 0."""
    first_steps = queries.query("step == 0")
    prompts = dict(zip(first_steps["context_id"], first_steps["prompt"], strict=True))
    for context, prompt in zip(steps["context_id"], steps["prompt"], strict=True):
        yield prompt.removesuffix(prompts[context]).strip()


def entity_spans(context: Context) -> Callable[[Any], list[tuple[int, int]]]:
    """A function that gives the spans of a step's segment that mention a candidate, in order.

    Spans that mention the subject do not count.
    """
    candidates = context.tables["candidates"].groupby("type")["id"].agg(set).to_dict()
    mentions = {
        key: list(part[["start", "end", "cui"]].itertuples(index=False, name=None))
        for key, part in context.tables["mentions"].groupby(["resource", "document"])
    }

    def spans_of(step: Any) -> list[tuple[int, int]]:
        within = [
            (start, end, cui)
            for start, end, cui in mentions[step.resource, step.document]
            if step.added_start <= start and end <= step.added_end
        ]
        subject = {(start, end) for start, end, cui in within if cui == step.subject_id}
        pool = candidates[step.relation]
        return sorted({(start, end) for start, end, cui in within if cui in pool} - subject)

    return spans_of


ONLY = "knowledge-only"
SORTED = "knowledge-sorted"


@row_check
@says("the role differs from the one that the ids give")
def expect_roles_to_follow_ids(rows: pd.DataFrame) -> list[bool]:
    """The entity that a step adds has the role that the ids give it.

    Columns `added_role, added_id, target_id, answer_ids`: the target, otherwise a correct object,
    otherwise an incorrect entity; no role where nothing is added.
    """
    accepted = []
    for role, added, target, answers in rows.itertuples(index=False, name=None):
        other = "correct" if added in answers else "incorrect"
        accepted.append(role == ("target" if added == target else other if added else ""))
    return accepted


@row_check
@says("the centre differs from the one that the ids give")
def expect_centres_to_follow_ids(rows: pd.DataFrame) -> list[bool]:
    """A context around the target has the fact's object as target, a negative one an incorrect one.

    Columns `centre, target_id, fact_id, answer_ids`.
    """
    return [
        target == fact if centre == "target" else target not in answers
        for centre, target, fact, answers in rows.itertuples(index=False, name=None)
    ]


@row_check
def expect_objects_to_be_counted(rows: pd.DataFrame, context: Context) -> list[bool]:
    """A step has the number of its subject's objects and the frequency of its fact's object.

    Columns `objects, frequency, fact_id, answer_ids`. The frequency of an object is the same in all
    rows. It is at least the number of the table's documents that mention the object, and at most
    the number of documents that were read.
    """
    objects, frequency, fact, answers = rows.columns
    mentions = context.tables["mentions"].drop_duplicates(["resource", "document", "cui"])
    least = mentions["cui"].value_counts().to_dict()
    sources = context.tables["sources"]
    most = sources.loc[sources["what"] == "documents", "rows"].sum()
    is_one = rows.groupby(fact)[frequency].transform("nunique") == 1
    return [
        count == len(ids) and least.get(cui, 1) <= documents <= most and equal
        for count, documents, cui, ids, equal in zip(
            *(rows[name] for name in (objects, frequency, fact, answers)), is_one, strict=True
        )
    ]


@value_check
@says("its mentions are not in the order of its kind")
def expect_layouts_to_follow_kinds(ids: pd.Series, context: Context) -> list[bool]:
    """A synthetic context has the mentions of its segments in the order of its kind.

    Mentions are as the document writes them: in the document's order (`knowledge-only`), in the
    order in which segments are added (`knowledge-sorted`), or each put at any place among those of
    the step before (`knowledge-random`).
    """
    queries = context.tables["queries"]
    documents = context.tables["documents"].set_index(["resource", "document"])["text"].to_dict()
    spans_of = entity_spans(context)
    rows = queries.assign(passage=list(passages(queries, queries)))
    steps = rows.sort_values(["context_id", "step"]).itertuples()
    accepted: dict[str, bool] = {}
    for _, of_context in groupby(steps, key=attrgetter("context_id")):
        spans: list[tuple[int, int]] = []
        before: list[str] = []
        for step in of_context:
            accepted[step.query_id] = True
            if step.kind == "real" or step.step == 0:
                continue
            document = documents[step.resource, step.document]
            spans += spans_of(step)[:1]
            orders = _orders(step.kind, [document[start:end] for start, end in spans], before)
            if step.kind == ONLY:
                orders = [[document[start:end] for start, end in sorted(spans)]]
            matching = [order for order in orders if ", ".join(order) + "." == step.passage]
            accepted[step.query_id] = bool(matching)
            before = matching[0] if matching else []
    return [accepted[name] for name in ids]


def _orders(kind: str, added: list[str], before: list[str]) -> list[list[str]]:
    """The orders in which a context of this kind can show mentions, given as they were added."""
    if kind == SORTED:
        return [added]
    return [[*before[:place], *added[-1:], *before[place:]] for place in range(len(before) + 1)]
