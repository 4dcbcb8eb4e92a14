"""Broken tables of DisKnE: names of a disease in what trains it, premises on both sides, labels."""

from collections.abc import Callable
from typing import Final

import pandas as pd

from bench.broken import Cases, Damage, Tables, add, edit, equal_first, exchange, remove, replace

Hide = Callable[[str], str]
PREMISE: Final = "He was seen at home twice this week and could walk a few steps ."
NAME: Final = r"[A-Z]\w+ dystrophy"
ABBREVIATION: Final = "[A-Z]{3,}"
ONE_WORD: Final = "[a-z]+"
SYNONYMS: Final = (
    "CD",
    "uremia",
    "chronic hepatitis C",
)  # of the first target, in the gate's UMLS


def leak(hide: Hide, pattern: str = NAME, column: str = "premise") -> Damage:
    """Name a target in a text that trains it, in a hidden form.

    Args:
        hide: Makes the form of a name.
        pattern: Of the names that are hidden, or one of `SYNONYMS`.
        column: Of the text.
    """

    def damage(tables: Tables) -> None:
        splits, names = tables["splits"], tables["names"]
        cui, name = splits["target"].iloc[0], pattern
        if pattern not in SYNONYMS:
            is_target = names["cui"].isin(splits["target"])
            hidden = names[is_target & names["name"].str.fullmatch(pattern)]
            cui, name = hidden[["cui", "name"]].iloc[0]
        train = splits[(splits["target"] == cui) & (splits["split"] == "train")]["example_id"]
        text = f"There was {hide(name)} too ."
        if column == "premise":
            set_premise(tables, train.iloc[0], lambda premise: f"{premise} {text}")
        else:
            longer = {column: lambda row: f"{row[column]} {text}"}
            edit("examples", f"example_id == '{train.iloc[0]}'", **longer)(tables)

    return damage


def set_premise(tables: Tables, example: str, change: Hide) -> None:
    """Change the premise of an example's pair, as its source would: in all examples and prompts."""
    examples, queries = tables["examples"], tables["queries"]
    pair = examples.loc[examples["example_id"] == example, "pair_id"].iloc[0]
    rows = examples["pair_id"] == pair
    premise = examples.loc[rows, "premise"].iloc[0]
    is_of = queries["subject_id"] == pair
    prompts = queries.loc[is_of, "prompt"].str.removeprefix(premise)
    queries.loc[is_of, "prompt"] = change(premise) + prompts
    queries.loc[is_of, "subject"] = examples.loc[rows, "premise"] = change(premise)


NAMED: Final[dict[str, Hide]] = {
    "in full width": lambda name: "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in name),
    "with invisible characters": lambda name: (
        name[:3] + "\u200b" + name[3:-3] + "\u00ad" + name[-3:]
    ),
    "with hyphens between its words": lambda name: name.replace(" ", "-"),
    "with its words in reverse": lambda name: " ".join(reversed(name.split())),
    "with accents": lambda name: name.replace("a", "a\u0301").replace("u", "\u00fc"),
    "with a ligature": lambda name: name.replace("st", "\ufb06"),
    "over two lines": lambda name: name.replace(" ", "\n\t"),
    "as a genitive": lambda name: name.replace(" ", "'s "),
    "in the plural": lambda name: f"{name[:-1]}ies",
    "with a hyphen within a word": lambda name: name[:-4] + "-" + name[-4:],
    "with a hyphen and a blank within a word": lambda name: name[:-4] + "- " + name[-4:],
    "as an adjective": lambda name: f"{name[:-1]}ic",
    "run together": lambda name: name.replace(" ", ""),
    "letter by letter": lambda name: " ".join("".join(name.split())),
    "with an entity of HTML": lambda name: name.replace(" ", "&nbsp;"),
    "with a numbered entity within a word": lambda name: f"{name[:2]}&#{ord(name[2])};{name[3:]}",
    "broken by a hyphen at the end of a line": lambda name: f"{name[:-4]}-\n{name[-4:]}",
    "in capitals, with slashes": lambda name: name.upper().replace(" ", "/"),
    "with a word between": lambda name: name.replace(" ", " chronic "),
    "with two letters exchanged": lambda name: name[:-4] + name[-3] + name[-4] + name[-2:],
    "in a list of two": lambda name: name.replace(" ", " and borpal ")[:-1] + "ies",
    "in a list with a slash": lambda name: name.replace(" ", "/borpal "),
    "in a list of three": lambda name: name.replace(" ", ", borpal, or tumal "),
    'in a list after "of"': lambda name: (
        f"{name.split()[1]} of the borpal and {name.split()[0]} kind"
    ),
    "in a list after another list": lambda name: "acute and chronic " + name.replace(" ", " or b "),
    "with a tag between its words": lambda name: name.replace(" ", "<br/>"),
    "with tags within a word": lambda name: f"{name[:2]}<b>{name[2:4]}</b>{name[4:]}",
    "with a mask between its words": lambda name: name.replace(" ", " [**Name (NI) **] "),
    "with a mask within a word": lambda name: f"{name[:3]}___{name[3:]}",
    "with an escape of a URL": lambda name: name.replace(" ", "%20"),
    "with an escape of a mail": lambda name: name.replace(" ", "=20"),
    "with marks of direction": lambda name: f"\u200e{name[:3]}\u2069{name[3:]}\u200f",
    "by its first word alone": lambda name: name.split()[0],
}
SYNONYMOUS: Final[dict[str, tuple[str, Hide]]] = {
    "two letters with full stops": ("CD", lambda name: ".".join(name) + "."),
    "two letters with full stops and a blank": ("CD", lambda name: ". ".join(name) + "."),
    "British spelling": ("uremia", lambda name: name.replace("e", "ae", 1)),
    "the adjective of a name of one word": ("uremia", lambda name: f"{name[:-2]}ic"),
    "a list of letters": ("chronic hepatitis C", lambda name: name.replace("C", "B and C")),
    "an initialism that UMLS lacks": ("chronic hepatitis C", lambda _: "CHC"),
}
ABBREVIATED: Final[dict[str, Hide]] = {
    "as it is": str,
    "in the plural": lambda name: f"{name}s",
    "with full stops": lambda name: ".".join(name) + ".",
    "letter by letter": " ".join,
    "letter by letter, not in capitals": lambda name: " ".join(name.lower()),
    "with hyphens": "-".join,
}
PREMISES: Final[dict[str, Hide]] = {
    "as it is": str,
    "in capitals": str.upper,
    "with more blanks": lambda text: text.replace(" ", "  "),
    "without its full stop": lambda text: text.rstrip(" ."),
    "with one more word": lambda text: f"today {text}",
    "with another number, and without three words": lambda text: text.replace(
        "twice", "thrice"
    ).replace(" a few steps", ""),
}
TARGET: Final = equal_first("target")


def remove_examples(split: str) -> Damage:
    """Remove the first target's examples of a split."""
    return remove("splits", lambda rows: TARGET(rows) & (rows["split"] == split))


def related(tables: Tables) -> None:
    ancestors = tables["ancestors"].drop_duplicates("cui").set_index("cui")["ancestor"]
    rows = tables["examples"].query("label == 0")
    original = rows.loc[rows["original_cui"].isin(ancestors.index), "original_cui"].iloc[0]
    where = f"label == 0 and original_cui == '{original}'"
    edit("examples", where, cui=ancestors[original])(tables)


def one_more_word(rows: pd.DataFrame) -> "pd.Series[str]":
    longer = rows["full_hypothesis"].str.replace("patient", "poor patient")
    return rows["full_hypothesis"].where(rows["label"] == 1, longer)


def copy_premise(change: Hide) -> Damage:
    """Give an example that trains a disease the changed premise of one that tests it."""

    def damage(tables: Tables) -> None:
        splits = tables["splits"][TARGET(tables["splits"])]
        examples = splits.drop_duplicates("split").set_index("split")["example_id"]
        for split, premise in (("test", PREMISE), ("train", change(PREMISE))):
            set_premise(tables, examples[split], lambda _, premise=premise: premise)  # type: ignore[misc]

    return damage


def change_kind(label: int, column: str, change: Hide) -> Damage:
    """Change a text of all positives, or of all negatives."""

    def changed(rows: pd.DataFrame) -> "pd.Series[str]":
        return rows[column].where(rows["label"] != label, rows[column].map(change))

    return replace("examples", **{column: changed})


def synonyms_in_positives(tables: Tables) -> None:
    names = tables["names"]
    others = names[~names["preferred"]].drop_duplicates("cui").set_index("cui")["name"]
    examples = tables["examples"]
    is_positive = (examples["label"] == 1) & examples["cui"].isin(others.index)
    other_names = examples["cui"].map(others)
    tables["examples"] = examples.assign(
        hypothesis=examples["hypothesis"].where(~is_positive, other_names)
    )


def without_positives(rows: pd.DataFrame) -> "pd.Series[bool]":
    is_positive = ~rows["example_id"].str.contains("-")  # negatives have their kind in their ids
    return TARGET(rows) & (rows["split"] == "train") & is_positive


def nineteen_of_twenty(rows: pd.DataFrame) -> "pd.Series[bool]":
    return (rows["split"] == "train") & (rows.groupby(["target", "split"]).cumcount() % 20 > 0)


LEAK: Final = "a text that trains a disease has it"
DISKNE: Final[Cases] = {
    **{f"{LEAK}, named {form}": leak(hide) for form, hide in NAMED.items()},
    **{
        f"{LEAK}, by its abbreviation {form}": leak(hide, ABBREVIATION)
        for form, hide in ABBREVIATED.items()
    },
    **{f"{LEAK}, by {form}": leak(hide, synonym) for form, (synonym, hide) in SYNONYMOUS.items()},
    f"{LEAK}, by its CUI": lambda tables: set_premise(
        tables,
        tables["splits"][TARGET(tables["splits"])].query("split == 'train'")["example_id"].iloc[0],
        lambda text: f"{text} {tables['splits']['target'].iloc[0]}",
    ),
    f"{LEAK}, by a synonym": leak(str, ONE_WORD),
    f"{LEAK}, in the full hypothesis alone": leak(str, column="full_hypothesis"),
    **{
        f"a premise that tests also trains, {form}": copy_premise(change)
        for form, change in PREMISES.items()
    },
    "an example that tests also trains": add("splits", where="split == 'test'", split="train"),
    "an example moved from test to train": edit("splits", "split == 'test'", split="train"),
    "a positive with the label 0": edit("examples", "kind == 'positive'", label=0),
    "a negative that is related to the original": related,
    "no ancestors at all": remove("ancestors", lambda rows: rows["cui"].notna()),
    "a target without examples that train it": remove_examples("train"),
    "a target without examples that test it": remove_examples("test"),
    "a disease without splits": remove("splits", TARGET),
    "no ancestors of every second disease": remove(
        "ancestors", lambda rows: rows["cui"].isin(sorted(rows["cui"].unique())[1::2])
    ),
    "hypotheses of negatives have one more word": replace(
        "examples", full_hypothesis=one_more_word
    ),
    "the ids of two diseases exchanged": exchange("examples", "cui"),
    "a blank premise": edit("examples", premise=" "),
    "hypotheses of positives in capitals": change_kind(1, "hypothesis", str.upper),
    "hypotheses of positives are synonyms": synonyms_in_positives,
    "premises of negatives end in one more full stop": change_kind(
        0, "premise", lambda text: f"{text} ."
    ),
    "premises of negatives have two blanks": change_kind(
        0, "premise", lambda text: text.replace(" ", "  ", 1)
    ),
    "similar and random negatives exchanged": exchange("examples", "kind", "similar", "random"),
    "a target whose training set has no positives": remove("splits", without_positives),
    "nineteen of twenty examples that train are missing": remove("splits", nineteen_of_twenty),
    "prompts without their premises": replace(
        "queries",
        prompt=lambda rows: [
            prompt.removeprefix(premise).strip()
            for prompt, premise in zip(rows["prompt"], rows["subject"], strict=True)
        ],
    ),
}
