"""What is expected of contexts. Checks that read text take the ids of steps and look the text up,
so that no report of the gate shows any of it."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from medprobe.quality.checks import row_check, tables, value_check


@value_check
def expect_real_contexts_to_be_in_their_documents(ids: pd.Series) -> pd.Series:
    """What stands before the prompt, in a real context, is a piece of its document's text."""
    steps = tables.get()["queries"].set_index("query_id").loc[ids]
    documents = tables.get()["documents"].set_index(["resource", "document"])["text"]
    found = [
        row.kind != "real" or passage in documents[row.resource, row.document]
        for row, passage in zip(steps.itertuples(), _passages(steps), strict=True)
    ]
    return pd.Series(found, index=ids.index)


@value_check
def expect_segments_to_hold_one_entity(ids: pd.Series) -> pd.Series:
    """The segment that a step adds holds exactly one mention of a candidate of its relation."""
    steps = tables.get()["queries"].set_index("query_id").loc[ids]
    candidates = tables.get()["candidates"].groupby("type")["id"].agg(set).to_dict()
    mentions = {
        key: list(part[["start", "end", "cui"]].itertuples(index=False, name=None))
        for key, part in tables.get()["mentions"].groupby(["resource", "document"])
    }
    found = [
        row.step == 0
        or _spans(row, mentions[row.resource, row.document], candidates[row.relation]) == 1
        for row in steps.itertuples()
    ]
    return pd.Series(found, index=ids.index)


@value_check
def expect_steps_to_be_nested(ids: pd.Series) -> pd.Series:
    """A step shows what the step before it shows and one segment more; the text of a real context
    holds the text before."""
    steps = tables.get()["queries"].set_index("query_id")
    passages = dict(zip(steps.index, _passages(steps), strict=True))
    shown = {step: set(names) for step, names in steps["shown"].items()}
    rows = {row.Index: row for row in steps.itertuples()}

    def nested(step: str) -> bool:
        row = rows[step]
        if row.step == 0:
            return not passages[step] and not shown[step]
        before = f"{row.context_id}/{row.step - 1}"
        if before not in shown or shown[step] != shown[before] | {row.added}:
            return False
        return row.kind != "real" or passages[before] in passages[step]

    return ids.map(nested)


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


def _passages(steps: pd.DataFrame) -> Iterable[str]:
    """The text of each step before its prompt, which is all of the context's step 0."""
    first = tables.get()["queries"].query("step == 0")
    alone = dict(zip(first["context_id"], first["prompt"], strict=True))
    for context, prompt in zip(steps["context_id"], steps["prompt"], strict=True):
        yield prompt.removesuffix(alone[context]).strip()


def _spans(step: Any, mentions: list[tuple[int, int, str]], candidates: set[str]) -> int:
    """How many stretches of a step's segment mention a candidate and not the subject."""
    inside = [m for m in mentions if step.added_start <= m[0] and m[1] <= step.added_end]
    subject = {(start, end) for start, end, cui in inside if cui == step.subject_id}
    return len({(start, end) for start, end, cui in inside if cui in candidates} - subject)
