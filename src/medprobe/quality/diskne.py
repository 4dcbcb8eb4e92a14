"""DisKnE's expectations: no leak, negatives that are negatives, and test sets that are whole.

Source: Alghanmi et al. 2021, sections 3.2 to 3.4. What is a leak is told by `leaks`, from UMLS's
own file and from the texts, not from what the builder remembers of them.
"""

from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from medprobe.core import places
from medprobe.quality import leaks
from medprobe.quality.checks import reasons, row_check, tables, value_check

MRCONSO = places.DATA / "umls/MRCONSO.RRF"
TEXTS = ("hypothesis", "full_hypothesis", "premise")


@value_check
def expect_cuis_to_be_known(cuis: pd.Series) -> pd.Series:
    """Each concept has a name in the table `names`."""
    return cuis.isin(set(tables.get()["names"]["cui"]))


@row_check
def expect_names_to_be_of_their_cuis(rows: pd.DataFrame) -> pd.Series:
    """The first column's text is one of the names of the second column's concept, in any case."""
    names = tables.get()["names"]
    known = set(zip(names["name"].str.lower(), names["cui"], strict=True))
    name, cui = rows.columns
    found = [(text.lower(), of) in known for text, of in _pairs(rows, name, cui)]
    return pd.Series(found, index=rows.index)


@row_check
def expect_labels_to_follow_kinds(rows: pd.DataFrame) -> pd.Series:
    """Columns `label, kind, original_cui, cui`: a positive has label 1 and its own disease, what
    has label 1 is a positive."""
    label, kind, original, cui = (rows[column] for column in rows.columns)
    positive = kind == "positive"
    return (positive == (label == 1)) & (~positive | (original == cui))


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
def expect_positives_to_have_negatives(
    rows: pd.DataFrame, kind: str, min_value: int, max_value: int, without_negatives: str
) -> pd.Series:
    """Columns `pair_id, category, original_cui, kind, cui`: each positive has so many distinct
    negatives of this kind, both ends included. Positives that have not are the rows that fail. With
    `without_negatives` "drop" none of a category need have any, since a file may not be there; with
    "keep" no positive need; else all must."""
    *key, kinds, cui = rows.columns
    negatives = rows[rows[kinds] == kind]
    sizes = negatives.groupby(key)[cui].nunique()
    positives = pd.MultiIndex.from_frame(rows[key])
    right = positives.isin(sizes[sizes.between(min_value, max_value)].index)
    if without_negatives == "drop":
        right |= ~rows[key[1]].isin(negatives[key[1]])
    if without_negatives == "keep":
        right |= ~positives.isin(sizes.index)
    return (rows[kinds] != "positive") | pd.Series(right, index=rows.index)


@row_check
def expect_positives_to_number(
    rows: pd.DataFrame, category: str, min_value: int, max_value: int, categories: Sequence[str]
) -> pd.Series:
    """Columns `category, kind`: so many positives are in this category, both ends included, if it
    is one of those that were asked for. All of its rows fail where they are fewer or more, all rows
    at all where it has none."""
    column, kind = rows.columns
    inside = rows[column] == category
    right = min_value <= int((inside & (rows[kind] == "positive")).sum()) <= max_value
    return (~inside & inside.any()) | right | (category not in categories)


@row_check
def expect_diseases_to_be_targets(
    rows: pd.DataFrame, positives: int, targets: Sequence[str] | None
) -> pd.Series:
    """Columns `category, kind, cui, premise, hypothesis`: each disease with enough positives in a
    category, rows alike counted once, has splits, if it is one of those that were asked for."""
    category, kind, cui, *_ = rows.columns
    right = rows[rows[kind] == "positive"].drop_duplicates()
    sizes = right.groupby([cui, category]).size()
    wanted = set(sizes[sizes >= positives].index.get_level_values(cui))
    missing = wanted.intersection(targets or wanted) - set(tables.get()["splits"]["target"])
    return (rows[kind] != "positive") | ~rows[cui].isin(missing)


@row_check
def expect_examples_to_be_tested(rows: pd.DataFrame) -> pd.Series:
    """Columns `example_id, original_cui, category, premise, hypothesis`: each example of a disease
    that has splits, or one like it, is in the disease's test set."""
    example, original, *alike = rows.columns
    splits = tables.get()["splits"]
    tested = set(_pairs(splits[splits["split"] == "test"], "example_id", "target"))
    there = pd.Series([pair in tested for pair in _pairs(rows, example, original)], rows.index)
    like = there.groupby([rows[column] for column in (original, *alike)]).transform("any")
    return like | ~rows[original].isin(splits["target"].unique())


@row_check
def expect_no_disease_leakage(rows: pd.DataFrame, match: str) -> pd.Series:
    """Columns `target, split, example_id`: what trains or validates mentions the target disease
    nowhere: it is not its disease, not the one that was replaced, and none of its names stands in
    the premise or the hypothesis, in any form; or, with `match` "substrings", letter for letter in
    the premise, which is all that the released code looks for. Where it leaked, and the name, are
    given as the reason."""
    known = _mentioned(match)
    fine = []
    for target, split, example in zip(*(rows[column] for column in rows.columns), strict=True):
        leak = split != "test" and known.get((example, target))
        if leak:
            reasons.get()[f"{target} {split} {example}"] = leak
        fine.append(not leak)
    return pd.Series(fine, index=rows.index)


@row_check
def expect_tested_premises_to_be_untrained(
    rows: pd.DataFrame, shared_premises: bool, split: str
) -> pd.Series:
    """Columns `target, split, example_id`: no premise and no pair that tests a disease trains it or
    validates, unless `shared_premises` allow it, as the released split always does."""
    if shared_premises or split == "released":
        return pd.Series(True, index=rows.index)
    target, part, example = rows.columns
    examples = tables.get()["examples"].set_index("example_id")
    premises = examples["premise"].str.casefold().str.split().str.join(" ")
    fine = pd.Series(True, index=rows.index)
    for column in (premises, examples["pair_id"]):
        about = pd.MultiIndex.from_arrays([rows[target], rows[example].map(column)])
        fine &= ~about.isin(about[rows[part] == "test"])
    return fine | (rows[part] == "test")


@row_check
def expect_targets_to_be_trained(rows: pd.DataFrame) -> pd.Series:
    """Columns `target, split`: each disease that is tested has rows that train and that validate;
    all of its rows fail where it has not."""
    target, split = rows.columns
    parts = rows.groupby(target)[split].agg(set)
    whole = parts.map(lambda found: {"train", "validation"} <= found)
    return rows[target].map(whole).astype(bool)


@row_check
def expect_test_examples_to_be_of_the_target(rows: pd.DataFrame) -> pd.Series:
    """Columns `target, split, example_id`: what tests is of the target, or replaces it."""
    target, split, example = rows.columns
    examples = tables.get()["examples"].set_index("example_id")["original_cui"]
    return (rows[split] != "test") | (rows[example].map(examples) == rows[target])


@row_check
def expect_pairs_to_be_on_one_side(rows: pd.DataFrame, split: str) -> pd.Series:
    """Columns `target, split, example_id`: no pair's examples both train and validate, unless the
    split is the released code's, which divides rows."""
    if split == "released":
        return pd.Series(True, index=rows.index)
    target, part, example = rows.columns
    pairs = rows[example].map(tables.get()["examples"].set_index("example_id")["pair_id"])
    sides = rows[part].where(rows[part] != "test").groupby([rows[target], pairs])
    return (rows[part] == "test") | (sides.transform("nunique") == 1)


@row_check
def expect_examples_to_differ(rows: pd.DataFrame, duplicates: str) -> pd.Series:
    """No two rows are alike in these columns, unless `duplicates` are kept."""
    return pd.Series(duplicates == "keep" or ~rows.duplicated(keep=False), index=rows.index)


def _mentioned(match: str) -> dict[tuple[str, str], tuple[str, str]]:
    """`(example, disease)` → where the example mentions the disease and by which text, for all
    diseases that have splits."""
    examples, targets = tables.get()["examples"], set(tables.get()["splits"]["target"])
    names = leaks.umls_names(MRCONSO, targets) + _surfaces(examples, targets)
    find = leaks.Diseases(names).named if match == "forms" else _letters(names)
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for column in TEXTS if match == "forms" else TEXTS[-1:]:
        texts = {text: find(text) for text in examples[column].unique()}
        for row in examples[["example_id", "pair_id", column]].itertuples(index=False):
            for cui, name in texts[row[2]].items():
                found[row[0], cui] = f"pair {row[1]}, in its {column}", repr(name)
    for column in ("original_cui", "cui"):
        for example, pair, cui in examples[["example_id", "pair_id", column]].itertuples(
            index=False
        ):
            found[example, cui] = f"pair {pair}, {cui} is its {column}", ""
    return found


def _surfaces(examples: pd.DataFrame, cuis: set[str]) -> list[tuple[str, str]]:
    """`(text, CUI)`: what the hypotheses of positives call these diseases."""
    right = examples[(examples["kind"] == "positive") & examples["cui"].isin(cuis)]
    return [(row.full_hypothesis[row.start : row.end], row.cui) for row in right.itertuples()]


def _letters(names: list[tuple[str, str]]) -> Callable[[str], dict[str, str]]:
    """A search for names as they are spelt, in any case."""
    lowered = {(name.strip().lower(), cui) for name, cui in names if name.strip()}
    return lambda text: {cui: name for name, cui in lowered if name in text.lower()}


def _pairs(table: pd.DataFrame, first: str, second: str) -> Iterator[tuple[str, str]]:
    return zip(table[first], table[second], strict=True)
