"""Tables that are broken for one of MedLAMA's expectations each."""

from helpers.broken_tables import Mutation, permuted, replace

MUTATIONS: dict[str, Mutation] = {
    "expect_answers_to_be_complete": replace(
        "answers", lambda rows, _: [names[: max(1, len(names) - 1)] for names in rows["answers"]]
    ),
    "expect_facts_to_be_in_umls": permuted,
}
