"""DisKnE's expectations: no leak, and negatives that are negatives.

Source: Alghanmi et al. 2021, sections 3.2 to 3.4. The checks read the benchmark's other tables
(names, ancestors, examples), not what its builder remembers.
"""

from collections.abc import Iterator

import pandas as pd

from medprobe.quality.checks import reasons, row_check, tables, value_check
from medprobe.sources.mentions import Mentions


@value_check
def expect_cuis_to_be_known(cuis: pd.Series) -> pd.Series:
    """Each concept has a name in the table `names`."""
    return cuis.isin(set(tables.get()["names"]["cui"]))


@row_check
def expect_names_to_be_of_their_cuis(rows: pd.DataFrame) -> pd.Series:
    """The first column's text is one of the names of the second column's concept."""
    names = tables.get()["names"]
    known = set(zip(names["name"], names["cui"], strict=True))
    name, cui = rows.columns
    return pd.Series([pair in known for pair in _pairs(rows, name, cui)], index=rows.index)


@row_check
def expect_negatives_to_be_unrelated(rows: pd.DataFrame) -> pd.Series:
    """Columns `label, original_cui, cui`: a negative's disease is not the original one, and neither
    an ancestor nor a descendant of it."""
    above = tables.get()["ancestors"]
    related = set(_pairs(above, "cui", "ancestor")) | set(_pairs(above, "ancestor", "cui"))
    label, original, cui = rows.columns
    bad = [x == y or (x, y) in related for x, y in _pairs(rows, original, cui)]
    return (rows[label] == 1) | ~pd.Series(bad, index=rows.index)


@row_check
def expect_negatives_to_be_of_other_positives(rows: pd.DataFrame) -> pd.Series:
    """Columns `label, cui`: a negative's disease is the disease of a positive."""
    examples = tables.get()["examples"]
    label, cui = rows.columns
    return (rows[label] == 1) | rows[cui].isin(set(examples.loc[examples["label"] == 1, "cui"]))


@row_check
def expect_positives_to_have_negatives(rows: pd.DataFrame, kind: str, n: int) -> pd.Series:
    """Columns `pair_id, category, original_cui, kind, cui`: each positive has exactly `n` distinct
    negatives of this kind. Positives that have not are the rows that fail."""
    *key, kinds, cui = rows.columns
    negatives = rows[rows[kinds] == kind]
    sizes = negatives.groupby(key)[cui].agg(["size", "nunique"])
    exact = sizes[(sizes["size"] == n) & (sizes["nunique"] == n)].index
    positives = pd.MultiIndex.from_frame(rows[key])
    return (rows[kinds] != "positive") | pd.Series(positives.isin(exact), index=rows.index)


@row_check
def expect_positives_to_number(
    rows: pd.DataFrame, category: str, min_value: int, max_value: int
) -> pd.Series:
    """Columns `category, label`: so many positives are in this category, both ends included. All
    of its rows fail where they are fewer or more, all rows at all where it has none."""
    column, label = rows.columns
    inside = rows[column] == category
    right = min_value <= int((inside & (rows[label] == 1)).sum()) <= max_value
    return (~inside & inside.any()) | right


@row_check
def expect_no_disease_leakage(rows: pd.DataFrame) -> pd.Series:
    """Columns `target, split, example_id`: what trains or validates mentions the target disease
    nowhere: it is not its disease, not the one that was replaced, and none of its names stands in
    the premise or the hypothesis. Where it leaked, and the name, are given as the reason."""
    known = _mentioned()
    fine = []
    for target, split, example in zip(*(rows[column] for column in rows.columns), strict=True):
        leak = split != "test" and known.get((example, target))
        if leak:
            reasons.get()[f"{target} {split} {example}"] = leak
        fine.append(not leak)
    return pd.Series(fine, index=rows.index)


@row_check
def expect_test_examples_to_be_of_the_target(rows: pd.DataFrame) -> pd.Series:
    """Columns `target, split, example_id`: what tests is of the target, or replaces it."""
    target, split, example = rows.columns
    examples = tables.get()["examples"].set_index("example_id")["original_cui"]
    return (rows[split] != "test") | (rows[example].map(examples) == rows[target])


@row_check
def expect_pairs_to_be_on_one_side(rows: pd.DataFrame) -> pd.Series:
    """Columns `target, split, example_id`: no pair's examples both train and validate."""
    target, split, example = rows.columns
    pairs = rows[example].map(tables.get()["examples"].set_index("example_id")["pair_id"])
    sides = rows[split].where(rows[split] != "test").groupby([rows[target], pairs])
    return (rows[split] == "test") | (sides.transform("nunique") == 1)


def _mentioned() -> dict[tuple[str, str], tuple[str, str]]:
    """`(example, disease)` → where the example mentions the disease and by which text, for all
    diseases that have splits."""
    names, examples = tables.get()["names"], tables.get()["examples"]
    targets = set(tables.get()["splits"]["target"])
    names = names[names["cui"].isin(targets)]
    finder = Mentions(_pairs(names, "name", "cui"))
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for column in ("hypothesis", "full_hypothesis", "premise"):
        texts = {text: _named(finder, text) for text in examples[column].unique()}
        for row in examples[["example_id", "pair_id", column]].itertuples(index=False):
            for cui, name in texts[row[2]].items():
                found[row[0], cui] = f"pair {row[1]}, in its {column}", repr(name)
    for column in ("original_cui", "cui"):
        for example, pair, cui in examples[["example_id", "pair_id", column]].itertuples(
            index=False
        ):
            found[example, cui] = f"pair {pair}, {cui} is its {column}", ""
    return found


def _named(finder: Mentions, text: str) -> dict[str, str]:
    """The diseases named in a text, and how they are written there."""
    mentions = finder.every(text)
    return {cui: text[m.start : m.end] for m in mentions for cui in m.ids}


def _pairs(table: pd.DataFrame, first: str, second: str) -> Iterator[tuple[str, str]]:
    return zip(table[first], table[second], strict=True)
