"""Names that a program changed, that name nothing, or that look like another one.

Also relations that are turned round or are one under two names, and families of queries: one fact
under several wordings and names. Those pass all queries where a benchmark has no families.
"""

import re
import unicodedata
from collections.abc import Iterable
from itertools import combinations
from typing import Final

import pandas as pd

from medprobe.core.looks import find_fault
from medprobe.core.tables import ORIGINAL, SLOT
from medprobe.gate.checks import Context, row_check, says, value_check
from medprobe.gate.expectations.tables import SUBJECT, has_answer

CODE: Final = re.compile(r"[^\W\d]*\d{4,}")
START: Final = re.compile(rf"\W+|{CODE.pattern}(?=\W)|[^\W\d]+\d{{4,}}$")
END: Final = re.compile(rf"\W+$|(?<=\W){CODE.pattern}$")


def look(name: str) -> str:
    """Return a name as readers see it: what has one look is one name to them.

    Case, blanks, invisible characters, composed letters and a full stop at the end do not count.

    >>> look("Acute\xa0 Fever.") == look("acute fever")
    True
    """
    text = unicodedata.normalize("NFKC", name).casefold()
    seen = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return " ".join(seen.split()).rstrip(".")


def first_fault(values: Iterable[object], *, is_name: bool = False) -> str:
    """Return the first fault of texts and lists of texts, or an empty text."""
    lists = ([value] if isinstance(value, str) else value for value in values)
    faults = (find_fault(text, is_name=is_name) for texts in lists for text in texts)  # type: ignore[attr-defined]
    return next(filter(None, faults), "")


@row_check
@says(lambda kwargs, row: first_fault((row[c] for c in kwargs["column_list"]), is_name=True))
def expect_names_to_be_whole(rows: pd.DataFrame) -> list[bool]:
    """No name is damaged, no value, a date, or several names. Columns have names, or lists."""
    return [not first_fault(row, is_name=True) for row in rows.itertuples(index=False, name=None)]


@row_check
@says(lambda kwargs, row: first_fault(row[column] for column in kwargs["column_list"][1:]))
def expect_texts_to_be_whole(rows: pd.DataFrame) -> list[bool]:
    """No text is damaged or no value. The first column, which names the row, is not checked."""
    return [not first_fault(row[1:]) for row in rows.itertuples(index=False, name=None)]


def _odd_ends(name: str) -> list[str]:
    """The marks or the code that a name begins with, and those that it ends with.

    >>> _odd_ends("C0018099 gout (finding)"), _odd_ends("IL-2 receptor, type 1"), _odd_ends("1926")
    (['0000', ')'], [], [])
    """
    return [CODE.sub("0000", end[0]) for end in (START.match(name), END.search(name)) if end]


@row_check
@says("most names have the same around them")
def expect_names_to_end_differently(rows: pd.DataFrame) -> pd.Series:
    """No more than half of a subset's names, and four, have one code or mark at one of their ends.

    Columns `subset, name`. Such are an identifier before each name, its kind in brackets, or a full
    stop.
    """
    subset, name = (rows[column] for column in rows.columns)
    ends = name.str.strip().map(_odd_ends).explode()
    counts = ends.groupby([subset.reindex(ends.index), ends]).transform("size")
    sizes = subset.map(subset.value_counts())
    is_common = counts > sizes.reindex(counts.index).div(2).clip(lower=4)
    return ~is_common.groupby(level=0).any().reindex(rows.index)


@row_check
@says("another name looks the same")
def expect_names_to_look_different(rows: pd.DataFrame) -> list[bool]:
    """No two names of a subset differ only in what readers do not see.

    Columns `subset, name`. The first of such names passes.
    """
    seen: dict[tuple[str, str], str] = {}
    return [
        seen.setdefault((subset, look(name)), name) == name
        for subset, name in rows.itertuples(index=False, name=None)
    ]


@row_check
@says("an answer is the subject")
def expect_answers_not_to_be_the_subject(rows: pd.DataFrame) -> list[bool]:
    """No answer, by one of its names, is the subject. Columns `subject, answers`."""
    return [
        look(subject) not in map(look, answers)
        for subject, answers in rows.itertuples(index=False, name=None)
    ]


@row_check
@says("a name of an answer is another object's")
def expect_aliases_to_be_of_one_object(rows: pd.DataFrame, context: Context) -> list[bool]:
    """No name of an answer is that of another object.

    Columns `subset, answers, answer_ids`. A candidate of another id has the name: an answer by it
    would be right for both.
    """
    candidates = context.tables["candidates"]
    owners = candidates.groupby([candidates["subset"], candidates["name"].map(look)])["id"].agg(set)
    ids_by_name: dict[tuple[str, str], set[str]] = owners.to_dict()
    return [
        all(
            ids_by_name.get((subset, look(name)), {id_}) <= {id_}
            for name, id_ in zip(answers, ids, strict=False)
        )
        for subset, answers, ids in rows.itertuples(index=False, name=None)
    ]


@row_check
@says("all queries have one answer")
def expect_relations_to_have_several_answers(
    rows: pd.DataFrame, share: float, at_least: int
) -> pd.Series:
    """No answer is right for more than this share of a relation's subjects.

    Columns `subset, relation, subject_id, answer_ids`. Relations with fewer subjects than
    `at_least` pass.
    """
    subset, relation, subject, ids = rows.columns
    facts = rows.explode(ids).drop_duplicates()
    subjects = facts.groupby([subset, relation])[subject].nunique()
    most = facts.groupby([subset, relation, ids])[subject].nunique()
    most = most.groupby(level=[subset, relation]).max()
    passes = (subjects < at_least) | (most <= share * subjects)
    return pd.MultiIndex.from_frame(rows[[subset, relation]]).map(passes).to_series(rows.index)


@row_check
@says("another relation has the same facts")
def expect_relations_to_differ(
    rows: pd.DataFrame, share: float, *, at_least: int = 10
) -> list[bool]:
    """No two relations of a subset state the same facts.

    Columns `subset, relation, subject_id, answer_ids`. Of two relations whose queries are the same
    by more than this share of the smaller one, the second fails. Relations with fewer queries than
    `at_least` pass.
    """
    facts: dict[tuple[str, str], set[tuple[str, frozenset[str]]]] = {}
    for subset, relation, subject, ids in rows.itertuples(index=False, name=None):
        facts.setdefault((subset, relation), set()).add((subject, frozenset(ids)))
    copies = {
        second
        for first, second in combinations(facts, 2)
        if first[0] == second[0]
        and min(len(facts[first]), len(facts[second])) >= at_least
        and len(facts[first] & facts[second]) > share * min(len(facts[first]), len(facts[second]))
    }
    keys = zip(rows.iloc[:, 0], rows.iloc[:, 1], strict=True)
    return [key not in copies for key in keys]


NEGATION: Final = re.compile(r"\b(?:not|never|no|cannot|neither|nor)\b|n't\b", re.IGNORECASE)


@value_check
@says("the prompt negates")
def expect_templates_to_affirm(prompts: pd.Series) -> pd.Series:
    """No prompt negates what it asks."""
    return ~prompts.map(lambda prompt: bool(NEGATION.search(prompt)))


@value_check
@says("another relation's name looks the same")
def expect_relations_to_look_different(relations: pd.Series) -> pd.Series:
    """No two relations' names differ only in case, blanks or invisible characters.

    Of such names the first one passes.
    """
    looks: dict[str, str] = {}
    for relation in relations.unique():
        looks.setdefault(look(relation), relation)
    return relations == relations.map(lambda relation: looks[look(relation)])


@row_check
@says("the slot comes before the subject")
def expect_slots_to_follow_subjects(rows: pd.DataFrame) -> list[bool]:
    """The slot comes after the subject. Columns `subject, prompt`.

    Few templates have the slot first. Where most have it, subject and slot were exchanged.
    """
    return [
        not prompt.partition(SLOT)[2].count(subject)
        for subject, prompt in rows.itertuples(index=False, name=None)
    ]


@row_check
@says("no answer has a capital, but subjects have")
def expect_answers_to_have_capitals(rows: pd.DataFrame, at_least: int) -> pd.Series:
    """Where most subjects of a subset have a capital, some answers have one.

    Columns `subset, subject, answers`. Otherwise a program made the answers lower case, and the
    sentences not. Subsets with fewer queries than `at_least` pass.
    """
    subset, subject, answers = rows.columns
    cased = rows[subject].map(lambda name: name != name.lower())
    written = rows[answers].map(lambda names: any(name != name.lower() for name in names))
    groups = rows[subset]
    passes = (
        (groups.map(groups.value_counts()) < at_least)
        | (cased.groupby(groups).transform("mean") < 0.5)
        | written.groupby(groups).transform("any")
    )
    return passes


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
    """No two prompts of a family differ only in case, blanks or invisible characters."""
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
    return SUBJECT.join(part.replace(SUBJECT, SLOT) for part in template.split(SLOT))
