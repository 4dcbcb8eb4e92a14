"""Clusters of names: subjects whose names end alike.

Models answer alike for names that are alike, and the truth often is alike, too. Names of a cluster
are therefore drawn, and exchanged, together (blocks: Winkler et al. 2015). Single queries would
make chance look smaller than it is.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from string import punctuation

import numpy as np
import pandas as pd


def name_clusters(queries: pd.DataFrame) -> pd.Series:
    """Label each query with the cluster of its subject's name: the word that the name ends in.

    A last word that more than half of a relation's subjects share tells nothing ("... Gene"). The
    word before it counts then, in all relations of such a subject; if there is none, the subject
    itself does.

    Args:
        queries: Columns `subject`, `relation` and `key`. All queries of a key are in one cluster,
            that of its first name in the alphabet. A key without a name is a cluster of its own.

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


def subject_clusters(queries: pd.DataFrame) -> np.ndarray:
    """Return the name cluster of each query of a benchmark, as codes from 0 in order of appearance.

    Args:
        queries: Columns `relation`, `subject` and `subject_id`.
    """
    subjects = queries["subject_id"].where(queries["subject_id"] != "", queries["subject"])
    return pd.factorize(name_clusters(queries.assign(key=subjects)))[0]
