"""Broken tables and files of contexts, and files that are odd and right."""

from collections.abc import Callable
from typing import Final

import pandas as pd

from helpers.broken_files import MRREL, Damage, every, put, rows, swap, table
from helpers.broken_tables import (
    CUT,
    Cases,
    Row,
    Tables,
    edit,
    equal_first,
    exchange,
    refused,
    replace,
    stops,
    warns,
    with_answer,
)
from medprobe.core.tables import SLOT

NOTES: Final = "notes/NOTEEVENTS.csv"


def answers_of_another(tables: Tables) -> None:
    records = tables["queries"].to_dict("records")
    subject = records[0]["subject_id"]
    answers = next(row for row in records if row["subject_id"] != subject)
    values = {"answers": answers["answers"], "answer_ids": answers["answer_ids"]}
    values["fact_id"] = answers["answer_ids"][0]
    changed = [row | values if row["subject_id"] == subject else row for row in records]
    tables["queries"] = pd.DataFrame(changed, columns=tables["queries"].columns)


def without_fact(column: str) -> Callable[[Row], list[str]]:
    def value(row: Row) -> list[str]:
        items = zip(row[column], row["answer_ids"], strict=True)
        return [item for item, id_ in items if id_ != row["fact_id"]]

    return value


def steps_backwards(queries: pd.DataFrame) -> "pd.Series[int]":
    steps = queries["step"].where(equal_first("context_id")(queries))
    return (steps.max() - steps).fillna(queries["step"]).astype(int)


def role(first: str, second: str) -> Damage:
    """All entities of one role are called another one."""
    return replace(
        "queries", added_role=lambda queries: queries["added_role"].replace(first, second)
    )


ROLES, KINDS = "roles_to_follow_ids", "layouts_to_follow_kinds"
COUNTED: Final = "objects_to_be_counted"
TABLES: Final[Cases] = {
    "the answer in the prompt of one step": stops(
        edit("queries", "step == 0", prompt=with_answer), KINDS, "prompts_to_follow_one_template"
    ),
    "a query without its slot": stops(
        edit("queries", prompt=lambda row: row["prompt"].replace(SLOT, "")),
        "prompts_to_have_one_slot",
    ),
    "a step that shows less than the one before": stops(
        edit("queries", "step == 2", shown=[]), "steps_to_be_nested"
    ),
    "another entity than the target comes first": stops(
        edit("queries", "step == 1", added_id="C7"), "first_added_to_be_the_target"
    ),
    "the fact is not among the answers": stops(
        edit("queries", answers=without_fact("answers"), answer_ids=without_fact("answer_ids")),
        *("item_to_be_in_list", COUNTED),
    ),
    "a subject has the answers of another one": stops(
        answers_of_another, "centres_to_follow_ids", "facts_to_be_in_umls", COUNTED, ROLES
    ),
    "mentions shifted by one character": stops(
        replace(
            "mentions",
            start=lambda mentions: mentions["start"] + 1,
            end=lambda mentions: mentions["end"] + 1,
        ),
        *(KINDS, "segments_to_hold_one_entity"),
    ),
    "documents with other texts": stops(
        replace("documents", text=lambda _: "another text"),
        "real_contexts_to_be_in_their_documents",
    ),
    "the last of several answers cut": stops(CUT, "item_to_be_in_list", COUNTED, ROLES),
    "a correct object called incorrect": stops(
        edit("queries", "added_role == 'correct'", added_role="incorrect"), ROLES
    ),
    "an incorrect entity called correct": stops(
        edit("queries", "added_role == 'incorrect'", added_role="correct"), ROLES
    ),
    "correct objects called incorrect": stops(role("correct", "incorrect"), ROLES),
    "targets called correct": stops(role("target", "correct"), ROLES),
    "a pair of two targets": stops(
        replace(
            "queries",
            centre=lambda queries: queries["centre"].mask(
                equal_first("pair_id")(queries), "target"
            ),
        ),
        *("both_centres_in_pairs", "centres_to_follow_ids"),
    ),
    "the centres target and negative exchanged": stops(
        exchange("queries", "centre", "target", "negative"), "centres_to_follow_ids"
    ),
    "one kind called another": stops(
        edit("queries", "kind == 'knowledge-random' and step == 4", kind="knowledge-only"), KINDS
    ),
    "the kinds knowledge-only and knowledge-sorted exchanged": stops(
        exchange("queries", "kind", "knowledge-only", "knowledge-sorted"), KINDS
    ),
    "the kinds knowledge-random and knowledge-sorted exchanged": stops(
        exchange("queries", "kind", "knowledge-random", "knowledge-sorted"), KINDS
    ),
    "the kinds knowledge-only and real exchanged": stops(
        exchange("queries", "kind", "knowledge-only", "real"), KINDS
    ),
    "all subjects have one object": stops(replace("queries", objects=lambda _: 1), COUNTED),
    "all objects are in one document": stops(replace("queries", frequency=lambda _: 1), COUNTED),
    "all objects are in a million documents": stops(
        replace("queries", frequency=lambda _: 10**6), COUNTED
    ),
    "steps numbered backwards": stops(
        replace("queries", step=steps_backwards),
        *("first_added_to_be_the_target", "segments_to_hold_one_entity", "steps_to_be_nested"),
    ),
}
FILES: Final[Cases] = {
    "all notes marked as errors": refused(rows(NOTES, put(ISERROR="1")), "NOTEEVENTS.csv"),
    "all notes marked as errors, as pandas writes it": refused(
        rows(NOTES, put(ISERROR="1.0")), "NOTEEVENTS.csv"
    ),
    "every concept a disease in MRSTY": refused(
        rows("umls/MRSTY.RRF", put(STY="Disease or Syndrome")), "MRSTY.RRF"
    ),
    "texts of notes cut at 40 characters": stops(
        rows(NOTES, put(TEXT=lambda row: row["TEXT"][:40])),
        *("column_distinct_values_to_contain_set", "column_values_to_be_between"),
    ),
    "escaped markup in notes": warns(
        rows(NOTES, put(TEXT=lambda row: row["TEXT"].replace("\n", "&lt;br/&gt; "))),
        "column_values_to_not_match_regex",
    ),
    "each note again under another id": warns(
        table(NOTES, lambda lines: [*lines, *(r | {"ROW_ID": f"9{r['ROW_ID']}"} for r in lines)]),
        "rows_to_be_few",
    ),
    "a third of the notes without text": warns(rows(NOTES, every(3, TEXT="")), "rows_to_be_few"),
    "all relations withdrawn": refused(rows(MRREL, put(SUPPRESS="O")), "MRREL.RRF"),
    "CUI1 and CUI2 of MRREL exchanged": refused(rows(MRREL, swap("CUI1", "CUI2")), "MRREL.RRF"),
}
ODD: Final[dict[str, Damage]] = {
    "a few notes marked as errors": rows(NOTES, every(9, ISERROR="1")),
    "some relations withdrawn": rows(MRREL, every(50, SUPPRESS="O")),
}
