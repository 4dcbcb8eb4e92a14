"""Which answers of a relation are common, and how many answers it has in effect.

A model that only learnt what a relation's answers usually are is right where they are common.
"""

from typing import Final

import pandas as pd

COMMONEST: Final = 10  # answers of a relation


def answer_keys(queries: pd.DataFrame) -> pd.Series:
    """What tells the answers of each query apart: their ids, or the name of one without an id.

    Returns:
        A list for each query, in the order of its answers.
    """
    pairs = zip(queries["answer_ids"], queries["answers"], strict=True)
    keys = [
        [identifier or name for identifier, name in zip(ids, names, strict=True)]
        for ids, names in pairs
    ]
    return pd.Series(keys, queries.index, dtype=object)


def has_common_answer(queries: pd.DataFrame) -> pd.Series:
    """Is one of a query's answers among the ten that are right for most queries of its relation?

    The ten are taken within a subset. Of equally common ones those come first that the table has
    first.

    Returns:
        True or false for each query.
    """
    by = ["subset", "relation", "answer"]
    answers = queries[by[:2]].assign(answer=answer_keys(queries).map(dict.fromkeys).map(list))
    answers = answers.explode("answer")
    counts = answers.groupby(by, sort=False).size()
    places = counts.groupby(level=by[:2]).rank(method="first", ascending=False).rename("place")
    common = answers.join(places, on=by)["place"] <= COMMONEST
    return common.groupby(level=0).any().reindex(queries.index)


def effective_number(names: pd.Series) -> float:
    """How many equally frequent names would repeat as often as these: 1 over the chance that two
    drawn with replacement are equal (Hill 1973, of order 2).

    >>> effective_number(pd.Series(["pain", "pain", "fever", "fever"]))
    2.0
    """
    return float(1 / (names.value_counts(normalize=True) ** 2).sum())
