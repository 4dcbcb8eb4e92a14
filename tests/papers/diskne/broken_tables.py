"""Tables that are broken for one of DisKnE's expectations each."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from helpers.broken_tables import (
    Kwargs,
    Mutation,
    Tables,
    add,
    column,
    edit,
    first_column,
    remove,
    replace,
)


def never_right(rows: pd.DataFrame, kwargs: Kwargs) -> Any:
    """The positives of a disease that is wrong elsewhere."""
    wrong = rows.loc[rows["label"] == 0, "cui"].unique()[: 10 if "mostly" in kwargs else 1]
    return rows["original_cui"].isin(wrong)


def all_negatives_but_one(rows: pd.DataFrame, kwargs: Kwargs) -> Any:
    """Of the first pair, of a kind."""
    negatives = (rows["kind"] == kwargs["kind"]) & (rows["pair_id"] == rows["pair_id"].iloc[0])
    return negatives & (rows.index != negatives.idxmax())


def first_tested(splits: pd.DataFrame, _: Kwargs) -> Any:
    """An example that tests, wherever its target has it."""
    first = splits[splits["split"] == "test"].iloc[0]
    return (splits[["target", "example_id"]] == first[["target", "example_id"]]).all(axis=1)


def too_few(rows: pd.DataFrame, kwargs: Kwargs) -> Any:
    """The pairs of a category, but for one at most."""
    category = rows["category"] == kwargs["category"]
    few = rows[category & (rows["label"] == 1)].head(min(1, kwargs["min_value"] - 1))
    return category & ~rows["pair_id"].isin(few["pair_id"])


def premises(train: str, test: str) -> Mutation:
    """One example that trains the first target, and one that tests it, have these premises."""

    def mutation(tables: Tables, table: str, kwargs: Kwargs) -> None:
        splits = tables[table]
        splits = splits[splits["target"] == splits["target"].iloc[0]]
        example = splits.drop_duplicates("split").set_index("split")["example_id"]
        texts = {example["train"]: train, example["test"]: test}
        examples = tables["examples"]
        changed = examples["example_id"].map(texts).fillna(examples["premise"])
        tables["examples"] = examples.assign(premise=changed)

    return mutation


def leak(hide: Callable[[str], str]) -> Mutation:
    """A premise that trains a target ends with its longest name, in another form."""

    def mutation(tables: Tables, table: str, kwargs: Kwargs) -> None:
        row = tables[table].query("split == 'train'").iloc[0]
        names, examples = tables["names"], tables["examples"]
        name = max(names.loc[names["cui"] == row["target"], "name"], key=len)
        premise = examples["premise"].mask(
            examples["example_id"] == row["example_id"],
            examples["premise"] + f" with {hide(name)}",
        )
        tables["examples"] = examples.assign(premise=premise)

    return mutation


def other_targets(splits: pd.DataFrame, _: Kwargs) -> Any:
    """What tests a target tests another one."""
    targets = splits["target"].unique()
    others = dict(zip(targets, targets[::-1], strict=True))
    return splits["target"].where(splits["split"] != "test", splits["target"].map(others))


def shifted(tables: Tables, table: str, kwargs: Kwargs) -> None:
    """Each positive's text stands beside the id of the next one."""
    rows = tables[table].copy()
    positive = rows["label"] == 1
    cuis = rows.loc[positive, "cui"].to_list()
    rows.loc[positive, "cui"] = [*cuis[1:], cuis[0]]
    tables[table] = rows


def both_sides(tables: Tables, table: str, kwargs: Kwargs) -> None:
    splits = tables[table]
    pairs = splits["example_id"].map(tables["examples"].set_index("example_id")["pair_id"])
    shared = pd.concat([splits[["target", "split"]], pairs], axis=1).duplicated(keep=False)
    first = splits.index[shared & (splits["split"] == "train")][0]
    tables[table] = splits.assign(split=splits["split"].where(splits.index != first, "validation"))


MUTATIONS: dict[str, Mutation] = {
    "expect_cuis_to_be_known": edit(lambda _, kwargs: {column(kwargs): "C7777777"}),
    "expect_diseases_to_be_targets": remove(
        lambda splits, _: splits["target"] == splits["target"][0], "splits"
    ),
    "expect_examples_to_be_tested": remove(first_tested, "splits"),
    "expect_examples_to_differ": add(lambda rows, _: rows.tail(1).assign(example_id="again")),
    "expect_hypotheses_to_be_preferred_names": edit(
        lambda row, _: {"hypothesis": row["hypothesis"].upper()}, "label == 1"
    ),
    "expect_labels_to_follow_kinds": edit(lambda *_: {"label": 1}, "label == 0"),
    "expect_names_to_be_of_their_cuis": edit(
        lambda _, kwargs: {first_column(kwargs): "no such name"}
    ),
    "expect_negatives_to_be_of_other_positives": remove(never_right),
    "expect_negatives_to_be_unrelated": edit(
        lambda row, _: {"cui": row["original_cui"]}, "label == 0"
    ),
    "expect_negatives_to_differ_in_the_disease_alone": edit(
        lambda row, _: {"full_hypothesis": f"{row['full_hypothesis']} too"}, "label == 0"
    ),
    "expect_no_disease_leakage": leak(str),
    "expect_other_examples_to_be_trained": remove(
        lambda splits, _: (splits["split"] != "test") & (splits.index % 2 == 0)
    ),
    "expect_pairs_to_be_on_one_side": both_sides,
    "expect_positives_to_have_negatives": remove(all_negatives_but_one),
    "expect_positives_to_number": remove(too_few),
    "expect_premises_to_be_of_their_pairs": edit(
        lambda row, _: {"premise": f"{row['premise']} ."}, "label == 0"
    ),
    "expect_prompts_to_be_of_examples": edit(lambda *_: {"prompt": "[Y]"}),
    "expect_similar_negatives_to_be_nearest": replace(
        "kind", lambda rows, _: rows["kind"].replace({"similar": "random", "random": "similar"})
    ),
    "expect_targets_to_be_trained": remove(lambda splits, _: splits["split"] == "train"),
    "expect_test_examples_to_be_of_the_target": replace("target", other_targets),
    "expect_texts_to_name_their_diseases": shifted,
    "expect_tested_premises_to_be_untrained": premises("x", "x"),
    "expect_tested_premises_to_have_no_near_copies": premises(
        "the man has slept in a cold bed for two nights now",
        "the man has slept in a cold bed for two nights",
    ),
}
