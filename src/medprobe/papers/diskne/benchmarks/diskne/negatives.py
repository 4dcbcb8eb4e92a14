"""DisKnE's negatives: the positives with another disease, similar to the right one or drawn.

Source: Alghanmi et al. 2021, section 3.2; random negatives, section 4.3.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from medprobe.papers.diskne.concepts import Hierarchy, Vectors

KINDS: Final = ("similar", "random")
ARTICLE: Final = re.compile(r"\b(an?)(\s+)$", re.IGNORECASE)


def replaceable(
    positives: pd.DataFrame,
    hierarchy: Hierarchy,
    vectors: Vectors,
    n: int,
    dropped: Counter[str],
) -> pd.DataFrame:
    """Select the positives that can have `n` negatives.

    Their disease has a vector, and so have `n` others that are neither above nor below it. What is
    left out is counted in `dropped`.
    """
    has_vector = positives["cui"].isin(vectors.rows)
    dropped["positive: disease not in cui2vec"] += int((~has_vector).sum())
    positives = positives[has_vector]
    while True:
        sizes = {cui: len(others) for cui, others in eligible(positives["cui"], hierarchy).items()}
        enough = positives["cui"].map(sizes) >= n
        if enough.all():
            return positives.reset_index(drop=True)
        dropped[f"positive: fewer than {n} other diseases"] += int((~enough).sum())
        positives = positives[enough]


def eligible(diseases: pd.Series, hierarchy: Hierarchy) -> dict[str, list[str]]:
    """List for each disease those that can replace it: neither above nor below it, sorted."""
    pool = sorted(set(diseases))
    others_of = {}
    for cui in pool:
        related = hierarchy.related(cui) | {cui}
        others_of[cui] = [other for other in pool if other not in related]
    return others_of


def choose(
    positives: pd.DataFrame, hierarchy: Hierarchy, vectors: Vectors, n: int, seed: int
) -> pd.DataFrame:
    """Choose `n` similar and `n` random negatives of each positive.

    The columns are `position` (of the positive), `kind, original_cui, cui`.

    The pool are the diseases of all positives. Similar are those nearest by cosine, ties by CUI;
    they are the same for all positives of a disease. Random ones are drawn for each positive.
    """
    pool = eligible(positives["cui"], hierarchy)
    nearest = {cui: vectors.nearest(cui, others, n) for cui, others in pool.items()}
    generator = np.random.default_rng(seed)
    rows = []
    for position, cui in enumerate(positives["cui"]):
        drawn = generator.choice(len(pool[cui]), n, replace=False)
        rows += [(position, "similar", cui, other) for other in nearest[cui]]
        rows += [(position, "random", cui, pool[cui][place]) for place in drawn]
    return pd.DataFrame(rows, columns=["position", "kind", "original_cui", "cui"])


def assemble(
    positives: pd.DataFrame,
    negatives: pd.DataFrame,
    preferred: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return all examples in the order of their `row`.

    Of equal rows: each positive, its similar negatives, its random ones.

    `example_id`; `pair_id`; `category`; `kind` (positive, similar, random); `label` (1 or 0);
    `cui`; the canonical `hypothesis`, its `preferred` name; `original_cui`, the positive's, and its
    name `disease`; `premise`; `full_hypothesis`, where a positive's disease is at `[start:end]`;
    origin. With `labels`, other names by CUI, the hypothesis is what the released code makes of it:
    in lower case, a positive's as its text has it, a negative's label.
    """
    positives = positives.assign(surface=surfaces(positives))
    copies = positives.loc[negatives["position"]].assign(label=0)
    for column in ("kind", "original_cui", "cui", "row"):
        copies[column] = negatives[column].to_numpy()
    copies["full_hypothesis"] = [
        replace_disease(row.full_hypothesis, row.start, row.end, preferred[row.cui])
        for row in copies.itertuples()
    ]
    rows = pd.concat([positives, copies])
    rows["order"] = rows["kind"].map({"positive": 0, "similar": 1, "random": 2})
    rows = rows.rename_axis("position").reset_index()
    rows = rows.sort_values(["row", "order"], kind="stable", ignore_index=True)
    hypothesis = rows["cui"].map(dict(preferred))
    if labels is not None:
        hypothesis = rows["surface"].where(rows["label"] == 1, rows["cui"].map(dict(labels)))
        hypothesis = hypothesis.str.lower()
    number = rows.groupby(["position", "kind"]).cumcount() + 1
    suffix = ("-" + rows["kind"] + "-" + number.astype(str)).where(rows["label"] == 0, "")
    return pd.DataFrame(
        {
            "example_id": rows["position"].map("{:04d}".format) + suffix,
            "pair_id": rows["pair_id"],
            "category": rows["category"],
            "kind": rows["kind"],
            "label": rows["label"].astype(int),
            "cui": rows["cui"],
            "hypothesis": hypothesis,
            "original_cui": rows["original_cui"],
            "disease": rows["original_cui"].map(dict(preferred)),
            "premise": rows["premise"],
            "full_hypothesis": rows["full_hypothesis"],
            "origin": rows["origin"],
            "start": rows["start"].where(rows["label"] == 1, -1),
            "end": rows["end"].where(rows["label"] == 1, -1),
        }
    )


def surfaces(positives: pd.DataFrame) -> pd.Series:
    """Return what the hypotheses of positives call their diseases."""
    spans = zip(positives["full_hypothesis"], positives["start"], positives["end"], strict=True)
    return pd.Series([text[a:b].strip() for text, a, b in spans], positives.index, dtype=str)


def replace_disease(hypothesis: str, start: int, end: int, disease: str) -> str:
    """Return the hypothesis with another disease at `[start:end]`.

    An article before it follows the new disease's first letter.

    >>> replace_disease("The patient has an aneurysm.", 19, 27, "stroke")
    'The patient has a stroke.'
    """
    before = hypothesis[:start]
    if article_match := ARTICLE.search(before):
        article = "an" if disease[:1].lower() in "aeiou" else "a"
        article = article.capitalize() if article_match[1][0].isupper() else article
        before = before[: article_match.start()] + article + article_match[2]
    return before + disease + hypothesis[end:]
