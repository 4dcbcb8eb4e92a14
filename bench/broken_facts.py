"""Broken tables of facts: MedLAMA, BioLAMA, LAMA, tables of your own, contexts, LIPID."""

from functools import partial
from typing import Any, Final

import pandas as pd

from bench.broken import (
    CASES,
    Tables,
    append,
    change,
    copy_first,
    drop_relation,
    exchange,
    name_answer,
    permute,
    replace_first,
    rotate,
    take_next,
)
from medprobe.core.tables import SLOT

ANSWERS: Final = ("answers", "answer_ids")
UNKNOWN: Final[dict[str, Any]] = {"answers": ["no such name"], "answer_ids": ["C9999999"]}
RENAMED: Final = {"query_id": "another", "subject_id": "MESH:C9999999"}


def full(tables: Tables) -> pd.DataFrame:
    """The first relation's queries of the subset `full`, with their index."""
    queries = tables["queries"]
    queries = queries[queries["subset"] == "full"]
    return queries[queries["relation"] == queries["relation"].iloc[0]]


def eleven_answers(tables: Tables) -> None:
    names = tables["candidates"]["name"].unique()[:11]
    ids = [f"C99{number:05}" for number in range(11)]
    change(tables, "queries", 0, answers=[*names], answer_ids=ids)


def exchanged(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    change(
        tables,
        "queries",
        0,
        subject=row["answers"][0],
        subject_id=row["answer_ids"][0],
        answers=[row["subject"]],
        answer_ids=[row["subject_id"]],
    )


def shift(columns: tuple[str, ...], tables: Tables) -> None:
    """Give each of the first relation's queries of the subset `full` the next one's values."""
    rotate(tables, "queries", full(tables).index, *columns)


def prompt_of_another(tables: Tables) -> None:
    rows = full(tables)
    change(tables, "queries", rows.index[0], prompt=rows["prompt"].iloc[1])


def prompt_without_subject(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    change(tables, "queries", 0, prompt=row["prompt"].replace(row["subject"], "It"))


def easy(tables: Tables) -> None:
    hard = tables["queries"].index[tables["queries"]["subset"] == "hard"][0]
    change(tables, "queries", hard, avg_match=0.5, avg_rouge_l=0.5)


def prompts_of_another_relation(tables: Tables) -> None:
    queries = tables["queries"]
    first, second = queries["relation"].unique()[:2]
    row = queries[queries["relation"] == second].iloc[0]
    template = row["prompt"].replace(row["subject"], "[X]")
    for index, subject in queries.loc[queries["relation"] == first, "subject"].items():
        queries.loc[index, "prompt"] = template.replace("[X]", subject)


def answers_cut(tables: Tables) -> None:
    answers = tables["queries"]["answers"]
    tables["queries"]["answers"] = answers.map(lambda names: [name[:12] for name in names])


def subject_in_another_encoding(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    change(tables, "queries", 0, subject=f"Ã©{row['subject']}", prompt=f"Ã©{row['prompt']}")


def near_copy_in_train(tables: Tables) -> None:
    row = tables["queries"].head(1).assign(query_id="another", subject_id="MESH:C9999999")
    append(tables, "train", row.assign(subject=row["subject"].str.title() + "s"))


def answer_not_ranked(tables: Tables) -> None:
    name = tables["queries"]["answers"].iloc[0][0]
    candidates = tables["candidates"]
    tables["candidates"] = candidates[candidates["name"] != name].reset_index(drop=True)


def answer_without_id(tables: Tables) -> None:
    change(tables, "queries", 0, answer_ids=tables["queries"]["answer_ids"].iloc[0][:-1])


def lama_sentence_with_answer(tables: Tables) -> None:
    queries = tables["queries"]
    index = queries.index[queries["subset"] == "squad"][0]
    row = queries.loc[index]
    added = f"{row['answers'][0]} , or "
    change(tables, "queries", index, prompt=added + row["prompt"], sentence=added + row["sentence"])


def lama_pair_broken(tables: Tables) -> None:
    queries = tables["queries"]
    index = queries.index[queries["subset"] == "t-rex-free"][0]
    tables["queries"] = queries.drop(index).reset_index(drop=True)


def context_with_answer(tables: Tables) -> None:
    queries = tables["queries"]
    row = queries[queries["step"] == 0].index[0]
    answer = queries.loc[row, "answers"][0]
    change(tables, "queries", row, prompt=f"{answer} . {queries.loc[row, 'prompt']}")


def context_without_slot(tables: Tables) -> None:
    change(tables, "queries", 0, prompt=tables["queries"]["prompt"].iloc[0].replace(SLOT, ""))


def context_shows_less(tables: Tables) -> None:
    queries = tables["queries"]
    row = queries[queries["step"] == 2].index[0]
    change(tables, "queries", row, shown=[])


def context_without_fact(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    pairs = zip(row["answers"], row["answer_ids"], strict=True)
    names, ids = zip(*((name, id_) for name, id_ in pairs if id_ != row["fact_id"]), strict=True)
    change(tables, "queries", 0, answers=[*names], answer_ids=[*ids])


def context_answers_of_another(tables: Tables) -> None:
    queries = tables["queries"]
    first, second = queries["subject_id"].unique()[:2]
    answers = queries[queries["subject_id"] == second].iloc[0]
    for column in ("answers", "answer_ids", "fact_id"):
        value = answers["answer_ids"][0] if column == "fact_id" else answers[column]
        rows = queries.index[queries["subject_id"] == first]
        queries[column] = queries[column].astype(object)
        queries.loc[rows, column] = pd.Series([value] * len(rows), index=rows, dtype=object)


def mentions_shifted(tables: Tables) -> None:
    for column in ("start", "end"):
        tables["mentions"][column] += 1


def steps_backwards(tables: Tables) -> None:
    queries = tables["queries"]
    rows = queries["context_id"] == queries["context_id"].iloc[0]
    last = queries.loc[rows, "step"].max()
    queries.loc[rows, "step"] = last - queries.loc[rows, "step"]


def other_text(tables: Tables) -> None:
    change(tables, "queries", 0, prompt=f"Nothing of the kind is {SLOT} .")


def candidate_ids_rotated(tables: Tables) -> None:
    rotate(tables, "candidates", tables["candidates"].index, "id")


CASES["medlama"] += [
    ("more than ten answers", eleven_answers),
    ("a query twice, with one id", partial(copy_first, "queries", "queries")),
    ("a query twice, with two ids", partial(copy_first, "queries", "queries", query_id="another")),
    (
        "a query twice, under two subject ids",
        partial(copy_first, "queries", "queries", query_id="another", subject_id="C9999999"),
    ),
    ("subject and object exchanged", exchanged),
    ("a relation is missing", drop_relation),
    ("answers shuffled, their ids not", partial(shift, ("answers",))),
    ("answers permuted with their ids, within a relation", partial(shift, ANSWERS)),
    ("two relations exchanged", partial(exchange, ())),
    ("a prompt holds its answer", name_answer),
    ("a prompt of another subject", prompt_of_another),
    ("a prompt without its subject", prompt_without_subject),
    ("an answer that is not a candidate", partial(replace_first, **UNKNOWN)),
    ("an easy query in the hard set", easy),
    ("ids of candidates rotated against their names", candidate_ids_rotated),
    ("a relation with the prompt of another one", prompts_of_another_relation),
    ("answers cut at twelve characters", answers_cut),
    ("a subject in another encoding", subject_in_another_encoding),
]
CASES["biolama"] += [
    ("a test query in train", partial(copy_first, "queries", "train")),
    ("a test query in dev", partial(copy_first, "queries", "dev")),
    ("a query of dev in train", partial(copy_first, "dev", "train")),
    (
        "a test query in train, under another subject id",
        partial(copy_first, "queries", "train", **RENAMED),
    ),
    ("a near copy of a test query in train", near_copy_in_train),
    ("a prompt of another subject", partial(take_next, "prompt")),
    ("a relation is missing", drop_relation),
    ("answers permuted with their ids, within a relation", partial(permute, ANSWERS)),
    ("two relations exchanged", partial(exchange, ())),
    (
        "a query of dev in the test set, under another id",
        partial(copy_first, "dev", "queries", query_id="another"),
    ),
    ("an answer that is not a candidate", answer_not_ranked),
    ("an answer without its id", answer_without_id),
]
CASES["lama"] += [
    (
        "answers, ids and sentences permuted within a relation",
        partial(permute, (*ANSWERS, "sentence")),
    ),
    ("two relations exchanged", partial(exchange, ("P19", "P780"))),
    ("a prompt holds its answer", name_answer),
    (
        "a sentence holds its answer outside the slot, and says so in its own text",
        lama_sentence_with_answer,
    ),
    ("a prompt of another subject", partial(take_next, "prompt")),
    ("a sentence of another fact", partial(take_next, "sentence")),
    ("a template-based pair without its template-free one", lama_pair_broken),
]
CASES["table"] += [
    ("a prompt twice, under another subject", partial(take_next, "prompt")),
    ("a prompt without its slot", partial(replace_first, prompt="stovumol treats it .")),
    ("a blank answer", partial(replace_first, answers=[" "], answer_ids=["x"])),
    ("a prompt holds its answer", name_answer),
    ("a relation is missing", drop_relation),
    (
        "an answer that is not a candidate",
        partial(replace_first, answers=["no such name"], answer_ids=["x"]),
    ),
    ("answers permuted with their ids, within a relation", partial(permute, ANSWERS)),
]
CASES["context"] += [
    ("the answer in the prompt of one step", context_with_answer),
    ("a query without its slot", context_without_slot),
    ("a step that shows less than the one before", context_shows_less),
    ("the fact is not among the answers", context_without_fact),
    ("a subject has the answers of another one", context_answers_of_another),
    ("mentions shifted by one character", mentions_shifted),
    ("steps numbered backwards", steps_backwards),
]
CASES["lipid"] += [
    (
        "an article from before the date that models have read to",
        partial(replace_first, date="1990-01-01"),
    ),
    ("a prompt that is not its sentence", other_text),
]
