"""Tables that are broken for one of our own expectations each."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from medprobe.core.tables import ORIGINAL
from sound_tables import Tables

# A mutation breaks a table, or one that the table is held against, for an expectation with these
# arguments.
Row = dict[str, Any]
Mutation = Callable[[Tables, str, dict[str, Any]], object]
MUTATIONS: dict[str, Mutation] = {}


def breaks(*types: str) -> Callable[[Mutation], Mutation]:
    def register(mutation: Mutation) -> Mutation:
        MUTATIONS.update(dict.fromkeys(types, mutation))
        return mutation

    return register


def fill(tables: Tables, table: str, column: str, value: Any) -> None:
    """One value, lists too, in all rows of a column."""
    values = pd.Series([value] * len(tables[table]), index=tables[table].index, dtype=object)
    tables[table] = tables[table].assign(**{column: values})


def drop(tables: Tables, table: str, gone: Any) -> None:
    tables[table] = tables[table][~np.asarray(gone)].reset_index(drop=True)


def more(rows: pd.DataFrame, times: int) -> pd.DataFrame:
    """So many copies of queries, no two of them alike."""
    parts = []
    for number in range(times):
        part = rows.copy()
        for name in part.columns.intersection(["query_id", "context_id", "pair_id"]):
            part[name] = part[name].astype(str) + f"/{number}"
        part["subject_id"] = [f"C9{number:03}{row:03}" for row in range(len(part))]
        part["prompt"] = f"{number} " + part["prompt"]
        if "sentence" in part:
            part["sentence"] = f"{number} " + part["sentence"]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def one_row(change: Callable[[Row, dict[str, Any]], Row], where: str = "index >= 0") -> Mutation:
    """The first row of a kind is changed."""

    def mutation(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
        rows = tables[table]
        first = rows.query(kwargs.get("row_condition", where)).index[0]
        records = rows.to_dict("records")
        records[first] |= change(records[first], kwargs)
        tables[table] = pd.DataFrame(records, columns=rows.columns)

    return mutation


def column(kwargs: dict[str, Any]) -> str:
    """The column of a check, or the last of its columns."""
    name: str = kwargs["column_list"][-1] if "column_list" in kwargs else kwargs["column"]
    return name


def other_item(row: Row, kwargs: dict[str, Any]) -> Row:
    items = row[column(kwargs)]
    return {column(kwargs): " " if isinstance(items, str) else [" ", *items[1:]]}


MUTATIONS |= {
    "expect_cuis_to_be_known": one_row(lambda row, kwargs: {column(kwargs): "C7777777"}),
    "expect_dates_to_be_later": one_row(lambda row, _: {"date": row["cut_off"]}),
    "expect_filled_prompts": one_row(lambda row, kwargs: {column(kwargs): "nothing of the kind"}),
    "expect_first_added_to_be_the_target": one_row(lambda *_: {"added_id": "C7"}, "step == 1"),
    "expect_answers_to_be_ranked": one_row(lambda row, _: {"answers": ["x"] * len(row["answers"])}),
    "expect_candidates_to_have_answers_ids": one_row(lambda *_: {"id": "C7777777"}),
    "expect_item_to_be_in_list": one_row(
        lambda row, kwargs: {kwargs["column_list"][0]: "C7777777"}
    ),
    "expect_items_to_be_in_table": one_row(other_item),
    "expect_labels_to_follow_kinds": one_row(lambda *_: {"label": 1}, "label == 0"),
    "expect_list_items_to_be_unique": one_row(
        lambda row, kwargs: {column(kwargs): [*row[column(kwargs)][:1]] * 2}
    ),
    "expect_list_items_to_match_regex": one_row(other_item),
    "expect_list_lengths_to_be_between": one_row(lambda row, kwargs: {column(kwargs): []}),
    "expect_lists_to_be_aligned": one_row(
        lambda row, kwargs: {column(kwargs): [*row[column(kwargs)], "C7777777"]}
    ),
    "expect_names_to_be_of_their_cuis": one_row(
        lambda row, kwargs: {kwargs["column_list"][0]: "no such name"}
    ),
    "expect_negatives_to_differ_in_the_disease_alone": one_row(
        lambda row, _: {"full_hypothesis": f"{row['full_hypothesis']} too"}, "label == 0"
    ),
    "expect_negatives_to_be_unrelated": one_row(
        lambda row, _: {"cui": row["original_cui"]}, "label == 0"
    ),
    **dict.fromkeys(
        ("expect_prompts_to_follow_one_template", "expect_prompts_to_hold_no_answer"),
        one_row(lambda row, _: {"prompt": f"{row['answers'][0]} . {row['prompt']}"}),
    ),
    "expect_prompts_to_have_one_slot": one_row(lambda *_: {"prompt": "no slot"}),
    "expect_texts_to_hold_one_candidate": one_row(
        lambda row, kwargs: {column(kwargs): "nothing of the kind"}
    ),
}


@breaks("expect_subset_to_be_within")
def beyond_the_whole(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    first, *rest = kwargs["column_list"]
    keys = tables[table][rest].astype(str).agg("|".join, axis=1)
    inside = tables[table][first] == kwargs["whole"]
    drop(tables, table, inside & (keys == keys[~inside].iloc[0]))


@breaks("expect_subset_values_to_be_below")
def too_high(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    first, *_, last = kwargs["column_list"]
    value = tables[table][last].mask(tables[table][first] == kwargs["subset"], kwargs["below"])
    tables[table] = tables[table].assign(**{last: value})


@breaks("expect_group_sizes_to_be_between")
def too_many(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    rows = tables[table]
    copies = more(rows[rows["subset"] == "full"].head(1), kwargs["max_value"])
    tables[table] = pd.concat([rows, copies], ignore_index=True)


@breaks("expect_groups_to_be_of_like_size")
def one_tiny_group(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    """One query is left of a group, and the others are many. An only group gives one to another."""
    last = kwargs["column_list"][-1]
    rows = tables[table]
    group = rows[last] == rows[last].iloc[0]
    if group.all():
        tables[table] = rows.assign(**{last: rows[last].where(rows.index > 0, "another")})
        return
    drop(tables, table, group & (rows.index != rows.index[0]))
    others = tables[table][tables[table][last] != rows[last].iloc[0]]
    copies = more(others, 1 + int(30 // max(1, others.groupby(last).size().median() or 1)))
    tables[table] = pd.concat([tables[table], copies], ignore_index=True)


@breaks("expect_rows_to_be_used")
def lost(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    """One thing is lost, or two of three where some may be."""
    other = tables[kwargs["other"]]
    used = other.query(kwargs["where"]) if "where" in kwargs else other
    key = used[kwargs["distinct"]] if "distinct" in kwargs else pd.Series(used.index, used.index)
    numbers = pd.factorize(key)[0]
    gone = used.index[numbers % 3 != 0 if kwargs["share"] < 1 else numbers == 0]
    drop(tables, kwargs["other"], other.index.isin(gone))


@breaks("expect_templates_to_differ")
def template_of_another(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    rows = tables[table]
    tables[table] = tables[table].assign(prompt=rows["subject"] + " is of [Y] .")


@breaks("expect_facts_to_be_absent_from_table")
def known_before(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    other = kwargs["other"]
    tables[other] = pd.concat([tables[other], tables[table].head(1)], ignore_index=True)


@breaks("expect_named_facts_to_be_absent_from_table")
def known_by_name(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    row = tables[table].head(1).assign(subject_id="another", answer_ids=[["another"]])
    row["subject"] = row["subject"].str.upper() + "."
    tables[kwargs["other"]] = pd.concat([tables[kwargs["other"]], row], ignore_index=True)


@breaks("expect_facts_to_be_in_umls", "expect_facts_to_be_in_records")
def permuted(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    """The rows of a relation have each other's answers."""
    rows = tables[table]
    first = rows["relation"] == rows["relation"].iloc[0]
    answers = rows.loc[first, ["answers", "answer_ids"]].to_numpy()[::-1]
    rows = rows.copy()
    rows.loc[first, ["answers", "answer_ids"]] = answers
    tables[table] = rows


@breaks("expect_negatives_to_be_of_other_positives")
def never_right(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    """A disease that is no positive's any more: its positives are gone."""
    rows = tables[table]
    wrong = rows.loc[rows["label"] == 0, "cui"].unique()[: 10 if "mostly" in kwargs else 1]
    drop(tables, table, rows["original_cui"].isin(wrong))


@breaks("expect_positives_to_have_negatives")
def one_negative_left(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    rows = tables[table]
    negatives = (rows["kind"] == kwargs["kind"]) & (rows["pair_id"] == rows["pair_id"].iloc[0])
    drop(tables, table, negatives & (rows.index != rows.index[negatives][0]))


@breaks("expect_diseases_to_be_targets")
def forgotten_target(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    drop(tables, "splits", tables["splits"]["target"] == tables["splits"]["target"].iloc[0])


@breaks("expect_examples_to_be_tested")
def untested(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    splits = tables["splits"]
    first = splits[splits["split"] == "test"].iloc[0]
    same = (splits["target"] == first["target"]) & (splits["example_id"] == first["example_id"])
    drop(tables, "splits", same)


@breaks("expect_tested_premises_to_be_untrained")
def one_premise(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    """One that trains a disease and one that tests it have one premise."""
    of = tables[table][tables[table]["target"] == tables[table]["target"].iloc[0]]
    first = of.drop_duplicates("split").set_index("split")["example_id"]
    examples = tables["examples"]
    both = examples["example_id"].isin(first[["train", "test"]])
    tables["examples"] = examples.assign(premise=examples["premise"].mask(both, "x"))


@breaks("expect_targets_to_be_trained")
def untrained(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    drop(tables, table, tables[table]["split"] == "train")


@breaks("expect_examples_to_differ")
def one_twice(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    again = tables[table].tail(1).assign(example_id="again")
    tables[table] = pd.concat([tables[table], again], ignore_index=True)


@breaks("expect_positives_to_number")
def too_few_of_a_category(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    rows = tables[table]
    of = rows["category"] == kwargs["category"]
    few = rows[of & (rows["label"] == 1)].head(min(1, kwargs["min_value"] - 1))
    drop(tables, table, of & ~rows["pair_id"].isin(few["pair_id"]))


@breaks("expect_no_disease_leakage")
def leak(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    row = tables[table].query("split == 'train'").iloc[0]
    examples = tables["examples"].copy()
    examples.loc[examples["example_id"] == row["example_id"], "premise"] += next(
        " with " + name.name for name in tables["names"].itertuples() if name.cui == row["target"]
    )
    tables["examples"] = examples


@breaks("expect_no_hidden_leakage")
def hidden_leak(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    row = tables[table].query("split == 'train'").iloc[0]
    names = tables["names"]
    name = max(names.loc[names["cui"] == row["target"], "name"], key=len)
    examples = tables["examples"].copy()
    hidden = name.replace("o", "\u043e").replace(" ", "&nbsp;")  # a letter of another alphabet
    examples.loc[examples["example_id"] == row["example_id"], "premise"] += f" with {hidden}"
    tables["examples"] = examples


@breaks("expect_tested_premises_to_have_no_near_copies")
def one_more_word(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    of = tables[table][tables[table]["target"] == tables[table]["target"].iloc[0]]
    first = of.drop_duplicates("split").set_index("split")["example_id"]
    premise = "the man has slept in a cold bed for two nights"
    examples = tables["examples"].copy()
    for split, text in (("train", f"{premise} now"), ("test", premise)):
        examples.loc[examples["example_id"] == first[split], "premise"] = text
    tables["examples"] = examples


@breaks("expect_test_examples_to_be_of_the_target")
def other_test(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    splits = tables[table]
    of = splits["split"] == "test"
    others = dict(zip(splits["target"].unique(), splits["target"].unique()[::-1], strict=True))
    swapped = splits["target"].where(~of, splits["target"].map(others))
    tables[table] = splits.assign(target=swapped)


@breaks("expect_pairs_to_be_on_one_side")
def both_sides(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    splits = tables[table]
    pairs = splits["example_id"].map(tables["examples"].set_index("example_id")["pair_id"])
    shared = pd.concat([splits[["target", "split"]], pairs], axis=1).duplicated(keep=False)
    first = splits.index[shared & (splits["split"] == "train")][0]
    tables[table] = splits.assign(split=splits["split"].where(splits.index != first, "validation"))


@breaks("expect_real_contexts_to_be_in_their_documents")
def other_documents(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, "documents", "text", "another text")


@breaks("expect_segments_to_hold_one_entity")
def other_mentions(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, "mentions", "cui", "C7777777")


@breaks("expect_steps_to_be_nested")
def nothing_shown(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    fill(tables, table, "shown", [])


@breaks("expect_both_centres_in_pairs")
def one_centre(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    rows = tables[table]
    first = rows["pair_id"] == rows["pair_id"].iloc[0]
    tables[table] = rows.assign(centre=rows["centre"].mask(first, "target"))


@breaks("expect_pairs_to_match")
def one_of_a_pair(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    of = tables[table][kwargs["column_list"][0]] == kwargs["template_based"]
    drop(tables, table, of & (tables[table].index == of.idxmax()))


def family(tables: Tables, **second: Any) -> None:
    """Make the first two queries one family; the second has these values."""
    rows = tables["queries"].reset_index(drop=True)
    rows = rows.assign(family_id="", wording="", name_kind="")
    for row in (0, 1) if second else (0,):
        rows.loc[row, ["family_id", "wording", "name_kind"]] = ["f", ORIGINAL, ORIGINAL]
    for column, value in second.items():
        rows.loc[1, column] = value
    tables["queries"] = rows


@breaks("expect_families_to_be_whole")
def family_of_one(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    family(tables)


@breaks("expect_family_prompts_to_differ")
def equal_wordings(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    family(tables, wording="other", prompt=tables["queries"]["prompt"].iloc[0])


@breaks("expect_wordings_to_hold_no_answer")
def wording_with_answer(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    answer = tables["queries"]["answers"].iloc[1][0]
    family(tables, wording="other", prompt=f"{answer} helps: [Y] .")


@breaks("expect_other_names_to_be_of_one_subject")
def name_of_another(tables: Tables, table: str, kwargs: dict[str, Any]) -> None:
    family(tables, name_kind="brand", subject=tables["queries"]["subject"].iloc[2])
