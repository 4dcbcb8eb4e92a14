"""DisKnE's expectations: labels, names, negatives, forms, and the nearest of cui2vec.

Negatives are negatives, nothing but the disease tells them from positives, and the similar ones are
cui2vec's nearest, read again from its file, without the builder's reader and search. Source:
Alghanmi et al. 2021, sections 3.2 to 3.4; random negatives, section 4.3.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.tables import SLOT
from medprobe.gate.checks import Context, row_check, says, value_check
from medprobe.papers.diskne.leaks import plain
from medprobe.sources.reread import CUI, ENGLISH, MRCONSO, PREFERRED, STR, read_names

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


@row_check
@says("the hypothesis is not the preferred name")
def expect_hypotheses_to_be_preferred_names(
    rows: pd.DataFrame, context: Context, hypothesis: str
) -> list[bool] | pd.Series:
    """The first column's text is the preferred name of the second column's concept, byte for byte.

    The preferred name is that of the table `names`, and MRCONSO.RRF must prefer it too where it
    prefers a name of the concept. With `hypothesis` "surface" the text is in lower case, as the
    released code has it.
    """
    text, cui = rows.columns
    if hypothesis == "surface":
        return rows[text] == rows[text].str.lower()
    names = context.tables["names"]
    preferred = names[names["preferred"]].set_index("cui")["name"].to_dict()
    in_umls: dict[str, set[str]] = defaultdict(set)
    for row in read_names(MRCONSO, set(rows[cui]), PREFERRED, "the gate reads names again"):
        in_umls[row[CUI]].add(row[STR])
    return [
        name == preferred.get(concept) and name in in_umls.get(concept, {name})
        for name, concept in zip(rows[text], rows[cui], strict=True)
    ]


@row_check
@says("its text is a name of another disease, and none of its own")
def expect_texts_to_name_their_diseases(rows: pd.DataFrame, context: Context) -> list[bool]:
    """What a positive's text calls its disease is no name of another one alone.

    Columns `cui, full_hypothesis, start, end`, of positives. Names are those of UMLS's file, of all
    their diseases. What is a name of none, such as a misspelt one, passes, and so does a name of a
    disease above or below the annotated one.
    """
    cui = rows.columns[0]
    of_name: dict[str, set[str]] = defaultdict(set)
    for row in read_names(MRCONSO, set(rows[cui]), ENGLISH, "the gate reads names again"):
        of_name[plain(row[STR])].add(row[CUI])
    related = related_diseases(context)
    accepted = []
    for disease, text, start, end in rows.itertuples(index=False, name=None):
        named = of_name.get(plain(text[start:end]), {disease})
        accepted.append(any(other == disease or (disease, other) in related for other in named))
    return accepted


@row_check
@says("its pair has several premises")
def expect_premises_to_be_of_their_pairs(rows: pd.DataFrame) -> pd.Series:
    """Rows of one pair, the first column, have one premise, the second one, byte for byte."""
    pair, premise = rows.columns
    return rows.groupby(pair)[premise].transform("nunique") == 1


@row_check
def expect_prompts_to_be_of_examples(rows: pd.DataFrame, context: Context) -> list[bool]:
    """A query's prompt is the premise and the full hypothesis of its positive, the disease a slot.

    Columns `query_id, prompt`; the query's id is the example's.
    """
    examples = context.tables["examples"]
    prompts = {}
    for row in examples[examples["label"] == 1].itertuples():
        before, after = row.full_hypothesis[: row.start], row.full_hypothesis[row.end :]
        prompts[row.example_id] = f"{row.premise} {before}{SLOT}{after}"
    query, prompt = rows.columns
    return [prompts.get(name) == text for name, text in zip(rows[query], rows[prompt], strict=True)]


VECTORS = places.DATA / "cui2vec/cui2vec_pretrained.csv"
CLOSE = 1e-5  # cosines that differ by less are equal


@row_check
@says("its disease is not one of the nearest")
def expect_similar_negatives_to_be_nearest(
    rows: pd.DataFrame, context: Context, negatives: int, sample: int
) -> pd.Series:
    """A similar negative's disease is one of the nearest to the original one.

    Columns `kind, original_cui, cui`. Nearest are so many `negatives` by the cosine of their
    vectors, among the diseases of all positives that are neither above nor below the original one.
    A sample of original diseases is checked, or all. All rows of a disease fail whose vector is as
    near to all others, since then nothing is nearest.
    """
    kind, original, cui = rows.columns
    similar = rows[rows[kind] == "similar"]
    pool = sorted(rows.loc[rows[kind] == "positive", cui].unique())
    drawn = similar[original].drop_duplicates()
    drawn = drawn.sample(min(sample, len(drawn)), random_state=0)
    related = related_diseases(context)
    vectors = _vectors(VECTORS, {*pool, *drawn})
    accepted = pd.Series(True, index=rows.index)
    for disease in drawn:
        chosen = similar.index[similar[original] == disease]
        others = [
            other
            for other in pool
            if other != disease and other in vectors and (disease, other) not in related
        ]
        if disease not in vectors or len(others) <= negatives:
            accepted[chosen] = disease in vectors
            continue
        cosines = {other: float(vectors[disease] @ vectors[other]) for other in others}
        least = sorted(cosines.values(), reverse=True)[negatives - 1] - CLOSE
        differ = max(cosines.values()) - min(cosines.values()) > CLOSE
        accepted[chosen] = [
            differ and cosines.get(other, -2) >= least for other in similar.loc[chosen, cui]
        ]
    return accepted


def _vectors(path: Path, cuis: set[str]) -> dict[str, np.ndarray]:
    """The vectors of these concepts, each of length 1."""
    if not path.is_file():
        raise BadInput(path, "no such file", "the gate ranks a sample of negatives again")
    vectors = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            cui = line[: line.find(",")].strip('"')
            if cui in cuis:
                vector = np.array(line.split(",")[1:], dtype=np.float64)
                vectors[cui] = vector / max(float(np.linalg.norm(vector)), 1e-30)
    return vectors
