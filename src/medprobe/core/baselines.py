"""What is reached without looking at a subject.

- `prior`: the commonest answers of each relation. A model that only learnt what a relation's
  answers usually are looks as if it knew facts (a majority baseline: Cao et al. 2021, section 3;
  Zhong et al. 2021, section 4). A query's answers are counted in the other half of the subjects
  (cross-fitting: Chernozhukov et al. 2018, section 1). Leaving out the query's own subject only
  would make the count of its right answer smaller than that of every wrong one, and the prior of
  evenly frequent answers 0. Where a benchmark has a split to train on, a second variant counts
  answers there.
- `any_answer`: a guess among the answers of the relation, all of them alike.
- `chance`: a guess among the names that are ranked.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import pandas as pd

from medprobe.core.answers import find_rule, with_hits
from medprobe.core.chances import KS, chance_of_hit, ranked_names
from medprobe.core.tables import BenchmarkTables

METHOD: Final = "prior"
ANY_ANSWER: Final = "any_answer"
CHANCE: Final = "chance"
TRAIN: Final = "train"  # a further table of a benchmark, and the variant that counts its answers
WITHOUT_SUBJECT: Final = "_without_subject"  # ends the names of accuracies without echoes
RANKED: Final = 11  # answers: ten, and one more for where the query's own subject is left out
TIES: Final = 5  # names behind the last that equal it, as methods list them


class Query(NamedTuple):
    """What a prior knows of a query."""

    id: str
    cluster: str  # what is in one half together, such as its subject
    answers: dict[str, str]  # by the benchmark's rule for equal answers, as they are spelled


def prior(tables: BenchmarkTables, cluster: str, k: int) -> pd.DataFrame:
    """Rank each relation's answers by their frequency in the other half of its clusters.

    Args:
        tables: the benchmark. With a table `train` there is a second variant, which counts there.
        cluster: the column whose equal values are one subject.
        k: how many answers are ranked.

    Returns:
        A prediction table. `score` is the share of the counted queries that an answer is right for.
        Equal ones are in the order in which the benchmark first has them. An answer that is right
        for no counted query is not ranked. The table is empty where each relation has one answer,
        which a prior would always name.
    """
    normalise = find_rule(tables.normalise)
    groups = _group_queries(tables.queries, ["subset", "relation"], cluster, normalise)
    rows: list[dict[str, Any]] = []
    if _have_choice(groups.values()):
        for group in groups.values():
            half = halves(query.cluster for query in group)
            for side in (0, 1):
                queries = [query for query in group if half[query.cluster] == side]
                counted = [query for query in group if half[query.cluster] != side]
                rows += _rank_relation(queries, counted, "", k)
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
    for query in counted:
        totals.update([*query.answers])
        for text, answer in query.answers.items():
            spellings.setdefault(text, answer)
    ranked = totals.most_common()
    behind = [pair for pair in ranked[k : k + TIES] if pair[1] == ranked[k - 1][1]]
    for query in queries:
        for rank, (text, count) in enumerate([*ranked[:k], *behind], start=1):
            yield {
                "variant": variant,
                "replicate": "",
                "query_id": query.id,
                "rank": rank,
                "prediction": spellings[text],
                "score": count / len(counted),
            }


def halves(clusters: Iterable[str]) -> dict[str, int]:
    """Halve clusters: 0 or 1 for each, as many of either as there can be.

    The half of a cluster follows from a hash of the names, so it is the same on every machine.

    >>> sorted(halves(["a", "b", "c", "a"]).values())
    [0, 0, 1]
    """
    names = sorted(set(clusters), key=lambda name: hashlib.sha256(name.encode()).digest())
    return {name: place % 2 for place, name in enumerate(names)}


def _have_choice(groups: Iterable[list[Query]]) -> bool:
    """Whether a relation has two answers at least."""
    return any(len({text for query in group for text in query.answers}) > 1 for group in groups)


def baselines(tables: BenchmarkTables, cluster: str) -> dict[str, tuple[pd.DataFrame, str]]:
    """Make all baselines of a benchmark.

    Args:
        tables: the benchmark.
        cluster: the column whose equal values are one subject.

    Returns:
        Name -> its prediction table and the family of metrics that scores it.
    """
    return {
        METHOD: (prior(tables, cluster, RANKED), "accuracy"),
        ANY_ANSWER: (any_answer(tables, cluster), "chance"),
        CHANCE: (chance(tables, cluster), "chance"),
    }


def any_answer(tables: BenchmarkTables, cluster: str) -> pd.DataFrame:
    """Expect acc@k where the distinct answers of each relation are in random order.

    Args:
        tables: the benchmark.
        cluster: the column whose equal values are one subject.

    Returns:
        A table of expected values (`_expected`). It is empty where each relation has one answer.
    """
    normalise = find_rule(tables.normalise)
    groups = _group_queries(tables.queries, ["subset", "relation"], cluster, normalise)
    rows = []
    if _have_choice(groups.values()):
        for group in groups.values():
            names = Counter({text for query in group for text in query.answers})
            rows += [(query, names) for query in group]
    return _expected(tables, rows)


def chance(tables: BenchmarkTables, cluster: str) -> pd.DataFrame:
    """Expect acc@k where the names that are ranked are in random order.

    Args:
        tables: the benchmark.
        cluster: the column whose equal values are one subject.

    Returns:
        A table of expected values (`_expected`), without queries for which no name is ranked.
    """
    normalise = find_rule(tables.normalise)
    rows = []
    for _, queries, candidates in tables.subsets():
        ranked = ranked_names(tables, queries, candidates)
        groups = _group_queries(queries, ["relation"], cluster, normalise)
        for (relation,), group in groups.items():
            names = Counter(map(normalise, ranked[relation]))
            rows += [(query, names) for query in group if names]
    return _expected(tables, rows)


def _expected(tables: BenchmarkTables, rows: list[tuple[Query, Counter[str]]]) -> pd.DataFrame:
    """What a random order of names is expected to reach, for each query.

    Args:
        tables: the benchmark.
        rows: each query, and how many of its names are equal by the benchmark's rule.

    Returns:
        A prediction table of the family `chance`: a row for each query and metric, with the name of
        the metric as `prediction` and its expected value as `score`.
    """
    normalise = find_rule(tables.normalise)
    subjects = dict(zip(tables.queries["query_id"], tables.queries["subject"], strict=True))
    ids, right, size, echoes = [], [], [], []
    for query, names in rows:
        subject = normalise(subjects[query.id])
        ids.append(query.id)
        right.append(sum(names[text] for text in query.answers))
        size.append(names.total())
        echoes.append(0 if subject in query.answers else names[subject])
    table = pd.DataFrame(
        {"query_id": ids, "right": right, "size": size, "echoes": echoes}, dtype=object
    )
    numbers = table[["right", "size", "echoes"]].astype(float)
    parts = []
    for rank, k in enumerate(KS, start=1):
        for end, without in (("", 0), (WITHOUT_SUBJECT, numbers["echoes"])):
            value = chance_of_hit(numbers["right"], numbers["size"] - without, k)
            about = {
                "variant": "",
                "replicate": "",
                "rank": rank,
                "prediction_id": "",
                "hit": False,
            }
            name = f"acc_at_{k}{end}"
            parts.append(table[["query_id"]].assign(**about, prediction=name, score=value))
    return pd.concat(parts, ignore_index=True).dropna(subset="score")
