"""DisKnE's expectations: no leak, negatives that are negatives, and complete test sets.

Source: Alghanmi et al. 2021, sections 3.2 to 3.4. `leaks` decides what a leak is, from UMLS's
file and from the texts, not from what the builder recorded of them.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from medprobe.core import places
from medprobe.quality import leaks
from medprobe.quality.checks import Context, row_check, value_check

MRCONSO = places.DATA / "umls/MRCONSO.RRF"
TEXTS = ("hypothesis", "full_hypothesis", "premise")
ARTICLE = r"(?i)\ban? \[X\]"  # before a disease
FEWEST = 8  # words of a premise that can be a near copy
ROWS = 256  # premises that are held against all others at once


@value_check
def expect_cuis_to_be_known(cuis: pd.Series, context: Context) -> pd.Series:
    """Each concept has a name in the table `names`."""
    return cuis.isin(set(context.tables["names"]["cui"]))


@row_check
def expect_names_to_be_of_their_cuis(rows: pd.DataFrame, context: Context) -> list[bool]:
    """The first column's text is one of the names of the second column's concept, in any case."""
    names = context.tables["names"]
    names_by_cui = set(zip(names["name"].str.lower(), names["cui"], strict=True))
    name, cui = rows.columns
    return [
        (text.lower(), cui_of_row) in names_by_cui for text, cui_of_row in _pairs(rows, name, cui)
    ]


@row_check
def expect_labels_to_follow_kinds(rows: pd.DataFrame) -> pd.Series:
    """A positive has label 1 and its own disease, and only positives have label 1.

    Columns `label, kind, original_cui, cui`.
    """
    label, kind, original, cui = (rows[column] for column in rows.columns)
    positive = kind == "positive"
    return (positive == (label == 1)) & (~positive | (original == cui))


@row_check
def expect_negatives_to_be_unrelated(rows: pd.DataFrame, context: Context) -> pd.Series:
    """A negative's disease is not the original one, and not its ancestor or descendant.

    Columns `label, original_cui, cui`.
    """
    ancestors = context.tables["ancestors"]
    related = set(_pairs(ancestors, "cui", "ancestor")) | set(_pairs(ancestors, "ancestor", "cui"))
    label, original, cui = rows.columns
    is_related = [x == y or (x, y) in related for x, y in _pairs(rows, original, cui)]
    return (rows[label] == 1) | ~np.array(is_related, bool)


@row_check
def expect_negatives_to_differ_in_the_disease_alone(rows: pd.DataFrame) -> pd.Series:
    """A negative's full hypothesis is its positive's with another disease, and its article.

    Columns `pair_id, category, original_cui, hypothesis, full_hypothesis, start, end`. Only a
    positive has a span, from `start` to `end`. All rows of a positive fail if one does.
    """
    *key, name, text, start, end = rows.columns
    frames = [
        f"{full[:first]}[X]{full[last:]}" if first >= 0 else full.replace(disease, "[X]", 1)
        for disease, full, first, last in rows[[name, text, start, end]].itertuples(index=False)
    ]
    plain = pd.Series(frames, rows.index).str.replace(ARTICLE, "[X]", regex=True)
    return plain.groupby([rows[column] for column in key]).transform("nunique") == 1


@row_check
def expect_negatives_to_be_of_other_positives(rows: pd.DataFrame, context: Context) -> pd.Series:
    """Columns `label, cui`: a negative's disease is the disease of a positive."""
    examples = context.tables["examples"]
    label, cui = rows.columns
    return (rows[label] == 1) | rows[cui].isin(set(examples.loc[examples["label"] == 1, "cui"]))


@row_check
def expect_positives_to_have_negatives(
    rows: pd.DataFrame, kind: str, min_value: int, max_value: int, without_negatives: str
) -> pd.Series:
    """Each positive has so many distinct negatives of this kind, both ends included.

    Columns `pair_id, category, original_cui, kind, cui`. Positives that have not are the rows that
    fail. With `without_negatives` "drop" a category can be without any, since a file can be
    missing; with "keep" any positive can; otherwise none can.
    """
    *key, kinds, cui = rows.columns
    negatives = rows[rows[kinds] == kind]
    sizes = negatives.groupby(key)[cui].nunique()
    positives = pd.MultiIndex.from_frame(rows[key])
    accepted = positives.isin(sizes[sizes.between(min_value, max_value)].index)
    if without_negatives == "drop":
        accepted |= ~rows[key[1]].isin(negatives[key[1]])
    if without_negatives == "keep":
        accepted |= ~positives.isin(sizes.index)
    return (rows[kinds] != "positive") | accepted


@row_check
def expect_positives_to_number(
    rows: pd.DataFrame, category: str, min_value: int, max_value: int, categories: Sequence[str]
) -> pd.Series:
    """So many positives are in this category, both ends included.

    Columns `category, kind`. It counts only if the category is one of `categories`. If there are
    fewer or more, all of its rows fail; if it has no rows, all rows of the table fail.
    """
    column, kind = rows.columns
    in_category = rows[column] == category
    enough = min_value <= int((in_category & (rows[kind] == "positive")).sum()) <= max_value
    return (~in_category & in_category.any()) | enough | (category not in categories)


@row_check
def expect_diseases_to_be_targets(
    rows: pd.DataFrame, context: Context, positives: int, targets: Sequence[str] | None
) -> pd.Series:
    """Each disease with enough positives in a category has splits.

    Columns `category, kind, cui, premise, hypothesis`. Equal rows count once. It is checked if the
    category is one of `targets`.
    """
    category, kind, cui, *_ = rows.columns
    distinct_positives = rows[rows[kind] == "positive"].drop_duplicates()
    sizes = distinct_positives.groupby([cui, category]).size()
    expected = set(sizes[sizes >= positives].index.get_level_values(cui))
    missing = expected.intersection(targets or expected) - set(context.tables["splits"]["target"])
    return (rows[kind] != "positive") | ~rows[cui].isin(missing)


@row_check
def expect_examples_to_be_tested(rows: pd.DataFrame, context: Context) -> pd.Series:
    """Each example of a disease that has splits is in the disease's test set.

    Columns `example_id, original_cui, category, premise, hypothesis`. An equal example can stand
    for it.
    """
    example, original, *alike = rows.columns
    splits = context.tables["splits"]
    tested = set(_pairs(splits[splits["split"] == "test"], "example_id", "target"))
    is_tested = pd.Series([pair in tested for pair in _pairs(rows, example, original)], rows.index)
    is_covered = is_tested.groupby([rows[column] for column in (original, *alike)]).transform("any")
    return is_covered | ~rows[original].isin(splits["target"].unique())


@row_check
def expect_no_disease_leakage(rows: pd.DataFrame, context: Context, match: str) -> list[bool]:
    """Examples of training and validation do not mention the target disease.

    Columns `target, split, example_id`. The disease is neither the example's nor the replaced one,
    and none of its names is in the premise or the hypothesis, in any form. With `match`
    "substrings" the names are looked up letter by letter, in the premise alone, as the released
    code does. The reason of a failing row is where the disease leaked, and the name.
    """
    mentions = _find_mentions(match, context)
    accepted = []
    for target, split, example in zip(*(rows[column] for column in rows.columns), strict=True):
        leak = split != "test" and mentions.get((example, target))
        if leak:
            context.reasons[f"{target} {split} {example}"] = leak
        accepted.append(not leak)
    return accepted


@row_check
def expect_no_hidden_leakage(rows: pd.DataFrame, context: Context, match: str) -> list[bool]:
    """Examples of training and validation do not name the target disease in a hidden form.

    Columns as in `expect_no_disease_leakage`. The search is the loose one of `leaks`. With `match`
    "substrings" it is the released code's.
    """
    return expect_no_disease_leakage(rows, context, "loose" if match == "forms" else match)


@row_check
def expect_tested_premises_to_have_no_near_copies(
    rows: pd.DataFrame, context: Context, share: float, shared_premises: bool, split: str
) -> list[bool] | bool:
    """No premise of a test set shares this share of its words with one of training or validation.

    Columns `target, split, example_id`. The share is Jaccard's of the sets of words, for premises
    of at least eight words. Premises of the same words are left to
    `expect_tested_premises_to_be_untrained`.
    """
    if shared_premises or split == "released":
        return True
    target, part, example = rows.columns
    premises = context.tables["examples"].set_index("example_id")["premise"]
    near_copies = _near_copies(sorted(set(premises)), share)
    texts = rows[example].map(premises)
    tested = set(zip(rows[target], texts.where(rows[part] == "test"), strict=True))
    return [
        name == "test" or all((cui, copy) not in tested for copy in near_copies.get(text, ()))
        for cui, name, text in zip(rows[target], rows[part], texts, strict=True)
    ]


@row_check
def expect_tested_premises_to_be_untrained(
    rows: pd.DataFrame, context: Context, shared_premises: bool, split: str
) -> pd.Series | bool:
    """No premise and no pair of a test set is in the training or validation set.

    Columns `target, split, example_id`. If `shared_premises` allow it, they can be, as the released
    split always allows.
    """
    if shared_premises or split == "released":
        return True
    target, part, example = rows.columns
    examples = context.tables["examples"].set_index("example_id")
    premises = examples["premise"].map(lambda text: leaks.normalise(text).line)
    accepted = pd.Series(True, index=rows.index)
    for column in (premises, examples["pair_id"]):
        keys = pd.MultiIndex.from_arrays([rows[target], rows[example].map(column)])
        accepted &= ~keys.isin(keys[rows[part] == "test"])
    return accepted | (rows[part] == "test")


@row_check
def expect_targets_to_be_trained(rows: pd.DataFrame) -> pd.Series:
    """Each tested disease has training and validation rows.

    Columns `target, split`. All rows of a disease without them fail.
    """
    target, split = rows.columns
    parts = rows.groupby(target)[split].agg(set)
    complete = parts.map(lambda split_names: {"train", "validation"} <= split_names)
    return rows[target].map(complete)


@row_check
def expect_test_examples_to_be_of_the_target(rows: pd.DataFrame, context: Context) -> pd.Series:
    """Columns `target, split, example_id`: test examples are of the target, or replace it."""
    target, split, example = rows.columns
    examples = context.tables["examples"].set_index("example_id")["original_cui"]
    return (rows[split] != "test") | (rows[example].map(examples) == rows[target])


@row_check
def expect_pairs_to_be_on_one_side(
    rows: pd.DataFrame, context: Context, split: str
) -> pd.Series | bool:
    """No pair's examples both train and validate.

    Columns `target, split, example_id`. The released code's split divides rows, so it is not
    checked.
    """
    if split == "released":
        return True
    target, part, example = rows.columns
    pairs = rows[example].map(context.tables["examples"].set_index("example_id")["pair_id"])
    sides = rows[part].where(rows[part] != "test").groupby([rows[target], pairs])
    return (rows[part] == "test") | (sides.transform("nunique") == 1)


@row_check
def expect_examples_to_differ(rows: pd.DataFrame, duplicates: str) -> pd.Series | bool:
    """No two rows are alike in these columns, unless `duplicates` are kept."""
    return duplicates == "keep" or ~rows.duplicated(keep=False)


def _near_copies(texts: list[str], share: float) -> dict[str, list[str]]:
    """For each text of at least `FEWEST` words the others that share so much of its words."""
    words = [set(leaks.normalise(text).line.split()) for text in texts]
    number = {word: i for i, word in enumerate(sorted(set().union(*words)))}
    columns = [number[word] for row in words for word in row]
    sizes = np.array([len(row) for row in words])
    matrix = csr_matrix(
        (np.ones(len(columns), np.int32), columns, np.concatenate([[0], sizes.cumsum()])),
        shape=(len(texts), len(number)),
    )
    copies: dict[str, list[str]] = {}
    for start in range(0, len(texts), ROWS):
        shared = (matrix[start : start + ROWS] @ matrix.T).toarray()
        union = sizes[start : start + ROWS, None] + sizes[None] - shared
        near = (shared >= share * union) & (shared < union) & (sizes >= FEWEST)[None]
        for row, column in zip(*near.nonzero(), strict=True):
            copies.setdefault(texts[start + row], []).append(texts[column])
    return copies


def _find_mentions(match: str, context: Context) -> dict[tuple[str, str], tuple[str, str]]:
    """Map `(example, disease)` to where the example mentions the disease, and its text there.

    All diseases that have splits are looked up.
    """
    examples, targets = context.tables["examples"], set(context.tables["splits"]["target"])
    names = leaks.umls_names(MRCONSO, targets) + _spellings(examples, targets)
    as_released = match == "substrings"
    search = leaks.Diseases(names, loose=match == "loose").find
    find = _exact_search(names) if as_released else search
    mentions: dict[tuple[str, str], tuple[str, str]] = {}
    for column in TEXTS[-1:] if as_released else TEXTS:
        texts = {text: find(text) for text in examples[column].unique()}
        for row in examples[["example_id", "pair_id", column]].itertuples(index=False):
            for cui, name in texts[row[2]].items():
                mentions[row[0], cui] = f"pair {row[1]}, in its {column}", repr(name)
    for column in ("original_cui", "cui"):
        for example, pair, cui in examples[["example_id", "pair_id", column]].itertuples(
            index=False
        ):
            mentions[example, cui] = f"pair {pair}, {cui} is its {column}", ""
    return mentions


def _spellings(examples: pd.DataFrame, cuis: set[str]) -> list[tuple[str, str]]:
    """`(text, CUI)`: what the hypotheses of positives call these diseases."""
    positives = examples[(examples["kind"] == "positive") & examples["cui"].isin(cuis)]
    return [(row.full_hypothesis[row.start : row.end], row.cui) for row in positives.itertuples()]


def _exact_search(names: list[tuple[str, str]]) -> Callable[[str], dict[str, str]]:
    """A search for names letter by letter, in any case."""
    lowered = {(name.strip().lower(), cui) for name, cui in names if name.strip()}
    return lambda text: {cui: name for name, cui in lowered if name in text.lower()}


def _pairs(table: pd.DataFrame, first: str, second: str) -> Iterator[tuple[str, str]]:
    return zip(table[first], table[second], strict=True)
