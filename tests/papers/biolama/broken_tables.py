"""Tables that are broken for one of BioLAMA's expectations each."""

import pandas as pd

from helpers.broken_tables import Kwargs, Mutation, add, replace


def known_by_name(rows: pd.DataFrame, _: Kwargs) -> pd.DataFrame:
    row = rows.head(1).assign(subject_id="another", answer_ids=[["another"]])
    return row.assign(subject=row["subject"].str.upper() + ".")


MUTATIONS: dict[str, Mutation] = {
    "expect_facts_to_be_absent_from_table": add(lambda rows, _: rows.head(1)),
    "expect_subjects_to_have_one_name": replace(
        "subject_id", lambda rows, _: rows["subject_id"].to_numpy()[::-1]
    ),
    "expect_named_facts_to_be_absent_from_table": add(known_by_name),
}
