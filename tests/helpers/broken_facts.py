"""Broken tables and files of the builder `table`, and files that are odd and right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pandas as pd

from helpers.broken_files import (
    FACTS,
    Damage,
    both,
    every,
    misread,
    put,
    rows,
    shifted,
    table,
    with_more,
)
from helpers.broken_tables import (
    NO_RELATION,
    PROMPT_OF_ANOTHER,
    UNKNOWN_ANSWER,
    Cases,
    Row,
    add,
    edit,
    family,
    refused,
    replace,
    stops,
    warns,
    with_answer,
)

FACTS_FILE: Final = FACTS.as_posix()
TEMPLATES: Final = "tables/templates.csv"
SECOND: Final = "index == 1"


def of_another_look(change: Callable[[str], str]) -> Damage:
    """Say each fact again of new subjects, whose objects look otherwise."""

    def again(row: Row) -> Row:
        new = {name: f"new {row[name]}" for name in ("subject", "prompt")}
        return row | new | {"object": change(row["object"])}

    return table(FACTS_FILE, lambda lines: [*lines, *map(again, lines)])


def with_wordings(*templates: str) -> Damage:
    """Write templates of `may_treat`, and the one of `may_prevent`, instead of facts' prompts."""

    def damage(data: Path) -> None:
        facts = pd.read_csv(data / FACTS, dtype=str).drop(columns="prompt")
        facts.to_csv(data / FACTS, index=False)
        listed = [("may_treat", template) for template in templates]
        listed += [("may_prevent", template) for template in PREVENTS]
        names = [f"w{number}" for number in range(len(listed))]
        frame = pd.DataFrame(listed, columns=["relation", "template"]).assign(wording=names)
        frame.to_csv(data / TEMPLATES, index=False)

    return damage


PREVENTS: Final = ("[X] may prevent [Y] .", "[Y] may be prevented by [X] .")
TREATS: Final = ("[X] may treat [Y] .", "[Y] may be treated by [X] .")
TABLES: Final[Cases] = {
    "a prompt twice, under another subject": stops(
        PROMPT_OF_ANOTHER,
        "compound_columns_to_be_unique",
        says="subset, relation, prompt occur twice together",
    ),
    "an id twice": stops(
        add("queries"), "column_values_to_be_unique", says="query_id occurs twice"
    ),
    "a prompt without its slot": stops(
        edit("queries", prompt="it treats it ."),
        "prompts_to_have_one_slot",
        says="the prompt has no slot [Y], or several",
    ),
    "a prompt with two slots": stops(
        edit("queries", prompt="[Y] or [Y]"), "prompts_to_have_one_slot"
    ),
    "no subject": stops(
        edit("queries", subject=None), "column_values_to_not_be_null", says="subject is missing"
    ),
    "a blank subject": stops(
        edit("queries", subject=" "), "column_values_to_match_regex", says="subject is empty"
    ),
    "no answers": stops(
        edit("queries", answers=[], answer_ids=[]),
        "list_lengths_to_be_between",
        says="answers is empty",
    ),
    "a blank answer": stops(
        edit("queries", answers=[" "], answer_ids=["x"]),
        "list_items_to_match_regex",
        says="an item of answers is empty",
    ),
    "an answer without its id": stops(
        edit("queries", answer_ids=[]),
        "lists_to_be_aligned",
        says="answers has 1 items, answer_ids has 0 items",
    ),
    "a prompt holds its answer": warns(
        edit("queries", prompt=with_answer), "prompts_to_hold_no_answer"
    ),
    "a relation is missing": stops(NO_RELATION, "rows_to_be_used"),
    "an answer that is not a candidate": stops(UNKNOWN_ANSWER, "answers_to_be_ranked"),
    "slots that touch a word": warns(
        replace("queries", prompt=lambda rows: rows["subject"] + "treats[Y] ."),
        "slots_to_stand_alone",
    ),
    "one damaged prompt": warns(
        edit("queries", prompt="a sentence&nbsp;of [Y] ."), "texts_to_be_whole"
    ),
    "half of the names in brackets": warns(
        replace("candidates", name=lambda rows: rows["name"] + " (finding)"),
        "names_to_end_differently",
    ),
    "a relation of one query beside large ones": warns(
        edit("queries", relation="another"), "groups_to_be_of_like_size"
    ),
    "a family of one query": stops(family(), "families_to_be_whole"),
    "two wordings of one prompt": stops(
        family(wording=lambda _: "other", prompt=lambda rows: rows["prompt"][0]),
        "family_prompts_to_differ",
    ),
    "a wording that holds an answer": warns(
        family(
            wording=lambda _: "other", prompt=lambda rows: f"{rows['answers'][1][0]} helps: [Y] ."
        ),
        "wordings_to_hold_no_answer",
    ),
}
FILES: Final[Cases] = {
    "one relation in another case": warns(
        rows(FACTS_FILE, every(2, relation=lambda row: row["relation"].upper())),
        "relations_to_look_different",
    ),
    '"nan" as objects': stops(
        rows(FACTS_FILE, every(3, object="nan")), "ids_to_be_whole", "names_to_be_whole"
    ),
    "a spreadsheet's date as one object": warns(
        rows(FACTS_FILE, every(10**6, object="2-Sep")), "names_to_be_whole"
    ),
    "all objects equal": stops(
        rows(FACTS_FILE, put(object="gout")),
        *("relations_to_differ", "relations_to_have_several_answers"),
        "table_row_count_to_be_between",
    ),
    "an alias of an object is the name of another one": stops(
        table(
            FACTS_FILE,
            lambda lines: [
                row | {"aliases": lines[(n + 1) % len(lines)]["object"]}
                for n, row in enumerate(lines)
            ],
        ),
        "aliases_to_be_of_one_object",
    ),
    "ids in scientific notation": stops(
        rows(FACTS_FILE, put(object_id=lambda row: f"{len(row['object']) % 9 + 1}.23E+12")),
        "ids_to_be_whole",
    ),
    "a full stop after half of the objects": stops(
        of_another_look(lambda name: f"{name}."),
        *("aliases_to_be_of_one_object", "names_to_look_different"),
    ),
    "two spellings in case of one object": stops(
        of_another_look(str.upper), "aliases_to_be_of_one_object", "names_to_look_different"
    ),
    "one id for all objects": stops(rows(FACTS_FILE, put(object_id="1")), "ids_to_tell_apart"),
    "one id for all subjects": stops(rows(FACTS_FILE, put(subject_id="1")), "ids_to_tell_apart"),
    "the subject is its own answer": stops(
        rows(FACTS_FILE, put(object=lambda row: row["subject"])), "answers_not_to_be_the_subject"
    ),
    "two objects in one cell": warns(
        rows(FACTS_FILE, every(10**6, object="asthma; COPD")), "names_to_be_whole"
    ),
    "UTF-8 read as Latin-1": warns(
        rows(FACTS_FILE, put(object=lambda row: misread(row["object"].replace("e", "é")))),
        "names_to_be_whole",
    ),
    "prompts of the next row": stops(
        table(FACTS_FILE, shifted("prompt")),
        *("compound_columns_to_be_unique", "prompts_to_name_their_subject"),
    ),
    "a misspelt column of aliases": refused(rows(FACTS_FILE, put(alias="gout")), "facts.csv"),
    "prompts negated": warns(
        rows(FACTS_FILE, put(prompt=lambda row: row["prompt"].replace(" may ", " may not "))),
        "templates_to_affirm",
    ),
    "a relation copied under another name": stops(
        table(FACTS_FILE, lambda lines: [*lines, *(row | {"relation": "copy"} for row in lines)]),
        "relations_to_differ",
    ),
}
WORDINGS: Final[Cases] = {
    "a wording of another relation": warns(
        with_wordings(*TREATS, PREVENTS[0]), "wordings_to_keep_their_relation"
    ),
    "a wording that says the opposite": warns(
        with_wordings(*TREATS, "[X] does not treat [Y] ."), "templates_to_affirm"
    ),
    "a wording with slots exchanged": warns(
        with_wordings(*TREATS, "[Y] may treat [X] ."), "wordings_to_keep_their_relation"
    ),
    "two wordings that differ in a blank": warns(
        with_wordings(*TREATS, "[X]  may treat [Y] ."), "wordings_to_look_different"
    ),
    "two wordings that differ in case": warns(
        with_wordings(*TREATS, "[X] MAY treat [Y] ."), "wordings_to_look_different"
    ),
    "an alias of the subject is the answer": stops(
        both(
            with_wordings(*TREATS), rows(FACTS_FILE, put(subject_aliases=lambda row: row["object"]))
        ),
        *("answers_not_to_be_the_subject", "other_names_to_be_of_one_subject"),
    ),
}


def more(count: int, **values: Any) -> Damage:
    return table(FACTS_FILE, with_more(count, **values))


ODD_NAMES: Final = ("What is it?", "1926", "Cell (biology)", "<40%", "AT&T", "E10", "Müller's")
ODD: Final[dict[str, Damage]] = {
    "a relation much larger than another one": more(
        400,
        subject=lambda row, n: f"drug {n}",
        object=lambda row, n: f"illness {n % 40}",
        prompt=lambda row, n: f"drug {n} may treat [Y] .",
    ),
    "a relation that is one-to-one": more(
        30,
        relation=lambda *_: "is_encoded_by",
        subject=lambda row, n: f"protein {n}",
        object=lambda row, n: f"gene {n}",
        prompt=lambda row, n: f"protein {n} is encoded by [Y] .",
    ),
    "question marks, years, brackets and signs in names": more(
        len(ODD_NAMES),
        subject=lambda row, n: f"drug {n}",
        object=lambda row, n: ODD_NAMES[n],
        prompt=lambda row, n: f"drug {n} may treat [Y] .",
    ),
    "an unknown column": rows(FACTS_FILE, put(comment="seen by two people")),
    "a relation with three subjects of one answer": more(
        3,
        relation=lambda *_: "rare",
        subject=lambda row, n: f"cause {n}",
        object=lambda *_: "gout",
        prompt=lambda row, n: f"cause {n} leads to [Y] .",
    ),
}
ODD_WORDINGS: Final[dict[str, Damage]] = {
    "three wordings": with_wordings(*TREATS, "[X] is a treatment for [Y] .")
}
