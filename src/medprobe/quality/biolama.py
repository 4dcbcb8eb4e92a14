"""Expectations on BioLAMA's splits."""

from functools import cache

import pandas as pd

from medprobe.quality import leaks
from medprobe.quality.checks import Context, row_check


@row_check
def expect_facts_to_be_absent_from_table(
    rows: pd.DataFrame, context: Context, other: str
) -> list[bool]:
    """No fact of a row is in the other table.

    A fact is relation, subject and answers, by id; the other table has these columns too.
    """
    relation, subject, answers = rows.columns
    other_facts = {
        (row[relation], row[subject], answer)
        for _, row in context.tables[other].iterrows()
        for answer in row[answers]
    }
    return [
        all((row[relation], row[subject], answer) not in other_facts for answer in row[answers])
        for _, row in rows.iterrows()
    ]


@row_check
def expect_named_facts_to_be_absent_from_table(
    rows: pd.DataFrame, context: Context, other: str
) -> list[bool]:
    """No fact of a row is in the other table under another id or in another form of its names.

    A fact is relation, subject and answers, by name; the other table has these columns too. Names
    are compared without regard to case, punctuation, a final s and the order of words.
    """
    relation, subject, answers = rows.columns
    words = cache(_words)
    table = context.tables[other]
    other_facts = {
        (relation_name, words(subject_name), words(answer))
        for relation_name, subject_name, names in zip(
            table[relation], table[subject], table[answers], strict=True
        )
        for answer in names
    }
    return [
        all(
            (relation_name, words(subject_name), words(answer)) not in other_facts
            for answer in names
        )
        for relation_name, subject_name, names in zip(
            rows[relation], rows[subject], rows[answers], strict=True
        )
    ]


def _words(name: str) -> tuple[str, ...]:
    """The words by which a name is compared."""
    return tuple(sorted(word.rstrip("s") for word in leaks.normalise(name).line.split())) or (name,)
