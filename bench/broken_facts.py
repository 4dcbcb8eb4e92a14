"""Broken tables of facts: MedLAMA, BioLAMA, LAMA, tables of your own, contexts, LIPID."""

import pandas as pd

from bench.broken import Tables, append, case, change
from medprobe.core.tables import SLOT


def rotate(tables: Tables, name: str, rows: pd.Index, *columns: str) -> None:
    """Give each of these rows the values of the next one."""
    table = tables[name]
    for column in columns:
        values = table.loc[rows, column].to_list()
        table[column] = table[column].astype(object)
        table.loc[rows, column] = pd.Series(values[1:] + values[:1], index=rows, dtype=object)


def first_relation(tables: Tables) -> pd.Index:
    """The rows of the first query's relation and subset."""
    queries = tables["queries"]
    first = queries[["relation", "subset"]] == queries[["relation", "subset"]].iloc[0]
    return queries.index[first.all(axis=1)]


def full(tables: Tables) -> pd.DataFrame:
    """The first relation's queries of the subset `full`, with their index."""
    queries = tables["queries"]
    queries = queries[queries["subset"] == "full"]
    return queries[queries["relation"] == queries["relation"].iloc[0]]


@case("medlama", "more than ten answers")
def eleven_answers(tables: Tables) -> None:
    names = tables["candidates"]["name"].unique()[:11]
    ids = [f"C99{number:05}" for number in range(11)]
    change(tables, "queries", 0, answers=[*names], answer_ids=ids)


@case("medlama", "a query twice, with one id")
def same_id(tables: Tables) -> None:
    append(tables, "queries", tables["queries"].head(1))


@case("medlama", "a query twice, with two ids")
def two_ids(tables: Tables) -> None:
    append(tables, "queries", tables["queries"].head(1).assign(query_id="another"))


@case("medlama", "a query twice, under two subject ids")
def two_subject_ids(tables: Tables) -> None:
    row = tables["queries"].head(1)
    append(tables, "queries", row.assign(query_id="another", subject_id="C9999999"))


@case("medlama", "subject and object exchanged")
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


@case("medlama", "a relation is missing")
def no_relation(tables: Tables) -> None:
    queries = tables["queries"]
    tables["queries"] = queries[queries["relation"] != queries["relation"].iloc[0]]


@case("medlama", "answers shuffled, their ids not")
def shuffled(tables: Tables) -> None:
    rows = full(tables)
    answers = tables["queries"]["answers"].copy()
    answers[rows.index] = rows["answers"].to_list()[1:] + rows["answers"].to_list()[:1]
    tables["queries"]["answers"] = answers


@case("medlama", "answers permuted with their ids, within a relation")
def permuted(tables: Tables) -> None:
    rows = full(tables)
    for column in ("answers", "answer_ids"):
        values = tables["queries"][column].copy()
        values[rows.index] = rows[column].to_list()[1:] + rows[column].to_list()[:1]
        tables["queries"][column] = values


@case("medlama", "two relations exchanged")
def relations_exchanged(tables: Tables) -> None:
    first, second = tables["queries"]["relation"].unique()[:2]
    names = {first: second, second: first}
    tables["queries"]["relation"] = tables["queries"]["relation"].replace(names)


@case("medlama", "a prompt holds its answer")
def prompt_with_answer(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    change(tables, "queries", 0, prompt=f"{row['answers'][0]} . {row['prompt']}")


@case("medlama", "a prompt of another subject")
def prompt_of_another(tables: Tables) -> None:
    rows = full(tables)
    change(tables, "queries", rows.index[0], prompt=rows["prompt"].iloc[1])


@case("medlama", "a prompt without its subject")
def prompt_without_subject(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    change(tables, "queries", 0, prompt=row["prompt"].replace(row["subject"], "It"))


@case("medlama", "an answer that is not a candidate")
def unknown_answer(tables: Tables) -> None:
    change(tables, "queries", 0, answers=["no such name"], answer_ids=["C9999999"])


@case("medlama", "an easy query in the hard set")
def easy(tables: Tables) -> None:
    hard = tables["queries"].index[tables["queries"]["subset"] == "hard"][0]
    change(tables, "queries", hard, avg_match=0.5, avg_rouge_l=0.5)


@case("medlama", "ids of candidates rotated against their names")
def candidate_ids_rotated(tables: Tables) -> None:
    rotate(tables, "candidates", tables["candidates"].index, "id")


@case("medlama", "a relation with the prompt of another one")
def prompts_of_another_relation(tables: Tables) -> None:
    queries = tables["queries"]
    first, second = queries["relation"].unique()[:2]
    row = queries[queries["relation"] == second].iloc[0]
    template = row["prompt"].replace(row["subject"], "[X]")
    for index, subject in queries.loc[queries["relation"] == first, "subject"].items():
        queries.loc[index, "prompt"] = template.replace("[X]", subject)


@case("medlama", "answers cut at twelve characters")
def answers_cut(tables: Tables) -> None:
    answers = tables["queries"]["answers"]
    tables["queries"]["answers"] = answers.map(lambda names: [name[:12] for name in names])


@case("medlama", "a subject in another encoding")
def subject_in_another_encoding(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    change(tables, "queries", 0, subject=f"Ã©{row['subject']}", prompt=f"Ã©{row['prompt']}")


@case("biolama", "a test query in train")
def test_in_train(tables: Tables) -> None:
    append(tables, "train", tables["queries"].head(1))


@case("biolama", "a test query in dev")
def test_in_dev(tables: Tables) -> None:
    append(tables, "dev", tables["queries"].head(1))


@case("biolama", "a query of dev in train")
def dev_in_train(tables: Tables) -> None:
    append(tables, "train", tables["dev"].head(1))


@case("biolama", "a test query in train, under another subject id")
def renamed_in_train(tables: Tables) -> None:
    row = tables["queries"].head(1)
    append(tables, "train", row.assign(query_id="another", subject_id="MESH:C9999999"))


@case("biolama", "a near copy of a test query in train")
def near_copy_in_train(tables: Tables) -> None:
    row = tables["queries"].head(1).assign(query_id="another", subject_id="MESH:C9999999")
    append(tables, "train", row.assign(subject=row["subject"].str.title() + "s"))


@case("biolama", "a prompt of another subject")
def biolama_prompt(tables: Tables) -> None:
    change(tables, "queries", 0, prompt=tables["queries"]["prompt"].iloc[1])


@case("biolama", "a relation is missing")
def biolama_relation(tables: Tables) -> None:
    queries = tables["queries"]
    tables["queries"] = queries[queries["relation"] != queries["relation"].iloc[0]]


@case("biolama", "answers permuted with their ids, within a relation")
def biolama_permuted(tables: Tables) -> None:
    rotate(tables, "queries", first_relation(tables), "answers", "answer_ids")


@case("biolama", "two relations exchanged")
def biolama_relations_exchanged(tables: Tables) -> None:
    relations_exchanged(tables)


@case("biolama", "a query of dev in the test set, under another id")
def dev_in_test(tables: Tables) -> None:
    append(tables, "queries", tables["dev"].head(1).assign(query_id="another"))


@case("biolama", "an answer that is not a candidate")
def answer_not_ranked(tables: Tables) -> None:
    name = tables["queries"]["answers"].iloc[0][0]
    candidates = tables["candidates"]
    tables["candidates"] = candidates[candidates["name"] != name].reset_index(drop=True)


@case("biolama", "an answer without its id")
def answer_without_id(tables: Tables) -> None:
    change(tables, "queries", 0, answer_ids=tables["queries"]["answer_ids"].iloc[0][:-1])


@case("lama", "answers, ids and sentences permuted within a relation")
def lama_permuted(tables: Tables) -> None:
    rotate(tables, "queries", first_relation(tables), "answers", "answer_ids", "sentence")


@case("lama", "two relations exchanged")
def lama_relations_exchanged(tables: Tables) -> None:
    queries = tables["queries"]
    names = {"P19": "P780", "P780": "P19"}
    tables["queries"] = queries.assign(relation=queries["relation"].replace(names))


@case("lama", "a prompt holds its answer")
def lama_prompt_with_answer(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    change(tables, "queries", 0, prompt=f"{row['answers'][0]} . {row['prompt']}")


@case("lama", "a sentence holds its answer outside the slot, and says so in its own text")
def lama_sentence_with_answer(tables: Tables) -> None:
    queries = tables["queries"]
    index = queries.index[queries["subset"] == "squad"][0]
    row = queries.loc[index]
    added = f"{row['answers'][0]} , or "
    change(tables, "queries", index, prompt=added + row["prompt"], sentence=added + row["sentence"])


@case("lama", "a prompt of another subject")
def lama_prompt_of_another(tables: Tables) -> None:
    change(tables, "queries", 0, prompt=tables["queries"]["prompt"].iloc[1])


@case("lama", "a sentence of another fact")
def lama_sentence_of_another(tables: Tables) -> None:
    change(tables, "queries", 0, sentence=tables["queries"]["sentence"].iloc[1])


@case("lama", "a template-based pair without its template-free one")
def lama_pair_broken(tables: Tables) -> None:
    queries = tables["queries"]
    index = queries.index[queries["subset"] == "t-rex-free"][0]
    tables["queries"] = queries.drop(index).reset_index(drop=True)


@case("table", "a prompt twice, under another subject")
def table_prompt_twice(tables: Tables) -> None:
    change(tables, "queries", 0, prompt=tables["queries"]["prompt"].iloc[1])


@case("table", "a prompt without its slot")
def table_without_slot(tables: Tables) -> None:
    change(tables, "queries", 0, prompt="stovumol treats it .")


@case("table", "a blank answer")
def table_blank_answer(tables: Tables) -> None:
    change(tables, "queries", 0, answers=[" "], answer_ids=["x"])


@case("table", "a prompt holds its answer")
def table_prompt_with_answer(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    change(tables, "queries", 0, prompt=f"{row['answers'][0]} . {row['prompt']}")


@case("table", "a relation is missing")
def table_relation(tables: Tables) -> None:
    queries = tables["queries"]
    tables["queries"] = queries[queries["relation"] != queries["relation"].iloc[0]]


@case("table", "an answer that is not a candidate")
def table_unknown_answer(tables: Tables) -> None:
    change(tables, "queries", 0, answers=["no such name"], answer_ids=["x"])


@case("table", "answers permuted with their ids, within a relation")
def table_permuted(tables: Tables) -> None:
    rotate(tables, "queries", first_relation(tables), "answers", "answer_ids")


@case("context", "the answer in the prompt of one step")
def context_with_answer(tables: Tables) -> None:
    queries = tables["queries"]
    row = queries[queries["step"] == 0].index[0]
    answer = queries.loc[row, "answers"][0]
    change(tables, "queries", row, prompt=f"{answer} . {queries.loc[row, 'prompt']}")


@case("context", "a query without its slot")
def context_without_slot(tables: Tables) -> None:
    change(tables, "queries", 0, prompt=tables["queries"]["prompt"].iloc[0].replace(SLOT, ""))


@case("context", "a step that shows less than the one before")
def context_shows_less(tables: Tables) -> None:
    queries = tables["queries"]
    row = queries[queries["step"] == 2].index[0]
    change(tables, "queries", row, shown=[])


@case("context", "the fact is not among the answers")
def context_without_fact(tables: Tables) -> None:
    row = tables["queries"].iloc[0]
    pairs = zip(row["answers"], row["answer_ids"], strict=True)
    names, ids = zip(*((name, id_) for name, id_ in pairs if id_ != row["fact_id"]), strict=True)
    change(tables, "queries", 0, answers=[*names], answer_ids=[*ids])


@case("context", "a subject has the answers of another one")
def context_answers_of_another(tables: Tables) -> None:
    queries = tables["queries"]
    first, second = queries["subject_id"].unique()[:2]
    answers = queries[queries["subject_id"] == second].iloc[0]
    for column in ("answers", "answer_ids", "fact_id"):
        value = answers["answer_ids"][0] if column == "fact_id" else answers[column]
        rows = queries.index[queries["subject_id"] == first]
        queries[column] = queries[column].astype(object)
        queries.loc[rows, column] = pd.Series([value] * len(rows), index=rows, dtype=object)


@case("context", "mentions shifted by one character")
def mentions_shifted(tables: Tables) -> None:
    for column in ("start", "end"):
        tables["mentions"][column] += 1


@case("context", "steps numbered backwards")
def steps_backwards(tables: Tables) -> None:
    queries = tables["queries"]
    rows = queries["context_id"] == queries["context_id"].iloc[0]
    last = queries.loc[rows, "step"].max()
    queries.loc[rows, "step"] = last - queries.loc[rows, "step"]


@case("lipid", "an article from before the date that models have read to")
def old_article(tables: Tables) -> None:
    change(tables, "queries", 0, date="1990-01-01")


@case("lipid", "a prompt that is not its sentence")
def other_text(tables: Tables) -> None:
    change(tables, "queries", 0, prompt=f"Nothing of the kind is {SLOT} .")
