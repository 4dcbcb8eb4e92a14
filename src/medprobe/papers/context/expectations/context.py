"""Expectations on contexts.

Checks that read text take the ids of steps and look the text up, so that no report of the gate
shows it.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

from medprobe.gate.checks import Context, row_check, value_check


@value_check
def expect_real_contexts_to_be_in_their_documents(ids: pd.Series, context: Context) -> list[bool]:
    """In a real context, the text before the prompt is a piece of its document's text."""
    queries = context.tables["queries"]
    steps = queries.set_index("query_id").loc[ids]
    documents = context.tables["documents"].set_index(["resource", "document"])["text"]
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
