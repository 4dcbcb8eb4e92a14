"""Relations that are turned round, or are one under two names."""

import pandas as pd

from medprobe.core.tables import SLOT
from medprobe.gate.checks import row_check, says, value_check
from medprobe.gate.expectations.names import look


@value_check
@says("another relation's name looks the same")
def expect_relations_to_look_different(relations: pd.Series) -> pd.Series:
    """No two relations' names differ only in case, blanks or what nobody sees.

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
