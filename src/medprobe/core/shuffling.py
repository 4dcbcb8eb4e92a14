"""What a model reaches with the answers that it gave to other subjects: what is not the subject's.

A model that does not look at the subject, whatever it knows of how usual answers are, scores the
same with its answers to its own subjects and to others (control tasks: Hewitt and Liang 2019).
Models answer alike for names that are alike, and the truth often is alike, too. Whole families of
names are therefore exchanged (blocks: Winkler et al. 2015); single queries would make chance look
smaller than it is.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from string import punctuation
from typing import Final

import numpy as np
import pandas as pd

SHUFFLED: Final = "shuffled"  # the variant that is this control of a method's main variant
BLOCK: Final = 500_000  # exchanged answers held at a time
ROUNDING: Final = 1e-9  # means this close are equal


def shuffled_name(variant: str) -> str:
    """Return the name of the variant that is the control of a variant.

    >>> shuffled_name(""), shuffled_name("relation")
    ('shuffled', 'shuffled-relation')
    """
    return f"{SHUFFLED}-{variant}" if variant else SHUFFLED


def is_shuffled(variant: str) -> bool:
    """Return whether a variant holds answers to other subjects."""
    return variant.partition("-")[0] == SHUFFLED


def original_variant(variant: str) -> str:
    """Return the variant that a shuffled one is the control of.

    >>> original_variant("shuffled"), original_variant("shuffled-relation")
    ('', 'relation')
    """
    return variant.partition("-")[2]


def name_families(queries: pd.DataFrame) -> pd.Series:
    """Label each query with the family of its subject's name: the word that the name ends in.

    A last word that more than half of a relation's subjects share tells nothing ("... Gene"). The
    word before it counts then, in all relations of such a subject; if there is none, the subject
    itself does.

    Args:
        queries: Columns `subject`, `relation` and `cluster`. All queries of a cluster are of one
            family, that of its first name in the alphabet. One without a name is a family.

    Returns:
        The labels, with the index of `queries`.

    >>> names = ["Ovarian Carcinoma", "Carcinoma, lung", "lung carcinoma", "Gout"]
    >>> table = pd.DataFrame({"subject": names, "relation": "may_treat", "cluster": names})
    >>> name_families(table).tolist()
    ['carcinoma', 'lung', 'carcinoma', 'gout']
    >>> name_families(table.assign(subject=table["subject"] + " Gene")).tolist()
    ['carcinoma', 'lung', 'carcinoma', 'gout']
    """
    names = queries.groupby("cluster")["subject"].min()
    words = {cluster: _words(name) or [cluster] for cluster, name in names.items()}
    telling = dict(words)
    for _, clusters in queries.groupby("relation")["cluster"]:
        for cluster, left in _without_common_ends(words, clusters.unique()):
            telling[cluster] = min(telling[cluster], left, key=len)
    return queries["cluster"].map(
        {cluster: left[-1] if left else cluster for cluster, left in telling.items()}
    )


def _words(name: str) -> list[str]:
    words = (word.strip(punctuation) for word in name.casefold().split())
    return [word for word in words if word]


def _without_common_ends(
    words: dict[str, list[str]], clusters: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """The words of each subject of a relation up to the first that tells it from most others."""
    left = {cluster: words[cluster] for cluster in clusters}
    while True:
        ends = {cluster: own[-1] if own else cluster for cluster, own in left.items()}
        [(end, count)] = Counter(ends.values()).most_common(1)
        if 2 * count <= len(left) or count == 1:
            return iter(left.items())
        for cluster in (cluster for cluster, of_cluster in ends.items() if of_cluster == end):
            left[cluster] = left[cluster][:-1]


def permutation_p(
    hits: Sequence[np.ndarray],
    families: Sequence[np.ndarray],
    *,
    weights: Sequence[float] | None = None,
    permutations: int = 1999,
    seed: int,
) -> tuple[float, float, float]:
    """Test whether a model's answers fit its own subjects better than others of their relation.

    Families of a relation are permuted. One gets the answers of another in a random rotation,
    repeated or cut to its size.

    Args:
        hits: of each relation, [queries, queries]: does the answer list given to the query of the
            column hold an answer of the query of the row? Means over replicates will do.
        families: of each relation, the family of each query, as whole numbers.
        weights: of each relation in the mean; all count alike if None.
        permutations: how many are drawn.
        seed: of the draws.

    Returns:
        The mean over relations of the observed accuracy, that of `shuffled_means`, and the
        two-sided p: twice the share of permutations, the observed one among them, that are as
        far on its side. So a model is falsely above at .05 in 2.5 % of cases, however skewed.

    >>> p = permutation_p([np.eye(8)], [np.arange(8) * 3], permutations=999, seed=0)
    >>> [float(number) for number in p]
    [1.0, 0.0, 0.002]
    """
    draw = np.random.default_rng(seed)
    codes = [np.unique(own, return_inverse=True)[1] for own in families]
    pairs = list(zip(hits, codes, strict=True))
    whole = partial(np.average, axis=0, weights=weights)
    observed = float(whole([np.diagonal(own).mean() for own in hits]))
    expected = float(whole([shuffled_means(*pair).mean() for pair in pairs]))
    means = whole([_exchanged(*pair, permutations, draw) for pair in pairs])
    as_far = [(side * (means - observed) > -ROUNDING).sum() for side in (-1, 1)]
    return observed, expected, min(1.0, 2 * (1 + int(min(as_far))) / (1 + permutations))


def _exchanged(
    hits: np.ndarray, families: np.ndarray, permutations: int, draw: np.random.Generator
) -> np.ndarray:
    """The accuracy in a relation under each permutation of its families."""
    order = np.argsort(families, kind="stable")
    _, starts, sizes = np.unique(families[order], return_index=True, return_counts=True)
    family = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(order)) - starts[family]
    cells = np.ascontiguousarray(hits[np.ix_(order, order)]).ravel()
    rows = len(order) * np.arange(len(order))
    means = []
    for done in range(0, permutations, block := max(1, BLOCK // len(order))):
        few = min(block, permutations - done)
        giver = draw.permuted(np.tile(np.arange(len(sizes)), (few, 1)), axis=1)
        turn = draw.integers(sizes[giver])
        given = (place + turn[:, family]) % sizes[giver][:, family] + starts[giver][:, family]
        means.append(cells[rows + given].mean(axis=1))
    return np.concatenate(means)


def shuffled_means(hits: np.ndarray, families: np.ndarray) -> np.ndarray:
    """Return how often each query is hit by the answers that other families got.

    Args:
        hits: [queries, lists]; whether the list that was given to a query holds an answer of
            another, 0 to 1. Rows are queries that are scored, columns whose list they are given.
        families: of each query, as codes from 0.

    Returns:
        The mean over the other families of the mean over each one's lists, [queries]; NaN where
        there is one family.

    >>> shuffled_means(np.array([[1, 0, 1], [0, 1, 0], [0, 0, 1]]), np.array([0, 0, 1]))
    array([1., 0., 0.])
    """
    sizes = np.bincount(families)
    of_family = np.zeros((len(hits), len(sizes)))
    for family in range(len(sizes)):
        of_family[:, family] = hits[:, families == family].mean(axis=1)
    others = of_family.sum(axis=1) - of_family[np.arange(len(hits)), families]
    return others / (len(sizes) - 1) if len(sizes) > 1 else np.full(len(hits), np.nan)


def draw_other(families: np.ndarray, seed: int) -> np.ndarray:
    """Draw for each query another one, of another family: a random ring of families.

    Args:
        families: of each query, as codes from 0.
        seed: of the draw.

    Returns:
        The place of the other query, [queries]; -1 where there is one family.

    >>> draw_other(np.array([0, 1, 0]), seed=1)
    array([1, 0, 1])
    """
    sizes = np.bincount(families)
    if len(sizes) < 2:
        return np.full(len(families), -1)
    generator = np.random.default_rng(seed)
    ring = generator.permutation(len(sizes))
    giver = np.empty(len(sizes), dtype=int)
    giver[ring] = np.roll(ring, 1)
    order = np.argsort(families, kind="stable")
    starts = np.cumsum(sizes) - sizes
    place = np.empty(len(families), dtype=int)
    place[order] = np.arange(len(families)) - starts[families[order]]
    turn = (generator.random(len(sizes)) * sizes[giver]).astype(int)
    source = giver[families]
    return order[starts[source] + (place + turn[families]) % sizes[source]]


def subject_families(queries: pd.DataFrame) -> np.ndarray:
    """Return the name family of each query of a benchmark, as codes from 0 in order of appearance.

    Args:
        queries: Columns `relation`, `subject` and `subject_id`.
    """
    subjects = queries["subject_id"].where(queries["subject_id"] != "", queries["subject"])
    return pd.factorize(name_families(queries.assign(cluster=subjects)))[0]
