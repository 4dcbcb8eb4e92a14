"""DisKnE's expectations on examples: labels, names, and negatives that are negatives.

Source: Alghanmi et al. 2021, sections 3.2 and 3.4.
"""

from collections.abc import Sequence

import pandas as pd

from medprobe.gate.checks import Context, row_check, value_check

ARTICLE = r"(?i)\ban? \[X\]"  # before a disease


@value_check
def expect_cuis_to_be_known(cuis: pd.Series, context: Context) -> pd.Series:
    """Each concept has a name in the table `names`."""
    return cuis.isin(set(context.tables["names"]["cui"]))


@row_check
def expect_names_to_be_of_their_cuis(rows: pd.DataFrame, context: Context) -> list[bool]:
    """The first column's text is one of the names of the second column's concept, in any case."""
    names = context.tables["names"]
    names_by_cui = set(zip(names["name"].str.lower(), names["cui"], strict=True))
    pairs = rows.itertuples(index=False, name=None)
    return [(text.lower(), cui) in names_by_cui for text, cui in pairs]


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
    label, original, cui = rows.columns
    is_related = pd.MultiIndex.from_frame(rows[[original, cui]]).isin(related_diseases(context))
    return (rows[label] == 1) | ~(is_related | (rows[original] == rows[cui]))


@row_check
def expect_negatives_to_differ_in_the_disease_alone(rows: pd.DataFrame) -> pd.Series:
    """A negative's full hypothesis is its positive's with another disease, and its article, if any.

    Columns `pair_id, category, original_cui, hypothesis, full_hypothesis, start, end`. Only a
    positive has a span, from `start` to `end`. All rows of a positive fail if one does.
    """
    *key, name, text, start, end = rows.columns
    frames = [
        f"{full[:first]}[X]{full[last:]}" if first >= 0 else full.replace(disease, "[X]", 1)
        for disease, full, first, last in rows[[name, text, start, end]].itertuples(index=False)
    ]
    plain = pd.Series(frames, rows.index).str.replace(ARTICLE, "a [X]", regex=True)
    return plain.groupby([rows[column] for column in key]).transform("nunique") == 1


@row_check
def expect_negatives_to_be_of_other_positives(rows: pd.DataFrame, context: Context) -> pd.Series:
    """Columns `label, cui`: a negative's disease is the disease of a positive."""
    examples = context.tables["examples"]
    label, cui = rows.columns
    return (rows[label] == 1) | rows[cui].isin(set(examples.loc[examples["label"] == 1, "cui"]))


@row_check
def expect_positives_to_have_negatives(
    rows: pd.DataFrame,
    *,
    kind: str,
    min_value: int,
    max_value: int,
    without_negatives: str,
    related: str = "keep",
) -> pd.Series:
    """Each positive has so many distinct negatives of this kind, both ends included.

    Columns `pair_id, category, original_cui, kind, cui`. Positives that have not are the rows that
    fail. With `without_negatives` "drop" a category can be without any, since a file can be
    missing; with "keep" any positive can; otherwise none can. With `related` "drop" one is enough.
    """
    min_value = 1 if related == "drop" else min_value
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
def expect_examples_to_differ(rows: pd.DataFrame, duplicates: str) -> pd.Series | bool:
    """No two rows are alike in these columns, unless `duplicates` are kept."""
    return duplicates == "keep" or ~rows.duplicated(keep=False)


def related_diseases(context: Context) -> set[tuple[str, str]]:
    """All pairs of a disease and one above or below it."""
    ancestors = context.tables["ancestors"]
    pairs = set(zip(ancestors["cui"], ancestors["ancestor"], strict=True))
    return pairs | {(above, below) for below, above in pairs}
