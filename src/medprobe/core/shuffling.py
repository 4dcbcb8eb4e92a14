"""What a model reaches with the answers that it gave to other subjects.

A model that does not look at the subject, whatever it knows of how usual answers are, scores the
same with the answers to its own subjects and to others (control tasks: Hewitt and Liang 2019).
Models answer alike for names that are alike, and the truth often is alike, too. Whole families of
names are therefore exchanged (blocks: Winkler et al. 2015); single queries would make chance look
smaller than it is.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from string import punctuation
from typing import Final

import numpy as np
import pandas as pd

BLOCK: Final = 500_000  # exchanged answers held at a time
ROUNDING: Final = 1e-9  # means this close are equal


def name_families(queries: pd.DataFrame) -> pd.Series:
    """Label each query with the family of its subject's name: the word that the name ends in.

    A last word that more than half of a relation's subjects share tells nothing ("... Gene"). The
    word before it counts then, in all relations of such a subject.

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
    return queries["cluster"].map({cluster: left[-1] for cluster, left in telling.items()})


def _words(name: str) -> list[str]:
    words = (word.strip(punctuation) for word in name.casefold().split())
    return [word for word in words if word]


def _without_common_ends(
    words: dict[str, list[str]], clusters: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """The words of each subject of a relation up to the first that tells it from most others."""
    left = {cluster: words[cluster] for cluster in clusters}
    while True:
        [(end, count)] = Counter(own[-1] for own in left.values()).most_common(1)
        longer = [cluster for cluster, own in left.items() if own[-1] == end and len(own) > 1]
        if 2 * count <= len(left) or not longer:
            return iter(left.items())
        for cluster in longer:
            left[cluster] = left[cluster][:-1]


def permutation_p(
    hits: Sequence[np.ndarray],
    families: Sequence[np.ndarray],
    *,
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
        permutations: how many are drawn.
        seed: of the draws.

    Returns:
        The mean over relations of the observed accuracy, that expected over all permutations, and
        the two-sided p: twice the share of permutations, the observed one among them, that are as
        far on its side. So a model is falsely above at .05 in 2.5 % of cases, however skewed.

    >>> p = permutation_p([np.eye(8)], [np.arange(8)], permutations=999, seed=0)
    >>> [float(number) for number in p]
    [1.0, 0.125, 0.002]
    """
    draw = np.random.default_rng(seed)
    pairs = list(zip(hits, families, strict=True))
    observed = float(np.mean([np.diagonal(own).mean() for own in hits]))
    expected = float(np.mean([expected_hits(*pair).mean() for pair in pairs]))
    means = np.mean([_exchanged(*pair, permutations, draw) for pair in pairs], axis=0)
    as_far = [(side * (means - observed) > -ROUNDING).sum() for side in (-1, 1)]
    return observed, expected, min(1.0, 2 * (1 + int(min(as_far))) / (1 + permutations))


def expected_hits(hits: np.ndarray, families: np.ndarray) -> np.ndarray:
    """The expected hit of each query of a relation over all exchanges of families.

    Each family is as likely to give its answers, and so is each of its lists.

    >>> expected_hits(np.eye(3), np.array([0, 0, 1]))
    array([0.25, 0.25, 0.5 ])
    """
    _, codes, sizes = np.unique(families, return_inverse=True, return_counts=True)
    return np.asarray(hits @ (1 / (sizes[codes] * len(sizes))))


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
