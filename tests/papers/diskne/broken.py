"""Broken tables and files of DisKnE, and files that are odd and right.

`test_diskne_gate.py` plants names of a disease where they must not be, and `test_diskne_forms.py`
has the forms of a name.
"""

from collections.abc import Callable
from typing import Any, Final

import pandas as pd

from helpers.broken_files import Damage, copy, put, rows, shifted, swap, table, text, with_more
from helpers.broken_tables import (
    Cases,
    Tables,
    add,
    edit,
    equal_first,
    exchange,
    refused,
    remove,
    replace,
    stops,
    warns,
)

PAIRS: Final = "mednli/*.jsonl"
VECTORS: Final = "cui2vec/*.csv"
PREMISE: Final = "He was seen at home twice this week and could walk a few steps ."
TARGET: Final = equal_first("target")


def set_premise(tables: Tables, example: str, change: Callable[[str], str]) -> None:
    """Change the premise of an example's pair, as its source would: in all examples and prompts."""
    examples, queries = tables["examples"], tables["queries"]
    pair = examples.loc[examples["example_id"] == example, "pair_id"].iloc[0]
    of_pair = examples["pair_id"] == pair
    premise = examples.loc[of_pair, "premise"].iloc[0]
    is_of = queries["subject_id"] == pair
    prompts = queries.loc[is_of, "prompt"].str.removeprefix(premise)
    queries.loc[is_of, "prompt"] = change(premise) + prompts
    queries.loc[is_of, "subject"] = examples.loc[of_pair, "premise"] = change(premise)


def copy_premise(change: Callable[[str], str]) -> Damage:
    """Give an example that trains a disease the changed premise of one that tests it."""

    def damage(tables: Tables) -> None:
        splits = tables["splits"][TARGET(tables["splits"])]
        examples = splits.drop_duplicates("split").set_index("split")["example_id"]
        for split, premise in (("test", PREMISE), ("train", change(PREMISE))):
            set_premise(tables, examples[split], lambda _, premise=premise: premise)  # type: ignore[misc]

    return damage


def name_nearly(tables: Tables) -> None:
    """An example that trains a disease has all words of its name, and another one between them."""
    splits, examples = tables["splits"][TARGET(tables["splits"])], tables["examples"]
    own = examples[(examples["kind"] == "positive") & (examples["cui"] == splits["target"].iloc[0])]
    positive = own.iloc[0]
    first, *rest = positive["full_hypothesis"][positive["start"] : positive["end"]].split()
    example = splits.loc[splits["split"] == "train", "example_id"].iloc[0]
    set_premise(tables, example, lambda text: f"{text} {first} muscular {' '.join(rest)}")


def remove_examples(split: str) -> Damage:
    """Remove the first target's examples of a split."""
    return remove("splits", lambda splits: TARGET(splits) & (splits["split"] == split))


def related(tables: Tables) -> None:
    """A negative is above the disease that the premise is about."""
    ancestors = tables["ancestors"].drop_duplicates("cui").set_index("cui")["ancestor"]
    negatives = tables["examples"].query("label == 0")
    original = negatives.loc[negatives["original_cui"].isin(ancestors.index), "original_cui"].iloc[
        0
    ]
    where = f"label == 0 and original_cui == '{original}'"
    edit("examples", where, cui=ancestors[original])(tables)


def change_all(label: int, column: str, change: Callable[[str], str]) -> Damage:
    """Change a text of all positives, or of all negatives."""

    def changed(examples: pd.DataFrame) -> "pd.Series[str]":
        return examples[column].where(examples["label"] != label, examples[column].map(change))

    return replace("examples", **{column: changed})


def synonyms_in_positives(tables: Tables) -> None:
    names, examples = tables["names"], tables["examples"]
    others = names[~names["preferred"]].drop_duplicates("cui").set_index("cui")["name"]
    is_positive = (examples["label"] == 1) & examples["cui"].isin(others.index)
    hypotheses = examples["hypothesis"].where(~is_positive, examples["cui"].map(others))
    tables["examples"] = examples.assign(hypothesis=hypotheses)


def without_positives(splits: pd.DataFrame) -> "pd.Series[bool]":
    is_positive = ~splits["example_id"].str.contains("-")  # negatives have their kind in their ids
    return TARGET(splits) & (splits["split"] == "train") & is_positive


def half_of_training(splits: pd.DataFrame) -> "pd.Series[bool]":
    """Every second example that trains the first target."""
    number = splits.groupby(["target", "split"]).cumcount()
    return TARGET(splits) & (splits["split"] == "train") & (number % 2 > 0)


def never_right(examples: pd.DataFrame) -> Any:
    """The positives of a disease that is wrong elsewhere."""
    return examples["original_cui"] == examples.loc[examples["label"] == 0, "cui"].iloc[0]


def similar_but_one(examples: pd.DataFrame) -> Any:
    """The similar negatives of the first pair, but for one."""
    similar = (examples["kind"] == "similar") & equal_first("pair_id")(examples)
    return similar & (examples.index != similar.idxmax())


def pairs_of_a_category(examples: pd.DataFrame) -> Any:
    return equal_first("category")(examples) & ~equal_first("pair_id")(examples)


def other_targets(splits: pd.DataFrame) -> Any:
    """What tests a target tests another one."""
    targets = splits["target"].unique()
    others = dict(zip(targets, targets[::-1], strict=True))
    return splits["target"].where(splits["split"] != "test", splits["target"].map(others))


def both_sides(tables: Tables) -> None:
    """Of a pair that trains, one example validates."""
    splits = tables["splits"]
    pairs = splits["example_id"].map(tables["examples"].set_index("example_id")["pair_id"])
    shared = pd.concat([splits[["target", "split"]], pairs], axis=1).duplicated(keep=False)
    first = splits.index[shared & (splits["split"] == "train")][0]
    tables["splits"] = splits.assign(
        split=splits["split"].where(splits.index != first, "validation")
    )


PREFERRED, ALONE = "hypotheses_to_be_preferred_names", "negatives_to_differ_in_the_disease_alone"
OF_PAIRS, NEAREST = "premises_to_be_of_their_pairs", "similar_negatives_to_be_nearest"
UNTRAINED, TRAINED = "tested_premises_to_be_untrained", "other_examples_to_be_trained"
TABLES: Final[Cases] = {
    "a premise that tests also trains": stops(copy_premise(str), UNTRAINED),
    "a premise that tests also trains, without its full stop": stops(
        copy_premise(lambda premise: premise.rstrip(" .")), UNTRAINED
    ),
    "a premise that tests also trains, with one more word": warns(
        copy_premise(lambda premise: f"today {premise}"), "tested_premises_to_have_no_near_copies"
    ),
    "a premise that trains and nearly names the disease": warns(
        name_nearly, "no_disease_nearly_named"
    ),
    "an example that tests also trains": stops(
        add("splits", where="split == 'test'", split="train"),
        *("compound_columns_to_be_unique", "no_disease_leakage", UNTRAINED),
    ),
    "an example moved from test to train": stops(
        edit("splits", "split == 'test'", split="train"),
        *("examples_to_be_tested", "no_disease_leakage"),
    ),
    "a pair on both sides": stops(both_sides, "pairs_to_be_on_one_side"),
    "a target that tests another one": stops(
        replace("splits", target=other_targets), "test_examples_to_be_of_the_target"
    ),
    "a positive with the label 0": stops(
        edit("examples", "kind == 'positive'", label=0), "labels_to_follow_kinds"
    ),
    "a negative that is related to the original": stops(
        related,
        *("cuis_to_be_known", "names_to_be_of_their_cuis"),
        *("negatives_to_be_of_other_positives", "negatives_to_be_unrelated"),
    ),
    "a negative that is the original": stops(
        edit("examples", "label == 0", cui=lambda row: row["original_cui"]),
        "negatives_to_be_unrelated",
    ),
    "negatives of a disease without positives": stops(
        remove("examples", never_right), "negatives_to_be_of_other_positives"
    ),
    "a positive without its similar negatives": stops(
        remove("examples", similar_but_one), "positives_to_have_negatives"
    ),
    "a category of one pair": stops(remove("examples", pairs_of_a_category), "positives_to_number"),
    "no ancestors at all": stops(
        remove("ancestors", lambda ancestors: ancestors["cui"].notna()),
        *(NEAREST, "table_row_count_to_be_between"),
    ),
    "no ancestors of every second disease": stops(
        remove(
            "ancestors",
            lambda ancestors: ancestors["cui"].isin(sorted(ancestors["cui"].unique())[1::2]),
        ),
        NEAREST,
    ),
    "a target without examples that train it": stops(
        remove_examples("train"), TRAINED, "targets_to_be_trained"
    ),
    "a target without examples that test it": stops(
        remove_examples("test"), "examples_to_be_tested"
    ),
    "a disease without splits": stops(remove("splits", TARGET), "diseases_to_be_targets"),
    "hypotheses of negatives have one more word": stops(
        change_all(0, "full_hypothesis", lambda words: words.replace("patient", "poor patient")),
        ALONE,
    ),
    "the ids of two diseases exchanged": stops(
        exchange("examples", "cui"), "names_to_be_of_their_cuis", "texts_to_name_their_diseases"
    ),
    "a blank premise": stops(
        edit("examples", premise=" "), "column_values_to_match_regex", OF_PAIRS
    ),
    "diseases of positives in capitals": stops(change_all(1, "hypothesis", str.upper), PREFERRED),
    "diseases of positives are synonyms": stops(synonyms_in_positives, PREFERRED),
    "premises of negatives end in one more full stop": stops(
        change_all(0, "premise", lambda premise: f"{premise} ."), OF_PAIRS
    ),
    "similar and random negatives exchanged": stops(
        exchange("examples", "kind", "similar", "random"), NEAREST
    ),
    "a target whose training set has no positives": stops(
        remove("splits", without_positives), "targets_to_be_trained"
    ),
    "half of the examples that train are missing": stops(
        remove("splits", half_of_training), TRAINED
    ),
    "prompts without their premises": stops(
        replace(
            "queries",
            prompt=lambda queries: [
                prompt.removeprefix(premise).strip()
                for prompt, premise in zip(queries["prompt"], queries["subject"], strict=True)
            ],
        ),
        "prompts_to_be_of_examples",
    ),
}
RELEASED: Final[Cases] = {
    "an example twice": stops(add("examples", example_id="again"), "examples_to_differ")
}


def equal_vectors(content: str) -> str:
    head, *lines = content.splitlines()
    vector = lines[0].split(",", 1)[1]
    return "\n".join([head, *(f"{line.split(',', 1)[0]},{vector}" for line in lines), ""])


def without_vectors(step: int) -> Callable[[str], str]:
    """Take every so many vectors away."""
    return lambda content: "".join(
        line for n, line in enumerate(content.splitlines(True)) if not n or n % step
    )


def with_a_count(content: str) -> str:
    lines = enumerate(content.splitlines())
    return "\n".join(f"{line},{n * 1000 if n else 'count'}" for n, line in lines)


LABELS: Final = {"entailment": "neutral", "neutral": "entailment"}
FILES: Final[Cases] = {
    "premise and hypothesis exchanged": refused(
        rows(PAIRS, swap("sentence1", "sentence2")), "annotation.csv"
    ),
    "ids of the annotation shifted by one row": stops(
        table("diskne/annotation.csv", shifted("cui")), "texts_to_name_their_diseases"
    ),
    "vectors of two thirds of the concepts": warns(
        text(VECTORS, without_vectors(3)), "rows_to_be_few"
    ),
    "vectors that are all equal": stops(text(VECTORS, equal_vectors), NEAREST),
    "labels exchanged in one split of MedNLI": refused(
        rows(
            "mednli/mli_train_v1.jsonl",
            put(gold_label=lambda row: LABELS.get(row["gold_label"], row["gold_label"])),
        ),
        "annotation.csv",
    ),
    "a split of MedNLI copied over another": refused(
        copy("mednli/mli_dev_v1.jsonl", "mednli/mli_test_v1.jsonl"), "mednli"
    ),
    "a column that is no dimension among the vectors": refused(
        text(VECTORS, with_a_count), "cui2vec_pretrained.csv"
    ),
}
ODD: Final[dict[str, Damage]] = {
    "vectors of nine tenths of the concepts": text(VECTORS, without_vectors(10)),
    "pairs without a decision, label `-`": table(
        PAIRS,
        with_more(1, pairID=lambda row, n: f"new{n}-{row['pairID']}", gold_label=lambda *_: "-"),
    ),
}
