"""Names that a program changed, that name nothing, or that look like another one."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

import pandas as pd

from medprobe.gate.checks import Context, row_check, says, value_check
from medprobe.gate.damage import NO_NAME, find_fault


def look(name: str) -> str:
    """Return a name as readers see it: what has one look is one name to them.

    Case, blanks, invisible characters, composed letters and a full stop at the end do not count.

    >>> look("Acute\xa0 Fever.") == look("acute fever")
    True
    """
    text = unicodedata.normalize("NFKC", name).casefold()
    seen = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return " ".join(seen.split()).rstrip(".")


def _names(values: str | Iterable[str]) -> list[str]:
    return [values] if isinstance(values, str) else [*values]


def first_fault(values: Iterable[str | Iterable[str]]) -> str:
    """Return the first fault of names and lists of names, or an empty text."""
    faults = (find_fault(name) for names in values for name in _names(names))
    return next(filter(None, faults), "")


@row_check
@says(lambda kwargs, row: first_fault(row[column] for column in kwargs["column_list"]))
def expect_names_to_be_whole(rows: pd.DataFrame) -> list[bool]:
    """No name is what another encoding, a spreadsheet or a conversion made of it.

    The columns have names or lists of names.
    """
    return [not first_fault(row) for row in rows.itertuples(index=False, name=None)]


@row_check
@says(lambda kwargs, row: first_fault(row[column] for column in kwargs["column_list"]))
def expect_names_to_name_something(rows: pd.DataFrame) -> list[bool]:
    """No name stands for no value, is a formula, a list in brackets, or a line of another kind.

    The columns have names or lists of names.
    """
    return [
        NO_NAME.isdisjoint(find_fault(name) for names in row for name in _names(names))
        for row in rows.itertuples(index=False, name=None)
    ]


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
        for first, second in _pairs([*facts])
        if first[0] == second[0]
        and min(len(facts[first]), len(facts[second])) >= at_least
        and len(facts[first] & facts[second]) > share * min(len(facts[first]), len(facts[second]))
    }
    keys = zip(rows.iloc[:, 0], rows.iloc[:, 1], strict=True)
    return [key not in copies for key in keys]


def _pairs(keys: Sequence[tuple[str, str]]) -> Iterable[tuple[tuple[str, str], tuple[str, str]]]:
    return ((keys[i], keys[j]) for i in range(len(keys)) for j in range(i + 1, len(keys)))


NEGATION: Final = re.compile(r"\b(?:not|never|no|cannot|neither|nor)\b|n't\b", re.IGNORECASE)


@value_check
@says("the prompt negates")
def expect_templates_to_affirm(prompts: pd.Series) -> pd.Series:
    """No prompt negates what it asks."""
    return ~prompts.map(lambda prompt: bool(NEGATION.search(prompt)))
