"""A model's answers given to other subjects: what of its accuracy comes from the subject.

A model that does not look at the subject scores the same whether it is scored with its own answers
or with those that it gave to another subject of the relation, whatever it knows of how usual
answers are. The idea is that of control tasks (Hewitt and Liang 2019, section 2), and of every
permutation test.

Models answer alike for subjects whose names are alike ("... carcinoma"), and the truth often does,
too. So whole *name families* change places: subjects whose names end in the same word.
"""

import re
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

SHUFFLED = "shuffled"  # the variant that is this control of a method's main variant
PERMUTATIONS = 1999
BLOCK = 250  # permutations that are evaluated together


def shuffled_name(variant: str) -> str:
    """Return the name of the variant that is the control of a variant.

    >>> shuffled_name(""), shuffled_name("relation")
    ('shuffled', 'shuffled-relation')
    """
    return f"{SHUFFLED}-{variant}" if variant else SHUFFLED


def is_shuffled(variant: str) -> bool:
    """Return whether a variant holds answers to other subjects.

    >>> is_shuffled("shuffled-relation"), is_shuffled("relation")
    (True, False)
    """
    return variant.partition("-")[0] == SHUFFLED


def original_variant(variant: str) -> str:
    """Return the variant that a shuffled one is the control of.

    >>> original_variant("shuffled"), original_variant("shuffled-relation")
    ('', 'relation')
    """
    return variant.partition("-")[2]


def name_families(queries: pd.DataFrame) -> pd.Series:
    """Return the name family of each query's subject within its relation.

    It is the last word of the name. A word in which more than half of a relation's subjects end
    ("... gene") tells nothing, and the word before it is taken as well. All queries of one subject
    belong to one family, whichever of its names they use. A subject without a name is its own.

    Args:
        queries: Columns `relation`, `subject` and `cluster`, which is equal for one subject.

    Returns:
        A label for each query, equal within a relation for queries of one family.

    >>> names = ["Lung carcinoma", "Skin Carcinoma", "Gout", "Mild asthma"]
    >>> table = pd.DataFrame({"relation": "r", "subject": names, "cluster": list("abcd")})
    >>> name_families(table).tolist()
    ['carcinoma', 'carcinoma', 'gout', 'asthma']
    """
    names = queries.groupby("cluster")["subject"].min()
    words = {key: re.findall(r"\w+", name.casefold()) or [key] for key, name in names.items()}
    families = pd.Series("", queries.index, dtype=object)
    for _, clusters in queries.groupby("relation")["cluster"]:
        lengths = dict.fromkeys(clusters, 1)  # words of each subject's label
        while True:
            labels = {key: " ".join(words[key][-size:]) for key, size in lengths.items()}
            counts = pd.Series(labels).value_counts()
            usual = {*counts.index[counts > len(labels) / 2]}
            longer = [
                key for key, label in labels.items()
                if label in usual and lengths[key] < len(words[key])
            ]  # fmt: skip
            if not longer:
                break
            lengths |= {key: lengths[key] + 1 for key in longer}
        families[clusters.index] = clusters.map(labels)
    return families


def subject_families(queries: pd.DataFrame) -> np.ndarray:
    """Return the name family of each query of a benchmark, as codes from 0 in order of appearance.

    Args:
        queries: Columns `relation`, `subject` and `subject_id`.
    """
    subjects = queries["subject_id"].where(queries["subject_id"] != "", queries["subject"])
    return pd.factorize(name_families(queries.assign(cluster=subjects)))[0]


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


def permutation_p(
    hits: Iterable[np.ndarray],
    families: Iterable[np.ndarray],
    *,
    weights: Iterable[float] | None = None,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Test whether a model's answers fit their own subjects better than others'.

    In each permutation the families of a relation change places: a family gets the answers of
    another, in a random rotation, repeated or cut to its size.

    Args:
        hits: for each relation what `shuffled_means` takes; the diagonal is the model's accuracy.
        families: for each relation the families of its queries, as codes from 0.
        weights: of each relation in the mean; all alike if None.
        permutations: how many are drawn.
        seed: of the draw.

    Returns:
        The mean over relations of the accuracy, that of its expectation for other subjects, over
        the queries that have one, and the two-sided p, at least 2 / (1 + permutations).
    """
    observed, expected, totals, whole = 0.0, [], np.zeros(permutations), 0.0
    generator = np.random.default_rng(seed)
    hits, families = list(hits), list(families)
    for matrix, codes, weight in zip(hits, families, weights or [1.0] * len(hits), strict=True):
        order = np.argsort(codes, kind="stable")
        grouped, rows = matrix[np.ix_(order, order)], np.arange(len(order))
        observed += weight * float(np.diagonal(grouped).mean())
        expected.append((weight, float(shuffled_means(matrix, codes).mean())))
        whole += weight
        drawn = [
            grouped[rows, donors].mean(axis=1)
            for donors in _draw_donors(codes[order], permutations, generator)
        ]
        totals += weight * np.concatenate(drawn)
    known = [(weight, mean) for weight, mean in expected if not np.isnan(mean)]
    shuffled = sum(weight * mean for weight, mean in known) / (sum(w for w, _ in known) or np.nan)
    rounding = 1e-9 * whole
    sides = ((totals >= observed - rounding).sum(), (totals <= observed + rounding).sum())
    p = min(1.0, 2 * (1 + min(sides)) / (1 + permutations))
    return observed / whole, shuffled, float(p)


def _draw_donors(
    codes: np.ndarray, permutations: int, generator: np.random.Generator
) -> Iterator[np.ndarray]:
    """Draw whose answers each query gets, [permutations, queries], in blocks.

    Args:
        codes: the family of each query, from 0, in ascending order.
        permutations: how many are drawn.
        generator: draws.
    """
    sizes = np.bincount(codes)
    starts = np.cumsum(sizes) - sizes
    place = np.arange(len(codes)) - starts[codes]
    for start in range(0, permutations, BLOCK):
        count = min(BLOCK, permutations - start)
        giver = generator.permuted(np.tile(np.arange(len(sizes)), (count, 1)), axis=1)
        turn = (generator.random((count, len(sizes))) * sizes[giver]).astype(int)
        giver, turn = giver[:, codes], turn[:, codes]
        yield starts[giver] + (place + turn) % sizes[giver]


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
