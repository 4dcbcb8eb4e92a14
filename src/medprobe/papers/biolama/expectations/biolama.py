"""Expectations on BioLAMA's splits."""

from collections.abc import Callable, Hashable, Iterator
from functools import cache

import pandas as pd

from medprobe.gate import leaks
from medprobe.gate.checks import Context, row_check


@row_check
def expect_facts_to_be_absent_from_table(
    rows: pd.DataFrame, context: Context, other: str
) -> list[bool]:
    """No fact of a row is in the other table.

    A fact is relation, subject and answers, by id; the other table has these columns too.
    """
    return _are_absent(rows, context.tables[other], lambda identifier: identifier)


@row_check
def expect_named_facts_to_be_absent_from_table(
    rows: pd.DataFrame, context: Context, other: str
) -> list[bool]:
    """No fact of a row is in the other table under another id or in another form of its names.

    A fact is relation, subject and answers, by name; the other table has these columns too. Names
    are compared without regard to case, punctuation, a final s and the order of words.
    """
    return _are_absent(rows, context.tables[other], cache(_words))


def _are_absent(
    rows: pd.DataFrame, other: pd.DataFrame, key: Callable[[str], Hashable]
) -> list[bool]:
    """Whether no fact of each row is in the other table, by the keys of subjects and answers."""

    def facts(table: pd.DataFrame) -> Iterator[set[Hashable]]:
        for relation, subject, answers in table[[*rows.columns]].itertuples(index=False, name=None):
            yield {(relation, key(subject), key(answer)) for answer in answers}

    other_facts = set[Hashable]().union(*facts(other))
    return [other_facts.isdisjoint(facts_of_row) for facts_of_row in facts(rows)]


def _words(name: str) -> tuple[str, ...]:
    """The words by which a name is compared."""
    return tuple(sorted(word.rstrip("s") for word in leaks.normalise(name).line.split())) or (name,)
