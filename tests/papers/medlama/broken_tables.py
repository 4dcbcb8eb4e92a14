"""Tables that are broken for one of MedLAMA's expectations each."""

from helpers.broken_tables import Kwargs, Mutation, Tables, permuted, replace


def turned(tables: Tables, table: str, kwargs: Kwargs) -> None:
    """The facts of a relation have subject and answer exchanged."""
    rows = tables[table].copy()
    of = rows["relation"] == "gene_encodes_gene_product"
    answers = rows.loc[of, "subject_id"].map(lambda name: [name])
    rows.loc[of, "subject_id"] = rows.loc[of, "answer_ids"].str[0]
    rows.loc[of, "answer_ids"] = answers
    tables[table] = rows


MUTATIONS: dict[str, Mutation] = {
    "expect_answers_to_be_complete": replace(
        "answers", lambda rows, _: [names[: max(1, len(names) - 1)] for names in rows["answers"]]
    ),
    "expect_facts_to_be_in_umls": permuted,
    "expect_relations_to_point_forward": turned,
}
