"""Broken tables of facts: MedLAMA, BioLAMA, LAMA, tables of your own, contexts, LIPID."""

from collections.abc import Callable
from typing import Any, Final

import pandas as pd

from bench.broken import (
    Cases,
    Tables,
    add,
    edit,
    equal_first,
    exchange,
    remove,
    replace,
    rotate,
    take,
)
from medprobe.core.tables import SLOT

Row = dict[str, Any]
NO_RELATION: Final = remove("queries", equal_first("relation"))
RELATION: Final = equal_first("relation", "subset")
PERMUTED: Final = rotate("queries", RELATION, "answers", "answer_ids")
PROMPT_OF_ANOTHER: Final = take("queries", "prompt")
UNKNOWN_ANSWER: Final = edit("queries", answers=["no such name"], answer_ids=["C9999999"])
OTHER_SUBJECT: Final = {"query_id": "another", "subject_id": "MESH:C9999999"}


def with_answer(row: Row) -> str:
    return f"{row['answers'][0]} . {row['prompt']}"


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


def last_answers_cut(column: str) -> Callable[[pd.DataFrame], list[list[str]]]:
    return lambda rows: [[*items[: max(1, len(items) - 1)]] for items in rows[column]]


CUT: Final = replace(
    "queries", answers=last_answers_cut("answers"), answer_ids=last_answers_cut("answer_ids")
)
MEDLAMA: Final[Cases] = {
    "more than ten answers": eleven_answers,
    "the last of several answers cut": CUT,
    "a query twice, with one id": add("queries"),
    "a query twice, with two ids": add("queries", query_id="another"),
    "a query twice, under two subject ids": add(
        "queries", query_id="another", subject_id="C9999999"
    ),
    "subject and object exchanged": edit(
        "queries",
        subject=lambda row: row["answers"][0],
        subject_id=lambda row: row["answer_ids"][0],
        answers=lambda row: [row["subject"]],
        answer_ids=lambda row: [row["subject_id"]],
    ),
    "a relation is missing": NO_RELATION,
    "answers shuffled, their ids not": rotate("queries", RELATION, "answers"),
    "answers permuted with their ids, within a relation": PERMUTED,
    "two relations exchanged": exchange("queries", "relation"),
    "a prompt holds its answer": edit("queries", prompt=with_answer),
    "a prompt of another subject": PROMPT_OF_ANOTHER,
    "a prompt without its subject": edit(
        "queries", prompt=lambda row: row["prompt"].replace(row["subject"], "It")
    ),
    "an answer that is not a candidate": UNKNOWN_ANSWER,
    "an easy query in the hard set": edit(
        "queries", "subset == 'hard'", avg_match=0.5, avg_rouge_l=0.5
    ),
    "ids of candidates rotated against their names": rotate(
        "candidates", lambda rows: rows["id"].notna(), "id"
    ),
    "a relation with the prompt of another one": prompts_of_another_relation,
    "answers cut at twelve characters": replace(
        "queries", answers=lambda rows: [[name[:12] for name in names] for names in rows["answers"]]
    ),
    "a subject in another encoding": edit(
        "queries",
        subject=lambda row: f"Ã©{row['subject']}",
        prompt=lambda row: f"Ã©{row['prompt']}",
    ),
}


BIOLAMA: Final[Cases] = {
    "a test query in train": add("train", "queries"),
    "a test query in dev": add("dev", "queries"),
    "a query of dev in train": add("train", "dev"),
    "a test query in train, under another subject id": add("train", "queries", **OTHER_SUBJECT),
    "a near copy of a test query in train": add(
        "train", "queries", **OTHER_SUBJECT, subject=lambda row: f"{row['subject'].title()}s"
    ),
    "a prompt of another subject": PROMPT_OF_ANOTHER,
    "a relation is missing": NO_RELATION,
    "answers permuted with their ids, within a relation": PERMUTED,
    "two relations exchanged": exchange("queries", "relation"),
    "a query of dev in the test set, under another id": add("queries", "dev", query_id="another"),
    "an answer that is not a candidate": UNKNOWN_ANSWER,
    "the last of several answers cut": CUT,
    "an answer without its id": edit("queries", answer_ids=lambda row: row["answer_ids"][:-1]),
}


LAMA: Final[Cases] = {
    "answers, ids and sentences permuted within a relation": rotate(
        "queries", RELATION, "answers", "answer_ids", "sentence"
    ),
    "two relations exchanged": exchange("queries", "relation", "P19", "P780"),
    "a prompt holds its answer": edit("queries", prompt=with_answer),
    "a sentence holds its answer outside the slot, and says so in its own text": edit(
        "queries",
        "subset == 'squad'",
        prompt=lambda row: f"{row['answers'][0]} , or {row['prompt']}",
        sentence=lambda row: f"{row['answers'][0]} , or {row['sentence']}",
    ),
    "a prompt of another subject": PROMPT_OF_ANOTHER,
    "a sentence of another fact": take("queries", "sentence"),
    "a template-based pair without its template-free one": remove(
        "queries", lambda rows: rows.index == (rows["subset"] == "t-rex-free").idxmax()
    ),
}


TABLE: Final[Cases] = {
    "a prompt twice, under another subject": PROMPT_OF_ANOTHER,
    "a prompt without its slot": edit("queries", prompt="stovumol treats it ."),
    "a blank answer": edit("queries", answers=[" "], answer_ids=["x"]),
    "a prompt holds its answer": edit("queries", prompt=with_answer),
    "a relation is missing": NO_RELATION,
    "an answer that is not a candidate": UNKNOWN_ANSWER,
    "answers permuted with their ids, within a relation": PERMUTED,
}


def answers_of_another(tables: Tables) -> None:
    rows = tables["queries"].to_dict("records")
    subject = rows[0]["subject_id"]
    answers = next(row for row in rows if row["subject_id"] != subject)
    values = {"answers": answers["answers"], "answer_ids": answers["answer_ids"]}
    values["fact_id"] = answers["answer_ids"][0]
    changed = [row | values if row["subject_id"] == subject else row for row in rows]
    tables["queries"] = pd.DataFrame(changed, columns=tables["queries"].columns)


def without_fact(column: str) -> Callable[[Row], list[str]]:
    def value(row: Row) -> list[str]:
        items = zip(row[column], row["answer_ids"], strict=True)
        return [item for item, id_ in items if id_ != row["fact_id"]]

    return value


def steps_backwards(rows: pd.DataFrame) -> "pd.Series[int]":
    steps = rows["step"].where(equal_first("context_id")(rows))
    return (steps.max() - steps).fillna(rows["step"]).astype(int)


CONTEXT: Final[Cases] = {
    "the answer in the prompt of one step": edit("queries", "step == 0", prompt=with_answer),
    "a query without its slot": edit("queries", prompt=lambda row: row["prompt"].replace(SLOT, "")),
    "a step that shows less than the one before": edit("queries", "step == 2", shown=[]),
    "the fact is not among the answers": edit(
        "queries", answers=without_fact("answers"), answer_ids=without_fact("answer_ids")
    ),
    "a subject has the answers of another one": answers_of_another,
    "mentions shifted by one character": replace(
        "mentions", start=lambda rows: rows["start"] + 1, end=lambda rows: rows["end"] + 1
    ),
    "the last of several answers cut": CUT,
    "correct objects called incorrect": replace(
        "queries", added_role=lambda rows: rows["added_role"].replace("correct", "incorrect")
    ),
    "the centres target and negative exchanged": exchange(
        "queries", "centre", "target", "negative"
    ),
    "the kinds knowledge-only and knowledge-sorted exchanged": exchange(
        "queries", "kind", "knowledge-only", "knowledge-sorted"
    ),
    "the kinds knowledge-random and knowledge-sorted exchanged": exchange(
        "queries", "kind", "knowledge-random", "knowledge-sorted"
    ),
    "all subjects have one object": replace("queries", objects=lambda rows: 1),
    "all objects are in one document": replace("queries", frequency=lambda rows: 1),
    "steps numbered backwards": replace("queries", step=steps_backwards),
}


LIPID: Final[Cases] = {
    "an article from before the date that models have read to": edit("queries", date="1990-01-01"),
    "a prompt that is not its sentence": edit("queries", prompt=f"Nothing of the kind is {SLOT} ."),
}
