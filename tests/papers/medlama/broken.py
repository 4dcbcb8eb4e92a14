"""Broken tables and files of MedLAMA, and files that are odd and right."""

from collections.abc import Callable
from typing import Final

import pandas as pd

from helpers.broken_files import (
    MRCONSO,
    MRREL,
    Damage,
    both,
    every,
    half,
    is_of,
    misread,
    named,
    put,
    rows,
    swap,
    table,
)
from helpers.broken_tables import (
    CUT,
    NO_RELATION,
    PERMUTED,
    PROMPT_OF_ANOTHER,
    UNKNOWN_ANSWER,
    Cases,
    Row,
    Tables,
    add,
    edit,
    equal_first,
    exchange,
    refused,
    replace,
    rotate,
    stops,
    warns,
    with_answer,
)


def eleven_answers(tables: Tables) -> None:
    names = [*tables["candidates"]["name"].unique()[:11]]
    ids = [f"C99{number:05}" for number in range(11)]
    edit("queries", answers=names, answer_ids=ids)(tables)


def prompts_of_another_relation(tables: Tables) -> None:
    queries = tables["queries"]
    relation, other = queries["relation"].unique()[:2]
    row = queries[queries["relation"] == other].iloc[0]
    template = row["prompt"].replace(row["subject"], "[X]")
    for index, subject in queries.loc[queries["relation"] == relation, "subject"].items():
        queries.loc[index, "prompt"] = template.replace("[X]", subject)


def too_many(tables: Tables) -> None:
    """A relation has more queries than the settings draw."""
    first = tables["queries"].head(1)
    tables["queries"] = pd.concat([tables["queries"], *[first] * 1001], ignore_index=True)


TABLES: Final[Cases] = {
    "more than ten answers": stops(
        eleven_answers, "list_lengths_to_be_between", says="answers has 11 items, not 1 to 10"
    ),
    "the last of several answers cut": stops(CUT, "answers_to_be_complete"),
    "an answer twice": stops(
        edit("queries", answers=lambda row: row["answers"][:1] * 2),
        *("list_items_to_be_unique", "lists_to_be_aligned"),
        says="answers has an item twice",
    ),
    "a query twice, with one id": stops(
        add("queries"), "column_values_to_be_unique", "compound_columns_to_be_unique"
    ),
    "a query twice, with two ids": stops(
        add("queries", query_id="another"), "compound_columns_to_be_unique"
    ),
    "a query twice, under two subject ids": stops(
        add("queries", query_id="another", subject_id="C9999999"),
        *("compound_columns_to_be_unique", "facts_to_be_in_umls"),
    ),
    "subject and object exchanged": stops(
        edit(
            "queries",
            subject=lambda row: row["answers"][0],
            subject_id=lambda row: row["answer_ids"][0],
            answers=lambda row: [row["subject"]],
            answer_ids=lambda row: [row["subject_id"]],
        ),
        *("facts_to_be_in_umls", "prompts_to_follow_one_template"),
    ),
    "a relation is missing": stops(NO_RELATION, "rows_to_be_used"),
    "a relation of no such name": stops(
        edit("queries", relation="may_trea"), "column_values_to_be_in_set"
    ),
    "a subset of no such name": stops(
        edit("queries", subset="easy"),
        "column_values_to_be_in_set",
        says="subset is none of full, hard, families",
    ),
    "an id of another form": stops(
        edit("queries", answer_ids=lambda row: ["C12X", *row["answer_ids"][1:]]),
        "list_items_to_match_regex",
        says="an item of answer_ids has another form",
    ),
    "a share above one": stops(
        edit("queries", avg_match=1.5),
        "column_values_to_be_between",
        says="avg_match is not 0 to 1",
    ),
    "answers shuffled, their ids not": stops(
        rotate("queries", equal_first("relation", "subset"), "answers"), "names_to_be_in_umls"
    ),
    "answers permuted with their ids, within a relation": stops(PERMUTED, "facts_to_be_in_umls"),
    "two relations exchanged": stops(exchange("queries", "relation"), "facts_to_be_in_umls"),
    "a prompt holds its answer": stops(
        edit("queries", prompt=with_answer), "prompts_to_follow_one_template"
    ),
    "a prompt of another subject": stops(
        PROMPT_OF_ANOTHER, "compound_columns_to_be_unique", "prompts_to_follow_one_template"
    ),
    "a prompt without its subject": stops(
        edit("queries", prompt=lambda row: row["prompt"].replace(row["subject"], "It")),
        "prompts_to_follow_one_template",
    ),
    "an answer that is not a candidate": stops(UNKNOWN_ANSWER, "items_to_be_in_table"),
    "an easy query in the hard set": stops(
        edit("queries", "subset == 'hard'", avg_match=0.5, avg_rouge_l=0.5),
        "subset_values_to_be_below",
    ),
    "a hard query that is not in the full set": stops(
        add("queries", where="subset == 'hard'", query_id="another", subject_id="C9999999"),
        "subset_to_be_within",
    ),
    "more queries of a relation than are drawn": stops(too_many, "group_sizes_to_be_between"),
    "ids of candidates rotated against their names": stops(
        rotate("candidates", lambda rows: rows["id"].notna(), "id"),
        "candidates_to_have_answers_ids",
    ),
    "a relation with the prompt of another one": stops(
        prompts_of_another_relation, "templates_to_differ"
    ),
    "answers cut at twelve characters": stops(
        replace(
            "queries",
            answers=lambda rows: [[name[:12] for name in names] for names in rows["answers"]],
        ),
        *("items_to_be_in_table", "names_to_be_in_umls"),
    ),
    "a subject in another encoding": stops(
        edit(
            "queries",
            subject=lambda row: f"Ã©{row['subject']}",
            prompt=lambda row: f"Ã©{row['prompt']}",
        ),
        "names_to_be_in_umls",
    ),
}
ENDS: Final = {"CUI1": "CUI2", "AUI1": "AUI2", "CUI2": "CUI1", "AUI2": "AUI1"}


def both_ways(relation: str) -> Damage:
    """Say each fact of a relation again with its ends exchanged."""
    return table(
        MRREL,
        lambda lines: [
            *lines,
            *(
                row | {name: row[other] for name, other in ENDS.items()} | {"RUI": f"R8{number}"}
                for number, row in enumerate(filter(is_of(relation), lines))
            ),
        ],
    )


def filled_down(relation: str) -> Callable[[list[Row]], list[Row]]:
    """Give all facts of a relation the object of the first one."""

    def change(lines: list[Row]) -> list[Row]:
        first = next(row for row in lines if row["RELA"] == relation)
        ends = {"CUI1": first["CUI1"], "AUI1": first["AUI1"]}
        return [row | ends if row["RELA"] == relation else row for row in lines]

    return change


def names(step: int, change: Callable[[str], str]) -> Damage:
    """Change each name of so many."""
    return rows(MRCONSO, every(step, STR=lambda row: change(row["STR"])))


FILES: Final[Cases] = {
    "MRCONSO cut in half": refused(table(MRCONSO, half), "MRREL.RRF"),
    "MRREL appended to itself": warns(table(MRREL, lambda lines: lines * 2), "rows_to_be_few"),
    "CUI1 and CUI2 of MRREL exchanged": stops(
        both(rows(MRREL, swap("CUI1", "CUI2")), rows(MRREL, swap("AUI1", "AUI2"))),
        "relations_to_point_forward",
    ),
    "may_treat in both directions": stops(both_ways("may_treat"), "relations_to_point_forward"),
    "one relation in capitals": refused(
        rows(MRREL, every(1, is_of("may_treat"), RELA="MAY_TREAT")), "MedLAMA's sources"
    ),
    "all relations withdrawn": refused(rows(MRREL, put(SUPPRESS="O")), "MedLAMA's sources"),
    "half of the relations withdrawn": warns(rows(MRREL, every(4, SUPPRESS="O")), "rows_to_be_few"),
    "one answer for every subject of a relation": warns(
        table(MRREL, filled_down("may_treat")), "relations_to_have_several_answers"
    ),
    "names of another release": stops(
        rows(MRCONSO, put(AUI=lambda row: f"B{row['AUI'][1:]}")), "rows_to_be_few"
    ),
    "`nan` as a tenth of the names": stops(
        names(10, lambda _: "nan"), "compound_columns_to_be_unique", "names_to_be_whole"
    ),
    "UTF-8 read as Latin-1": warns(rows(MRCONSO, put(STR=named(misread))), "names_to_be_whole"),
    "names of another language alone": warns(rows(MRCONSO, put(LAT="SPA")), "rows_to_be_few"),
    "fully specified names, `… (disorder)`": warns(
        names(1, lambda name: f"{name} (disorder)"), "names_to_end_differently"
    ),
    "invisible characters in half of the names": warns(
        names(2, lambda name: f"{name[:2]}\u200b{name[2:]}"),
        "column_values_to_not_match_regex",
        "names_to_be_whole",
    ),
    "entities of HTML in names": warns(
        names(5, lambda name: f"{name}&#39;s"), "names_to_be_whole", "texts_to_be_whole"
    ),
    "the names of RxNorm's ids": refused(
        rows(MRCONSO, put(CUI=lambda row: row["CUI"][1:])), "MRREL.RRF"
    ),
}
ODD: Final[dict[str, Damage]] = {
    "letters with accents in all names": rows(MRCONSO, put(STR=named(str))),
    "brackets, numbers and signs in a few names": names(40, lambda name: f"{name} (2,4-D) [3H]+"),
    "some relations withdrawn": rows(MRREL, every(50, SUPPRESS="O")),
}
