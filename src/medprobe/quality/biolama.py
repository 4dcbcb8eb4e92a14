"""Expectations on BioLAMA's splits."""

import pandas as pd

from medprobe.quality.checks import Context, row_check


@row_check
def expect_facts_to_be_absent_from_table(
    rows: pd.DataFrame, context: Context, other: str
) -> pd.Series:
    """No fact of a row is in the other table.

    A fact is relation, subject and answers, by id; the other table has these columns too.
    """
    relation, subject, answers = rows.columns
    other_facts = {
        (row[relation], row[subject], answer)
        for _, row in context.tables[other].iterrows()
        for answer in row[answers]
    }
    absent = [
        all((row[relation], row[subject], answer) not in other_facts for answer in row[answers])
        for _, row in rows.iterrows()
    ]
    return pd.Series(absent, index=rows.index)
