"""What is reached without a model.

- `majority`: each relation's best constant list, counted on the benchmark and subset itself (a
  majority baseline: Cao et al. 2021, section 3; Zhong et al. 2021, section 4). At acc@1 nothing
  that ignores the subject can exceed it. It has seen the labels, which a model has not.
- `random_answer`: a guess among the answers of the relation, all of them alike.
- `chance`: a guess among the names that are ranked.
- `letters`: the names that look most like the subject, itself left out (`metrics.letters`). It
  alone looks at the subject.

Whether a model knows something about its subjects is tested against its own answers to other
subjects (`metrics.shuffled`).
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from medprobe import metrics
from medprobe.core.answers import find_rule, with_hits
from medprobe.core.benchmark_statistics import answer_chances, ranked_names
from medprobe.core.parts import fingerprint
from medprobe.core.places import PARTS
from medprobe.core.tables import RELATION_ANSWERS, BenchmarkTables
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.accuracy import Accuracy, values
from medprobe.metrics.letters import RANKED, TIES, near_queries, read_letters
from medprobe.metrics.results import read_scores, scorers_code, write_scores
from medprobe.metrics.splits import with_parts
from medprobe.metrics.summary import (
    KEYS,
    QUERY_KEYS,
    add_scores,
    check_queries,
    cluster_queries,
    summarise,
    weighted,
)

MAJORITY: Final = "majority"
RANDOM_ANSWER: Final = "random_answer"
CHANCE: Final = "chance"
LETTERS: Final = "letters"
SHOWN: Final = (MAJORITY, LETTERS)  # shown in the tables of models, too
RANKING: Final = "accuracy"  # scores rankings, with all other scorers of their tables
EXPECTED: Final = tuple(metric for metric in Accuracy.METRICS if metric.name.startswith("acc_at_"))


class Query(NamedTuple):
    """What a baseline knows of a query."""

    id: str
    answers: dict[str, str]  # by the benchmark's rule for equal answers, as they are spelled


def majority(tables: BenchmarkTables, k: int, asked: BenchmarkTables | None = None) -> pd.DataFrame:
    """List for each relation of a subset the answers that are right for the most queries.

    Each next answer is right for the most queries that still have none (the greedy solution of
    maximum coverage), so the list is at least as good as that of the most frequent answers.

    Returns:
        A prediction table. `score` is the share of the relation's queries that an answer adds.
        Equal ones are in the order in which the benchmark first has them. The table is empty where
        each relation has one answer, which a constant would always name.
    """
    normalise = find_rule(tables.normalise)
    groups = _group_queries(tables.queries, ["subset", "relation"], normalise)
    asked = asked or tables
    wanted = {*asked.queries["query_id"]}
    rows: list[dict[str, Any]] = []
    if _have_choice(groups.values()):
        for group in groups.values():
            ranked = _rank_answers(group, k)
            rows += [
                {
                    "variant": "",
                    "replicate": "",
                    "query_id": query.id,
                    "rank": rank,
                    "prediction": answer,
                    "score": count / len(group),
                }
                for query in group
                if query.id in wanted
                for rank, (answer, count) in enumerate(ranked, start=1)
            ]
    columns = ["variant", "replicate", "query_id", "rank", "prediction", "score"]
    return with_hits(pd.DataFrame(rows, columns=columns), asked)


def _group_queries(
    queries: pd.DataFrame, keys: list[str], normalise: Callable[[str], str]
) -> dict[tuple[str, ...], list[Query]]:
    """Group queries by their values of the columns `keys`, in the order of the table.

    Of answers that are equal by the rule `normalise`, the first in the alphabet is the spelling.
    """
    groups: dict[tuple[str, ...], list[Query]] = {}
    columns = (queries[name] for name in (*keys, "query_id", "answers"))
    for *key, query_id, answers in zip(*columns, strict=True):
        spellings: dict[str, str] = {}
        for answer in sorted(set(answers)):
            spellings.setdefault(normalise(answer), answer)
        groups.setdefault(tuple(key), []).append(Query(query_id, spellings))
    return groups


def _rank_answers(queries: list[Query], k: int) -> list[tuple[str, int]]:
    """The best constant list of a relation: each answer, and how many queries it adds."""
    spellings: dict[str, str] = {}
    holders: dict[str, set[int]] = {}
    for place, query in enumerate(queries):
        for text, answer in query.answers.items():
            spellings.setdefault(text, answer)
            holders.setdefault(text, set()).add(place)
    counts = {text: len(places) for text, places in holders.items()}
    left = {place for place, query in enumerate(queries) if query.answers}
    ranked: list[tuple[str, int]] = []
    # Names that equal the k-th are listed too, as methods list them, so that ties can be shared.
    while left and len(ranked) < k + TIES:
        text = max(counts, key=counts.__getitem__)  # the first of equal ones
        if len(ranked) >= k and counts[text] < ranked[k - 1][1]:
            break
        ranked.append((spellings[text], counts[text]))
        for place in left & holders[text]:
            for other in queries[place].answers:
                counts[other] -= 1
        left -= holders[text]
    return ranked


def _have_choice(groups: Iterable[list[Query]]) -> bool:
    """Whether a relation has two answers at least."""
    return any(len({text for query in group for text in query.answers}) > 1 for group in groups)


def random_answer(tables: BenchmarkTables) -> pd.DataFrame:
    """Expect acc@k where the distinct answers of each relation are in random order.

    Where a benchmark draws queries, they are the answers that the relation has in the source.

    Returns a table of expected values (`_expected`), empty where each relation has one answer.
    """
    normalise = find_rule(tables.normalise)
    groups = _group_queries(tables.queries, ["subset", "relation"], normalise)
    source = tables.others.get(RELATION_ANSWERS)
    ranked: dict[str, dict[str, set[str]]] = {}
    for (subset, relation), group in groups.items() if _have_choice(groups.values()) else ():
        names = {text for query in group for text in query.answers}
        if source is not None:
            names |= {*map(normalise, source.loc[source["relation"] == relation, "name"])}
        ranked.setdefault(subset, {})[relation] = names
    return _expected(tables, ranked)


def chance(tables: BenchmarkTables) -> pd.DataFrame:
    """Expect acc@k where the names that are ranked are in random order.

    Returns a table of expected values (`_expected`), without queries for which no name is ranked.
    """
    subsets = tables.subsets()
    return _expected(tables, {subset: ranked_names(tables, *rows) for subset, *rows in subsets})


def _expected(
    tables: BenchmarkTables, ranked: Mapping[str, Mapping[str, set[str]]]
) -> pd.DataFrame:
    """What a random order of names is expected to reach, for each query."""
    about = {"variant": "", "replicate": "", "prediction_id": "", "hit": False}
    parts = [
        queries[["query_id"]].assign(**about, rank=rank, prediction=f"acc_at_{k}", score=values)
        for subset, queries, _ in (tables.subsets() if ranked else ())
        for rank, (k, values) in enumerate(
            answer_chances(queries, ranked[subset], tables.normalise).items(), start=1
        )
    ]
    return pd.concat(parts, ignore_index=True).dropna(subset="score") if parts else pd.DataFrame()


def baselines_part(folder: Path, scoring: Scoring) -> Path:
    """Where the scores of a benchmark's baselines are kept."""
    code = scorers_code(metrics.scorers_of(RANKING))
    text = f"{fingerprint(sorted(folder.glob('*.parquet')))} {code} {scoring.settings}"
    return PARTS / f"baselines-{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def score_baselines(folder: Path, scoring: Scoring) -> dict[str, Scores]:
    """Score the baselines of a benchmark, or read their scores from outputs/parts."""
    part = baselines_part(folder, scoring)
    if (scores := read_scores(part)) is None:
        tables = BenchmarkTables.read(folder)
        scores = {}
        for name, ranked in ((MAJORITY, majority(tables, RANKED)), (LETTERS, read_letters(tables))):
            scores[name] = {}
            for scorer in metrics.scorers_of(RANKING) if len(ranked) else ():
                add_scores(scores[name], metrics.find(scorer).score(ranked, tables, scoring))
        for name, table in ((RANDOM_ANSWER, random_answer(tables)), (CHANCE, chance(tables))):
            scores[name] = _average(table, tables, scoring) if len(table) else {}
        write_scores(scores, part)
    return {name: of_name for name, of_name in scores.items() if of_name}


def _average(expected: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring) -> Scores:
    """Average expected accuracies by subset, part of a subset and relation, as accuracy does."""
    queries = cluster_queries(tables, scoring.cluster)
    check_queries(expected, queries)
    table = expected.pivot_table(index=KEYS, columns="prediction", values="score").reset_index()
    table = table.merge(queries[QUERY_KEYS], on="query_id")
    parts = with_parts(table, queries, scoring.facts, near_queries(tables))
    return summarise(parts, scoring, EXPECTED)


def letters_values(tables: BenchmarkTables, scoring: Scoring) -> pd.DataFrame:
    """The accuracy of each query by letters, to compare with that of a model's."""
    ranked = read_letters(tables)
    queries = cluster_queries(tables, scoring.cluster)
    return weighted(values(ranked[ranked["variant"] == ""], queries, ties=False))
