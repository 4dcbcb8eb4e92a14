"""The common answers of a relation, and the number of answers it has in effect.

A model that has only learnt a relation's usual answers is right where these are common.
"""

from typing import Final

import pandas as pd

COMMONEST: Final = 10  # answers of a relation


def answer_keys(queries: pd.DataFrame) -> pd.Series:
    """Return what distinguishes the answers of each query: their ids, or a name that has no id.

    Args:
        queries: Columns `answer_ids` and `answers`, lists of equal length.

    Returns:
        A list for each query, in the order of its answers.
    """
    pairs = zip(queries["answer_ids"], queries["answers"], strict=True)
    lists = [
        [identifier or name for identifier, name in zip(ids, names, strict=True)]
        for ids, names in pairs
    ]
    return pd.Series(lists, queries.index, dtype=object)


def has_common_answer(queries: pd.DataFrame) -> pd.Series:
    """Return whether each query has an answer among the ten commonest of its relation.

    The commonest answers are those that are right for most queries of the relation within a subset.
    Ties go to the answer that the table lists first.

    Args:
        queries: Columns `subset`, `relation`, `answers` and `answer_ids`.

    Returns:
        True or false for each query, with the index of `queries`.
    """
    keys = ["subset", "relation", "answer"]
    answers = queries[keys[:2]].assign(answer=answer_keys(queries).map(dict.fromkeys).map(list))
    answers = answers.explode("answer")
    counts = answers.groupby(keys, sort=False).size()
    ranks = counts.groupby(level=keys[:2]).rank(method="first", ascending=False).rename("place")
    common = answers.join(ranks, on=keys)["place"] <= COMMONEST
    return common.groupby(level=0).any().reindex(queries.index)


def effective_number(names: pd.Series) -> float:
    """Return how many equally frequent names would repeat as often as these do.

    It is 1 over the probability that two names drawn with replacement are equal.

    Source:
        Hill 1973, the diversity number of order 2.

    >>> effective_number(pd.Series(["pain", "pain", "fever", "fever"]))
    2.0
    """
    return float(1 / (names.value_counts(normalize=True) ** 2).sum())
