"""Statistics of a benchmark: the tidy table of how many queries, answers and candidates it has."""

from collections.abc import Callable, Iterator

import pandas as pd

from medprobe.core.tables import DISTRACTOR, BenchmarkTables


def statistics(benchmark: BenchmarkTables) -> pd.DataFrame:
    """One row a subset and relation, and one (`relation` = `all`) a subset.

    Columns: subset, relation, queries, subjects (distinct), answers (sum over queries),
    distinct_answers, answers_per_query (mean), answer_characters (mean over queries of their
    answers' mean length), candidates (distinct names of its own, in the rows `all` only).
    """
    rows = []
    for subset, queries, candidates in benchmark.subsets():
        for relation, part in [*queries.groupby("relation", sort=True), ("all", queries)]:
            own = candidates[candidates["type"] != DISTRACTOR]
            names = own["name"].nunique() if relation == "all" else None
            rows.append(
                {"subset": subset, "relation": relation, **_counts(part), "candidates": names}
            )
    return pd.DataFrame(rows).astype({"candidates": "Int64"})


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
    }


def token_statistics(
    benchmark: BenchmarkTables, count: Callable[[list[str]], list[int]]
) -> pd.DataFrame:
    """One row a subset: `tokens_per_answer` (mean over distinct answers) and `single_token` (the
    share of a relation's distinct answers that are one token, in the mean over relations: so comes
    MedLAMA's published 2.6 %), by a tokenizer's `count` of each text's tokens."""

    def lengths(queries: pd.DataFrame) -> pd.Series:
        return pd.Series(count(sorted({name for names in queries["answers"] for name in names})))

    def rows() -> Iterator[dict[str, object]]:
        for subset, queries, _ in benchmark.subsets():
            shares = [(lengths(part) == 1).mean() for _, part in queries.groupby("relation")]
            yield {
                "subset": subset,
                "tokens_per_answer": lengths(queries).mean(),
                "single_token": sum(shares) / len(shares),
            }

    return pd.DataFrame(rows())
