"""Expectations on families of queries: one fact under several wordings and names.

Each is on the column `query_id` of `queries`, and passes all queries where a benchmark has no
families.
"""

import pandas as pd

from medprobe.core.tables import ORIGINAL, SLOT
from medprobe.gate.checks import Context, says, value_check
from medprobe.gate.expectations.names import look
from medprobe.gate.expectations.tables import SUBJECT, has_answer


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


@value_check
@says("another wording looks the same")
def expect_wordings_to_look_different(query_ids: pd.Series, context: Context) -> pd.Series:
    """No two prompts of a family differ only in case, blanks or what nobody sees."""
    members = _members(context)
    looks = members.assign(look=members["prompt"].map(look))
    return _spread(~looks.duplicated(["family_id", "look"]), query_ids)


@value_check
@says("another relation has the wording")
def expect_wordings_to_keep_their_relation(query_ids: pd.Series, context: Context) -> pd.Series:
    """No wording is one of another relation, or another one of its own with its slots exchanged."""
    members = _members(context)
    templates = [
        prompt.replace(subject, SUBJECT)
        for prompt, subject in zip(members["prompt"], members["subject"], strict=True)
    ]
    relations: dict[str, set[str]] = {}
    for template, relation in zip(templates, members["relation"], strict=True):
        relations.setdefault(template, set()).add(relation)
    passes = [
        relations[template] == {relation}
        and relation not in relations.get(_exchanged(template), set())
        for template, relation in zip(templates, members["relation"], strict=True)
    ]
    return _spread(pd.Series(passes, members.index, dtype=bool), query_ids)


def _exchanged(template: str) -> str:
    """A template with its slots exchanged."""
    return SUBJECT.join(part.replace(SUBJECT, SLOT) for part in template.split(SLOT))
