"""Expectations on what UCM is computed from: roles, centres, kinds and counts, derived again.

Source: the paper on context variance, Methods and the UCM metric. Like those of `context`, checks
that read text take the ids of steps.
"""

import pandas as pd

from medprobe.gate.checks import Context, row_check, says, value_check
from medprobe.papers.context.expectations.context import entity_spans, passages

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
    documents = context.tables["documents"].set_index(["resource", "document"])["text"]
    spans_of = entity_spans(context)
    rows = queries.assign(passage=list(passages(queries, queries))).sort_values("step")
    accepted: dict[str, bool] = {}
    for _, steps in rows.groupby("context_id"):
        spans: list[tuple[int, int]] = []
        before: list[str] = []
        for step in steps.itertuples():
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
