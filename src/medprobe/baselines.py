"""What a ranking is worth that looks at no subject: the commonest answers of each relation.

A model that only learnt what a relation's answers usually are looks as if it knew facts. The
`prior` ranks a relation's answers by how often they are right for other subjects (a majority
baseline: Cao et al. 2021, section 3; Zhong et al. 2021, section 4). Where a benchmark has a split
to train on, a second variant counts answers there.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pandas as pd

from medprobe.core.answers import find_rule, with_hits
from medprobe.core.tables import BenchmarkTables

METHOD: Final = "prior"
TRAIN: Final = "train"  # a further table of a benchmark, and the variant that counts its answers
TIES: Final = 5  # names behind the last that equal it, as methods list them


class Query(NamedTuple):
    """What a prior knows of a query."""

    id: str
    cluster: str  # what is left out together, such as its subject
    answers: dict[str, str]  # by the benchmark's rule for equal answers, as they are spelled


def prior(tables: BenchmarkTables, cluster: str, k: int) -> pd.DataFrame:
    """Rank each relation's answers by their frequency, for every query.

    The queries of a query's own cluster do not count for it.

    Args:
        tables: the benchmark. With a table `train` there is a second variant, which counts there.
        cluster: the column whose equal values are one subject.
        k: how many answers are ranked.

    Returns:
        A prediction table. `score` is the share of the counted queries that an answer is right for.
        Equal ones are in the order in which the benchmark first has them. The table is empty
        where each relation has one answer, which a prior would always name.
    """
    normalise = find_rule(tables.normalise)
    groups = _group_queries(tables.queries, ["subset", "relation"], cluster, normalise)
    rows: list[dict[str, Any]] = []
    answers = [{text for query in group for text in query.answers} for group in groups.values()]
    if any(len(texts) > 1 for texts in answers):
        for group in groups.values():
            rows += _rank_relation(group, group, "", k)
    if rows and TRAIN in tables.others:
        train = _group_queries(tables.others[TRAIN], ["relation"], cluster, normalise)
        for (_, relation), group in groups.items():
            rows += _rank_relation(group, train.get((relation,), []), TRAIN, k)
    columns = ["variant", "replicate", "query_id", "rank", "prediction", "score"]
    return with_hits(pd.DataFrame(rows, columns=columns), tables)


def _group_queries(
    queries: pd.DataFrame, keys: list[str], cluster: str, normalise: Callable[[str], str]
) -> dict[tuple[str, ...], list[Query]]:
    """Group queries by their values of the columns `keys`, in the order of the table.

    Of answers that are equal by the rule `normalise`, the first in the alphabet is the spelling.
    A query without a cluster is a cluster of its own.
    """
    groups: dict[tuple[str, ...], list[Query]] = {}
    columns = (queries[name] for name in (*keys, "query_id", cluster, "answers"))
    for *key, query_id, clusters, answers in zip(*columns, strict=True):
        first_cluster = clusters if isinstance(clusters, str) else next(iter(clusters), "")
        spellings: dict[str, str] = {}
        for answer in sorted(set(answers)):
            spellings.setdefault(normalise(answer), answer)
        query = Query(query_id, first_cluster or query_id, spellings)
        groups.setdefault(tuple(key), []).append(query)
    return groups


def _rank_relation(
    queries: list[Query], counted: list[Query], variant: str, k: int
) -> Iterator[dict[str, Any]]:
    """The predictions for the queries of one relation, by the answers of the counted ones."""
    totals, spellings = Counter[str](), dict[str, str]()
    clusters: dict[str, list[Query]] = {}
    for query in counted:
        totals.update([*query.answers])
        for text, answer in query.answers.items():
            spellings.setdefault(text, answer)
        clusters.setdefault(query.cluster, []).append(query)
    common = [text for text, _ in totals.most_common()]
    for query in queries:
        left_out = clusters.get(query.cluster, [])
        size = len(counted) - len(left_out)
        for rank, (text, count) in enumerate(_top(common, totals, left_out, k), start=1):
            yield {
                "variant": variant,
                "replicate": "",
                "query_id": query.id,
                "rank": rank,
                "prediction": spellings[text],
                "score": count / size,
            }


def _top(
    common: list[str], totals: Counter[str], left_out: list[Query], k: int
) -> list[tuple[str, int]]:
    """The k answers that are right for most queries but those left out, and what equals the last.

    Leaving queries out moves only their own answers, so that no more than those and the k
    commonest, with ties, can be among them.
    """
    less = Counter(text for query in left_out for text in query.answers)
    pool = [(text, totals[text] - less[text]) for text in common[: k + TIES + len(less)]]
    ranked = sorted((pair for pair in pool if pair[1]), key=lambda pair: -pair[1])
    behind = [pair for pair in ranked[k : k + TIES] if pair[1] == ranked[k - 1][1]]
    return [*ranked[:k], *behind]
