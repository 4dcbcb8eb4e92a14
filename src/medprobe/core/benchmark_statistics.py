"""Statistics of a benchmark: the tidy table of how many queries, answers and candidates it has."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
import pandas as pd

from medprobe.core.answers import find_rule
from medprobe.core.tables import DISTRACTOR, BenchmarkTables

KS: Final = (1, 5, 10)  # of acc@k


def chance_of_hit(right: np.ndarray, size: np.ndarray, k: int) -> np.ndarray:
    """Return the chance that one of the first k names in random order is right.

    >>> chance_of_hit(np.array([1, 2, 1, 0]), np.array([4, 4, 1, 0]), 2)
    array([0.5       , 0.83333333, 1.        ,        nan])
    """
    right, size = np.asarray(right, float), np.asarray(size, float)
    missed = np.ones(len(size))
    for drawn in range(k):
        remaining = np.where(size > drawn, size - drawn, 1.0)
        missed *= np.where(size > drawn, (size - right - drawn).clip(0) / remaining, 1.0)
    return np.where(size > 0, 1 - missed, np.nan)


def ranked_names(
    tables: BenchmarkTables, queries: pd.DataFrame, candidates: pd.DataFrame
) -> Mapping[str, set[str]]:
    """Return the names that are ranked for each relation.

    They are those of its answer space and its type, or all if none has it, without distractors.
    """
    ranked = candidates[candidates["type"] != DISTRACTOR]
    names = {}
    for relation in queries["relation"].unique():
        space = tables.restrict(ranked, str(relation))
        typed = space[space["type"] == relation]
        names[str(relation)] = set((typed if len(typed) else space)["name"])
    return names


COMMONEST: Final = 10  # answers of a relation


def answer_keys(queries: pd.DataFrame) -> pd.Series:
    """Return what distinguishes the answers of each query: their ids, or a name that has no id.

    Args:
        queries: Columns `answer_ids` and `answers`, lists of equal length.
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


FEWEST: Final = 6  # effective answers of a relation that can show anything by itself
SHARES: Final = {  # the columns of answers by their number of tokens, and what it is
    **{f"answers_of_{count}": str(count) for count in range(1, 11)},
    "answers_of_more": "over 10",
}


def statistics(benchmark: BenchmarkTables) -> pd.DataFrame:
    """Count what a benchmark has: one row per subset and relation, and one `all` per subset.

    Columns: subset, relation, queries, subjects (distinct), answers (sum over queries),
    distinct_answers, answers_per_query (mean), answer_characters (mean over queries of their
    answers' mean length), effective_answers (as many equally frequent ones would repeat as often as
    the first answers do), uncommon (queries with no answer among the relation's ten commonest),
    candidates (distinct names of its own that are ranked), chance_at_<k>
    (mean over queries of acc@k where these names are in random order).
    """
    rows = []
    for subset, subset_queries, candidates in benchmark.subsets():
        ranked_candidates = candidates[candidates["type"] != DISTRACTOR]
        ranked = ranked_names(benchmark, subset_queries, candidates)
        chances = answer_chances(subset_queries, ranked, benchmark.normalise)
        of_queries = {f"chance_at_{k}": values for k, values in chances.items()}
        queries = subset_queries.assign(**of_queries, common=has_common_answer(subset_queries))
        for relation, part in [*queries.groupby("relation", sort=True), ("all", queries)]:
            names = (
                ranked_candidates["name"].nunique() if relation == "all" else len(ranked[relation])
            )
            means = {name: part[name].mean() for name in of_queries}
            counts = {**_counts(part), "candidates": names, **means}
            rows.append({"subset": subset, "relation": relation, **counts})
    return pd.DataFrame(rows).astype({"candidates": "Int64"})


def answer_chances(
    queries: pd.DataFrame, ranked: Mapping[str, set[str]], normalise: str
) -> dict[int, pd.Series]:
    """Return for each k the chance of each query: of an answer among k names in random order."""
    same = find_rule(normalise)
    right, size = pd.Series(0.0, queries.index), pd.Series(0.0, queries.index)
    for relation, part in queries.groupby("relation"):
        names = ranked[str(relation)]
        texts = Counter(map(same, names))
        size[part.index] = len(names)
        right[part.index] = [
            sum(texts[text] for text in {same(name) for name in row}) for row in part["answers"]
        ]
    return {k: pd.Series(chance_of_hit(right, size, k), queries.index) for k in KS}


def _counts(queries: pd.DataFrame) -> dict[str, float]:
    answers = queries["answers"]
    characters = answers.map(
        lambda names: sum(map(len, names)) / len(names) if len(names) else None
    )
    return {
        "queries": len(queries),
        "subjects": queries["subject"].nunique(),
        "answers": int(answers.map(len).sum()),
        "distinct_answers": len({name for names in answers for name in names}),
        "answers_per_query": answers.map(len).mean(),
        "answer_characters": characters.astype(float).mean(),
        "effective_answers": effective_number(
            queries["relation"] + " " + answer_keys(queries).str[0]
        ),
        "uncommon": int((~queries["common"]).sum()),
    }


def weak_relations(statistics: pd.DataFrame, subset: str) -> list[str]:
    """The relations with fewer than six effective answers: alone they can show nothing."""
    chosen = (statistics["subset"] == subset) & (statistics["relation"] != "all")
    few = statistics["effective_answers"] < FEWEST
    return statistics.loc[chosen & few, "relation"].tolist()


def token_statistics(
    benchmark: BenchmarkTables, count: Callable[[list[str]], list[int]]
) -> pd.DataFrame:
    """Count the tokens of answers by a tokenizer's `count` of each text's tokens.

    One row per subset has `tokens_per_answer` (mean over distinct answers), SHARES (of distinct
    answers with so many tokens), and `single_token`: the share of a relation's distinct answers
    that are one token, in the mean over relations, as in MedLAMA's published 2.6 %.
    """

    def lengths(queries: pd.DataFrame) -> pd.Series:
        return pd.Series(count(sorted({name for names in queries["answers"] for name in names})))

    def rows() -> Iterator[dict[str, object]]:
        for subset, queries, _ in benchmark.subsets():
            singles = [(lengths(part) == 1).mean() for _, part in queries.groupby("relation")]
            every = lengths(queries)
            capped = every.clip(upper=len(SHARES)).value_counts(normalize=True)
            yield {
                "subset": subset,
                "tokens_per_answer": every.mean(),
                "single_token": sum(singles) / len(singles),
                **{name: capped.get(tokens, 0.0) for tokens, name in enumerate(SHARES, start=1)},
            }

    return pd.DataFrame(rows())
