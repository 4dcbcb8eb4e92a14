"""What a model reaches with the answers that it gave to other subjects: what is not the subject's.

A model that does not look at the subject, whatever it knows of how usual answers are, scores the
same with its answers to its own subjects and to others (control tasks: Hewitt and Liang 2019).
Models answer alike for names that are alike, and the truth often is alike, too. Whole clusters of
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


def name_clusters(queries: pd.DataFrame) -> pd.Series:
    """Label each query with the cluster of its subject's name: the word that the name ends in.

    A last word that more than half of a relation's subjects share tells nothing ("... Gene"). The
    word before it counts then, in all relations of such a subject; if there is none, the subject
    itself does.

    Args:
        queries: Columns `subject`, `relation` and `key`. All queries of a key are in one cluster,
            that of its first name in the alphabet. A key without a name is a cluster of its own.

    Returns:
        The labels, with the index of `queries`.

    >>> names = ["Ovarian Carcinoma", "Carcinoma, lung", "lung carcinoma", "Gout"]
    >>> table = pd.DataFrame({"subject": names, "relation": "may_treat", "key": names})
    >>> name_clusters(table).tolist()
    ['carcinoma', 'lung', 'carcinoma', 'gout']
    >>> name_clusters(table.assign(subject=table["subject"] + " Gene")).tolist()
    ['carcinoma', 'lung', 'carcinoma', 'gout']
    """
    names = queries.groupby("key")["subject"].min()
    words = {key: _words(name) or [key] for key, name in names.items()}
    telling = dict(words)
    for _, keys in queries.groupby("relation")["key"]:
        for key, left in _without_common_ends(words, keys.unique()):
            telling[key] = min(telling[key], left, key=len)
    return queries["key"].map({key: left[-1] if left else key for key, left in telling.items()})


def _words(name: str) -> list[str]:
    words = (word.strip(punctuation) for word in name.casefold().split())
    return [word for word in words if word]


def _without_common_ends(
    words: dict[str, list[str]], keys: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """The words of each subject of a relation up to the first that tells it from most others."""
    left = {key: words[key] for key in keys}
    while True:
        ends = {key: own[-1] if own else key for key, own in left.items()}
        [(end, count)] = Counter(ends.values()).most_common(1)
        if 2 * count <= len(left) or count == 1:
            return iter(left.items())
        for key in (key for key, last in ends.items() if last == end):
            left[key] = left[key][:-1]


def permutation_p(
    hits: Sequence[np.ndarray],
    clusters: Sequence[np.ndarray],
    *,
    weights: Sequence[float] | None = None,
    permutations: int = 1999,
    seed: int,
) -> tuple[float, float, float]:
    """Test whether a model's answers fit its own subjects better than others of their relation.

    Clusters of a relation are permuted. One gets the answers of another in a random rotation,
    repeated or cut to its size.

    Args:
        hits: of each relation, [queries, queries]: does the answer list given to the query of the
            column hold an answer of the query of the row? Means over replicates will do.
        clusters: of each relation, the cluster of each query, as whole numbers.
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
    codes = [np.unique(own, return_inverse=True)[1] for own in clusters]
    pairs = list(zip(hits, codes, strict=True))
    whole = partial(np.average, axis=0, weights=weights)
    observed = float(whole([np.diagonal(own).mean() for own in hits]))
    expected = float(whole([shuffled_means(*pair).mean() for pair in pairs]))
    means = whole([_exchanged(*pair, permutations, draw) for pair in pairs])
    as_far = [(side * (means - observed) > -ROUNDING).sum() for side in (-1, 1)]
    return observed, expected, min(1.0, 2 * (1 + int(min(as_far))) / (1 + permutations))


def _exchanged(
    hits: np.ndarray, clusters: np.ndarray, permutations: int, draw: np.random.Generator
) -> np.ndarray:
    """The accuracy in a relation under each permutation of its clusters."""
    order = np.argsort(clusters, kind="stable")
    _, starts, sizes = np.unique(clusters[order], return_index=True, return_counts=True)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(order)) - starts[cluster]
    cells = np.ascontiguousarray(hits[np.ix_(order, order)]).ravel()
    rows = len(order) * np.arange(len(order))
    means = []
    for done in range(0, permutations, block := max(1, BLOCK // len(order))):
        few = min(block, permutations - done)
        # Each cluster gets the answers of another one, beginning at a random one of them.
        giver = draw.permuted(np.tile(np.arange(len(sizes)), (few, 1)), axis=1)
        turn = draw.integers(sizes[giver])
        given = (place + turn[:, cluster]) % sizes[giver][:, cluster] + starts[giver][:, cluster]
        means.append(cells[rows + given].mean(axis=1))
    return np.concatenate(means)


def shuffled_means(hits: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Return how often each query is hit by the answers that other clusters got.

    Args:
        hits: [queries, lists]; whether the list that was given to a query holds an answer of
            another, 0 to 1. Rows are queries that are scored, columns whose list they are given.
        clusters: of each query, as codes from 0.

    Returns:
        The mean over the other clusters of the mean over each one's lists, [queries]; NaN where
        there is one cluster.

    >>> shuffled_means(np.array([[1, 0, 1], [0, 1, 0], [0, 0, 1]]), np.array([0, 0, 1]))
    array([1., 0., 0.])
    """
    sizes = np.bincount(clusters)
    of_cluster = np.zeros((len(hits), len(sizes)))
    for cluster in range(len(sizes)):
        of_cluster[:, cluster] = hits[:, clusters == cluster].mean(axis=1)
    others = of_cluster.sum(axis=1) - of_cluster[np.arange(len(hits)), clusters]
    return others / (len(sizes) - 1) if len(sizes) > 1 else np.full(len(hits), np.nan)


def draw_other(clusters: np.ndarray, seed: int) -> np.ndarray:
    """Draw for each query another one, of another cluster: a random ring of clusters.

    Args:
        clusters: of each query, as codes from 0.
        seed: of the draw.

    Returns:
        The place of the other query, [queries]; -1 where there is one cluster.

    >>> draw_other(np.array([0, 1, 0]), seed=1)
    array([1, 0, 1])
    """
    sizes = np.bincount(clusters)
    if len(sizes) < 2:
        return np.full(len(clusters), -1)
    generator = np.random.default_rng(seed)
    ring = generator.permutation(len(sizes))
    giver = np.empty(len(sizes), dtype=int)
    giver[ring] = np.roll(ring, 1)
    order = np.argsort(clusters, kind="stable")
    starts = np.cumsum(sizes) - sizes
    place = np.empty(len(clusters), dtype=int)
    place[order] = np.arange(len(clusters)) - starts[clusters[order]]
    turn = (generator.random(len(sizes)) * sizes[giver]).astype(int)
    source = giver[clusters]
    return order[starts[source] + (place + turn[clusters]) % sizes[source]]


def subject_clusters(queries: pd.DataFrame) -> np.ndarray:
    """Return the name cluster of each query of a benchmark, as codes from 0 in order of appearance.

    Args:
        queries: Columns `relation`, `subject` and `subject_id`.
    """
    subjects = queries["subject_id"].where(queries["subject_id"] != "", queries["subject"])
    return pd.factorize(name_clusters(queries.assign(key=subjects)))[0]
