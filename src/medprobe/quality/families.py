"""Expectations on families of queries: one fact under several wordings and names.

Each is on the column `query_id` of `queries`, and passes all queries where a benchmark has no
families.
"""

import pandas as pd

from medprobe.core.tables import ORIGINAL
from medprobe.quality.checks import Context, value_check
from medprobe.quality.expectations import has_answer


@value_check
def expect_families_to_be_whole(query_ids: pd.Series, context: Context) -> pd.Series:
    """Each family has two queries or more, and one of them has the own wording and name."""
    members = _members(context)
    is_own = (members["wording"] == ORIGINAL) & (members["name_kind"] == ORIGINAL)
    families = is_own.groupby(members["family_id"])
    whole = families.transform("any") & (families.transform("size") > 1)
    return _spread(whole, query_ids)


@value_check
def expect_family_prompts_to_differ(query_ids: pd.Series, context: Context) -> pd.Series:
    """No two queries of a family have equal prompts."""
    members = _members(context)
    return _spread(~members.duplicated(["family_id", "prompt"], keep=False), query_ids)


@value_check
def expect_wordings_to_hold_no_answer(query_ids: pd.Series, context: Context) -> pd.Series:
    """No wording but the original has an answer among its words, the subject aside."""
    members = _members(context)
    columns = (members[name] for name in ("wording", "prompt", "subject", "answers"))
    passes = [
        wording == ORIGINAL or not has_answer(prompt.replace(subject, " "), answers)
        for wording, prompt, subject, answers in zip(*columns, strict=True)
    ]
    return _spread(pd.Series(passes, members.index, dtype=bool), query_ids)


@value_check
def expect_other_names_to_be_of_one_subject(query_ids: pd.Series, context: Context) -> pd.Series:
    """No further name of a subject names another subject or a candidate, whatever its case."""
    queries, members = context.tables["queries"], _members(context)
    subjects = queries[["subject", "subject_id"]].set_axis(["name", "id"], axis=1)
    named = pd.concat([subjects, context.tables["candidates"][["name", "id"]]])
    ids_by_name = named.groupby(named["name"].str.casefold())["id"].nunique()
    concepts = members["subject"].str.casefold().map(ids_by_name)
    return _spread((members["name_kind"] == ORIGINAL) | (concepts == 1), query_ids)


def _members(context: Context) -> pd.DataFrame:
    """The queries of families; no rows where a benchmark has none."""
    queries = context.tables["queries"]
    if "family_id" not in queries:
        return queries.head(0).assign(family_id="", wording="", name_kind="")
    return queries[queries["family_id"] != ""]


def _spread(passes: pd.Series, query_ids: pd.Series) -> pd.Series:
    """The verdicts of members for all queries: a query outside families passes."""
    return passes.reindex(query_ids.index, fill_value=True)
