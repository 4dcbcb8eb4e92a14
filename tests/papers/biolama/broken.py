"""Broken tables and files of BioLAMA, and files that are odd and right."""

from pathlib import Path
from typing import Final

from helpers.broken_files import (
    Damage,
    copy,
    exchange_slots,
    put,
    read,
    rows,
    shifted,
    table,
    text,
    write,
)
from helpers.broken_tables import (
    CUT,
    NO_RELATION,
    PERMUTED,
    PROMPT_OF_ANOTHER,
    UNKNOWN_ANSWER,
    Cases,
    add,
    edit,
    exchange,
    stops,
    warns,
)

TRIPLES: Final = "biolama/*/triples_processed/*/*.jsonl"
CTD: Final = "biolama/ctd/triples_processed/*/*.jsonl"
CD1: Final = "biolama/ctd/triples_processed/CD1"
PROMPTS: Final = "biolama/*/prompts/manual.jsonl"
OTHER_SUBJECT: Final = {"query_id": "another", "subject_id": "MESH:C9999999"}
TABLES: Final[Cases] = {
    "a test query in train": stops(
        add("train", "queries"),
        *("facts_to_be_absent_from_table", "named_facts_to_be_absent_from_table"),
    ),
    "a test query in dev": stops(add("dev", "queries"), "facts_to_be_absent_from_table"),
    "a query of dev in train": stops(add("train", "dev"), "facts_to_be_absent_from_table"),
    "a test query in train, under another subject id": warns(
        add("train", "queries", **OTHER_SUBJECT), "named_facts_to_be_absent_from_table"
    ),
    "a near copy of a test query in train": warns(
        add("train", "queries", **OTHER_SUBJECT, subject=lambda row: f"{row['subject'].title()}s"),
        "named_facts_to_be_absent_from_table",
    ),
    "a prompt of another subject": stops(
        PROMPT_OF_ANOTHER, "facts_to_be_in_records", "prompts_to_follow_one_template"
    ),
    "a relation is missing": stops(NO_RELATION, "rows_to_be_used"),
    "answers permuted with their ids, within a relation": stops(PERMUTED, "facts_to_be_in_records"),
    "two relations exchanged": stops(exchange("queries", "relation"), "facts_to_be_in_records"),
    "a query of dev in the test set, under another id": stops(
        add("queries", "dev", query_id="another"), "facts_to_be_absent_from_table"
    ),
    "an answer that is not a candidate": stops(
        UNKNOWN_ANSWER, "answers_to_be_ranked", "facts_to_be_in_records"
    ),
    "the last of several answers cut": stops(CUT, "facts_to_be_in_records"),
    "an answer without its id": stops(
        edit("queries", answer_ids=lambda row: row["answer_ids"][:-1]), "lists_to_be_aligned"
    ),
}


def copy_relation(data: Path) -> None:
    """Copy the triples of one relation over those of another, ids and files' names aside."""
    for split in ("train", "dev", "test"):
        folder = data / "biolama/umls/triples_processed"
        lines = [
            row | {"uuid": row["uuid"].replace("UR1", "UR2"), "predicate_id": "UR2"}
            for row in read(folder / f"UR1/{split}.jsonl")
        ]
        write(folder / f"UR2/{split}.jsonl", lines)


def train_aliases(data: Path) -> None:
    """Add each test fact to those that train, under the subject's last alias and another id."""
    for test in data.glob("biolama/*/triples_processed/*/test.jsonl"):
        train = test.with_name("train.jsonl")
        named = [row for row in read(test) if row["sub_aliases"]]
        again = [
            row
            | {"uuid": f"{row['uuid']}-a", "sub_uri": f"{row['sub_uri']}9", "sub_aliases": []}
            | {"sub_label": row["sub_aliases"][-1]}
            for row in named
        ]
        write(train, [*read(train), *again])


FILES: Final[Cases] = {
    "[X] and [Y] of the templates exchanged": warns(
        rows(PROMPTS, put(template=lambda row: exchange_slots(row["template"]))),
        "slots_to_follow_subjects",
    ),
    "a relation's folder copied over another one": stops(copy_relation, "relations_to_differ"),
    "subjects shifted by one row": stops(
        table(TRIPLES, shifted("sub_label")), "subjects_to_have_one_name"
    ),
    "ids of subjects shifted by one row": stops(
        table(TRIPLES, shifted("sub_uri")),
        *("named_facts_to_be_absent_from_table", "subjects_to_have_one_name"),
    ),
    "test facts in train under a brand name": stops(
        train_aliases, "named_facts_to_be_absent_from_table"
    ),
    "the templates negated": warns(
        rows(PROMPTS, put(template=lambda row: row["template"].replace("[Y]", "not [Y]"))),
        "templates_to_affirm",
    ),
    "ids in place of labels": warns(
        rows(TRIPLES, put(obj_labels=lambda row: row["obj_uris"], obj_aliases=lambda row: [])),
        *("names_to_end_differently", "subjects_to_have_one_name"),
    ),
    "objects `nan`": warns(
        rows(CTD, put(obj_labels=lambda row: ["nan"] * len(row["obj_labels"]))),
        *("aliases_to_be_of_one_object", "names_to_be_whole"),
    ),
    "one uri for all objects of a triple": warns(
        rows(TRIPLES, put(obj_uris=lambda row: [row["obj_uris"][0]] * len(row["obj_uris"]))),
        *("aliases_to_be_of_one_object", "subjects_to_have_one_name"),
    ),
    "the subject is an alias of each object": stops(
        rows(TRIPLES, put(obj_aliases=lambda row: [[row["sub_label"]] for _ in row["obj_labels"]])),
        *("aliases_to_be_of_one_object", "answers_not_to_be_the_subject"),
    ),
    "test.jsonl copied over train.jsonl": stops(
        copy(f"{CD1}/test.jsonl", f"{CD1}/train.jsonl"), "facts_to_be_absent_from_table"
    ),
    "markup in labels": warns(
        rows(TRIPLES, put(obj_labels=lambda row: [f"<i>{name}</i>" for name in row["obj_labels"]])),
        "names_to_end_differently",
    ),
}
ODD: Final[dict[str, Damage]] = {
    "an empty dev split": text(f"{CD1}/dev.jsonl", lambda content: ""),
    "a byte order mark and CRLF": text(
        TRIPLES, lambda content: content and "\ufeff" + content.replace("\n", "\r\n")
    ),
}
