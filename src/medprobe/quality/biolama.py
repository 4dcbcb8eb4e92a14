"""Expectations on BioLAMA's splits."""

import pandas as pd

from medprobe.quality.checks import row_check, tables


@row_check
def expect_facts_to_be_absent_from_table(rows: pd.DataFrame, other: str) -> pd.Series:
    """No fact of a row, its columns being relation, subject and answers by id, is in the other
    table of the benchmark, of which these are columns too."""
    relation, subject, answers = rows.columns
    there = {
        (row[relation], row[subject], answer)
        for _, row in tables.get()[other].iterrows()
        for answer in row[answers]
    }
    found = [
        all((row[relation], row[subject], answer) not in there for answer in row[answers])
        for _, row in rows.iterrows()
    ]
    return pd.Series(found, index=rows.index)
