"""Broken tables of DisKnE: names of a disease in what trains it, premises on both sides, labels."""

from collections.abc import Callable
from functools import partial
from typing import Final

from bench.broken import CASES, Tables, append, case, change

PREMISE: Final = "He was seen at home twice this week and could walk a few steps ."


def leak(hide: Callable[[str], str], pattern: str, column: str, tables: Tables) -> None:
    """Name a target in a text that trains it, in a hidden form.

    Args:
        hide: Makes the form of a name.
        pattern: Of the names that are hidden.
        column: Of the text.
        tables: Where it is changed.
    """
    splits, names = tables["splits"], tables["names"]
    fitting = names[names["cui"].isin(splits["target"]) & names["name"].str.fullmatch(pattern)]
    cui, name = fitting[["cui", "name"]].iloc[0]
    row = splits[(splits["target"] == cui) & (splits["split"] == "train")].iloc[0]
    index = tables["examples"].index[tables["examples"]["example_id"] == row["example_id"]][0]
    text = f"{tables['examples'].loc[index, column]} There was {hide(name)} too ."
    change(tables, "examples", index, **{column: text})


NAMED: Final[dict[str, Callable[[str], str]]] = {
    "in full width": lambda name: "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in name),
    "with invisible characters": lambda name: (
        name[:3] + "\u200b" + name[3:-3] + "\u00ad" + name[-3:]
    ),
    "with hyphens between its words": lambda name: name.replace(" ", "-"),
    "with its words in reverse": lambda name: " ".join(reversed(name.split())),
    "with accents": lambda name: name.replace("a", "a\u0301").replace("u", "\u00fc"),
    "over two lines": lambda name: name.replace(" ", "\n\t"),
    "as a genitive": lambda name: name.replace(" ", "'s "),
    "in the plural": lambda name: name[:-1] + "ies" if name.endswith("y") else f"{name}s",
    "with a hyphen within a word": lambda name: name[:-4] + "-" + name[-4:],
    "with a hyphen and a blank within a word": lambda name: name[:-4] + "- " + name[-4:],
    'as "… of the type …"': lambda name: " of the type ".join(reversed(name.split())),
    "with a word between": lambda name: name.replace(" ", " chronic "),
    "as an adjective": lambda name: name.rstrip("y") + "ic",
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
ABBREVIATED: Final[dict[str, Callable[[str], str]]] = {
    "as it is": str,
    "in the plural": lambda name: f"{name}s",
    "with full stops": lambda name: ".".join(name) + ".",
    "letter by letter": " ".join,
    "letter by letter, not in capitals": lambda name: " ".join(name.lower()),
    "with hyphens": "-".join,
}
LEAKS: Final = [
    *((f"named {form}", hide, r"[A-Z]\w+ [a-z]+", "premise") for form, hide in NAMED.items()),
    *(
        (f"by its abbreviation {form}", hide, "[A-Z]+", "premise")
        for form, hide in ABBREVIATED.items()
    ),
    ("by a synonym", str, r"[a-z]+", "premise"),
    ("in the full hypothesis alone", str, r"[A-Z]\w+ [a-z]+", "full_hypothesis"),
]
CASES["diskne"] += [
    (f"a text that trains a disease has it, {form}", partial(leak, hide, pattern, column))
    for form, hide, pattern, column in LEAKS
]


def premise_copied(edit: Callable[[str], str], tables: Tables) -> None:
    """Give an example that trains a disease the edited premise of one that tests it."""
    splits, examples = tables["splits"], tables["examples"]
    target = splits["target"].iloc[0]
    of = splits[splits["target"] == target]
    tests = of.loc[of["split"] == "test", "example_id"]
    train = of.loc[of["split"] == "train", "example_id"].iloc[0]
    for example, premise in ((tests.iloc[0], PREMISE), (train, edit(PREMISE))):
        index = examples.index[examples["example_id"] == example][0]
        change(tables, "examples", index, premise=premise)


PREMISES: Final[dict[str, Callable[[str], str]]] = {
    "as it is": str,
    "in capitals, with more blanks": lambda text: "  ".join(text.upper().split()),
    "without its full stop": lambda text: text.rstrip(" ."),
    "with one more word": lambda text: f"today {text}",
    "with another number, and without three words": lambda text: text.replace(
        "twice", "thrice"
    ).replace(" a few steps", ""),
}
CASES["diskne"] += [
    (f"a premise that tests also trains, {form}", partial(premise_copied, edit))
    for form, edit in PREMISES.items()
]


@case("diskne", "an example that tests also trains")
def test_moved(tables: Tables) -> None:
    row = tables["splits"].query("split == 'test'").head(1)
    append(tables, "splits", row.assign(split="train"))


@case("diskne", "an example moved from test to train")
def moved(tables: Tables) -> None:
    index = tables["splits"].index[tables["splits"]["split"] == "test"][0]
    change(tables, "splits", index, split="train")


@case("diskne", "a positive with the label 0")
def positive_as_zero(tables: Tables) -> None:
    index = tables["examples"].index[tables["examples"]["kind"] == "positive"][0]
    change(tables, "examples", index, label=0)


@case("diskne", "a negative that is related to the original")
def related(tables: Tables) -> None:
    ancestors = tables["ancestors"].set_index("cui")["ancestor"]
    examples = tables["examples"]
    fitting = examples[(examples["label"] == 0) & examples["original_cui"].isin(ancestors.index)]
    original = fitting["original_cui"].iloc[0]
    ancestor = ancestors.loc[[original]].iloc[0]
    change(tables, "examples", fitting.index[0], cui=ancestor)


@case("diskne", "no ancestors at all")
def no_ancestors(tables: Tables) -> None:
    tables["ancestors"] = tables["ancestors"].head(0)


@case("diskne", "a target without examples that train it")
def no_train(tables: Tables) -> None:
    splits = tables["splits"]
    gone = (splits["target"] == splits["target"].iloc[0]) & (splits["split"] == "train")
    tables["splits"] = splits[~gone].reset_index(drop=True)


@case("diskne", "a target without examples that test it")
def no_test(tables: Tables) -> None:
    splits = tables["splits"]
    gone = (splits["target"] == splits["target"].iloc[0]) & (splits["split"] == "test")
    tables["splits"] = splits[~gone].reset_index(drop=True)


@case("diskne", "a disease without splits")
def no_splits(tables: Tables) -> None:
    splits = tables["splits"]
    gone = splits["target"] == splits["target"].iloc[0]
    tables["splits"] = splits[~gone].reset_index(drop=True)


@case("diskne", "no ancestors of every second disease")
def half_of_ancestors(tables: Tables) -> None:
    ancestors = tables["ancestors"]
    kept = sorted(ancestors["cui"].unique())[::2]
    tables["ancestors"] = ancestors[ancestors["cui"].isin(kept)].reset_index(drop=True)


@case("diskne", "hypotheses of negatives have one more word")
def word_of_negatives(tables: Tables) -> None:
    examples = tables["examples"]
    rows = examples["label"] == 0
    hypotheses = examples["full_hypothesis"]
    longer = hypotheses.str.replace("patient", "poor patient")
    examples["full_hypothesis"] = hypotheses.where(~rows, longer)


@case("diskne", "the ids of two diseases exchanged")
def diseases_exchanged(tables: Tables) -> None:
    first, second = tables["examples"]["cui"].unique()[:2]
    exchanged = tables["examples"]["cui"].replace({first: second, second: first})
    tables["examples"]["cui"] = exchanged


@case("diskne", "a blank premise")
def blank_premise(tables: Tables) -> None:
    change(tables, "examples", 0, premise=" ")
