"""Broken tables of DisKnE: names of a disease in what trains it, premises on both sides, labels."""

from collections.abc import Callable
from typing import Final

import pandas as pd

from bench.broken import Cases, Damage, Tables, add, edit, equal_first, exchange, remove, replace

Hide = Callable[[str], str]
PREMISE: Final = "He was seen at home twice this week and could walk a few steps ."
NAME: Final = r"[A-Z]\w+ dystrophy"
ABBREVIATION: Final = "[A-Z]+"
ONE_WORD: Final = "[a-z]+"


def leak(hide: Hide, pattern: str = NAME, column: str = "premise") -> Damage:
    """Name a target in a text that trains it, in a hidden form.

    Args:
        hide: Makes the form of a name.
        pattern: Of the names that are hidden.
        column: Of the text.
    """

    def damage(tables: Tables) -> None:
        splits, names = tables["splits"], tables["names"]
        names = names[names["cui"].isin(splits["target"]) & names["name"].str.fullmatch(pattern)]
        cui, name = names[["cui", "name"]].iloc[0]
        train = splits[(splits["target"] == cui) & (splits["split"] == "train")]["example_id"]
        longer = {column: lambda row: f"{row[column]} There was {hide(name)} too ."}
        edit("examples", f"example_id == '{train.iloc[0]}'", **longer)(tables)

    return damage


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
    'as "… of the type …"': lambda name: " of the type ".join(reversed(name.split())),
    "with a word between": lambda name: name.replace(" ", " chronic "),
    "as an adjective": lambda name: f"{name[:-1]}ic",
    "with a typing error": lambda name: name[:2] + name[3] + name[2] + name[4:],
    "run together": lambda name: name.replace(" ", ""),
    "letter by letter": lambda name: " ".join("".join(name.split())),
    "with a letter of another alphabet": lambda name: name.replace("e", "\u0435").replace(
        "o", "\u043e"
    ),
    "with an entity of HTML": lambda name: name.replace(" ", "&nbsp;"),
    "with a numbered entity within a word": lambda name: f"{name[:2]}&#{ord(name[2])};{name[3:]}",
    "broken by a hyphen at the end of a line": lambda name: f"{name[:-4]}-\n{name[-4:]}",
    "in capitals, with slashes": lambda name: name.upper().replace(" ", "/"),
    'as "… , severe , of the … type"': lambda name: (
        f"{name.split()[1]} , severe , of the {name.split()[0]} type"
    ),
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
            edit("examples", f"example_id == '{examples[split]}'", premise=premise)(tables)

    return damage


LEAK: Final = "a text that trains a disease has it"
DISKNE: Final[Cases] = {
    **{f"{LEAK}, named {form}": leak(hide) for form, hide in NAMED.items()},
    **{
        f"{LEAK}, by its abbreviation {form}": leak(hide, ABBREVIATION)
        for form, hide in ABBREVIATED.items()
    },
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
}
