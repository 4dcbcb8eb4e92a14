"""acc@k for every query, from the prediction table alone.

A query counts as right at k where one of its first k predictions is a hit, and as wrong where it
has no prediction. Each variant is scored with its answers to other subjects, too, as the variant
`shuffled` or `shuffled-<variant>`.
Sources: Petroni et al. 2019, section 4.3; Meng et al. 2022, section 5.
"""

from collections.abc import Collection, Iterator
from typing import Final

import numpy as np
import pandas as pd
from scipy.special import comb

from medprobe.core.answers import find_rule
from medprobe.core.tables import BenchmarkTables, lists_outranking
from medprobe.metrics import Evaluated, Metric, Scorer, Scores, Scoring
from medprobe.metrics.letters import near_queries
from medprobe.metrics.results import is_compared
from medprobe.metrics.shuffled import (
    TESTS,
    find_strata,
    is_shuffled,
    shuffled_tests,
    shuffled_values,
    without_queries,
)
from medprobe.metrics.splits import BLIND, with_parts
from medprobe.metrics.summary import (
    KEYS,
    QUERY_KEYS,
    add_scores,
    check_queries,
    cluster_queries,
    summarise,
    weighted,
)

KS: Final = (1, 5, 10)
_AT_K: Final = "Petroni et al. 2019, section 4.3 (P@k); named acc@k by Meng et al. 2022, section 5"
_TIED: Final = "expected acc@k where equal scores are drawn in random order"
_MRR: Final = "Voorhees 1999: of the best answer among all candidates, where its rank is known"
_AHEAD: Final = "candidates ranked before the best answer, where its rank is known"
_BY_ANSWER: Final = "mean over the answers of a relation of the mean over each one's queries"
_ROUGE: Final = "Lin 2004, by rouge-score: the first text's F against its nearest answer"
_UNANSWERED: Final = "free answers that are cut, empty, or name no candidate or several"
_ECHO: Final = "a diagnostic of retrieval: how often it echoes"


class Accuracy(Scorer):
    """acc@k: the share of queries with a hit among the first k predictions."""

    DRAWS_ANSWERS = True
    METRICS = (
        Metric("acc_at_1", "acc@1", "higher", 0.0, 1.0, _AT_K, tested=True),
        Metric("acc_at_5", "acc@5", "higher", 0.0, 1.0, _AT_K, tested=True),
        Metric("acc_at_10", "acc@10", "higher", 0.0, 1.0, _AT_K, tested=True),
        Metric("acc_at_1_tied", "acc@1, ties shared", "higher", 0.0, 1.0, _TIED),
        Metric("acc_at_5_tied", "acc@5, ties shared", "higher", 0.0, 1.0, _TIED),
        Metric("acc_at_10_tied", "acc@10, ties shared", "higher", 0.0, 1.0, _TIED),
        Metric("acc_at_1_by_answer", "acc@1 by answer", "higher", 0.0, 1.0, _BY_ANSWER),
        Metric("acc_at_10_by_answer", "acc@10 by answer", "higher", 0.0, 1.0, _BY_ANSWER),
        Metric("reciprocal_rank", "mean reciprocal rank", "higher", 0.0, 1.0, _MRR, tested=True),
        Metric("names_ahead", "names ahead of the answer", "lower", 0.0, float("inf"), _AHEAD),
        Metric("subject_at_1", "own subject first", "neither", 0.0, 1.0, _ECHO),
        Metric("rouge_l", "ROUGE-L", "higher", 0.0, 1.0, _ROUGE),
        Metric("unanswered", "unanswered", "neither", 0.0, 1.0, _UNANSWERED),
    )

    def score(self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring) -> Scores:
        """Score acc@k and what belongs to it, by subset, part of a subset and relation."""
        queries = cluster_queries(tables, scoring.cluster)
        return self._score(values(predictions, queries), queries, near_queries(tables), scoring)

    def _score(
        self, by_query: pd.DataFrame, queries: pd.DataFrame, near: Collection[str], scoring: Scoring
    ) -> Scores:
        parts = with_parts(by_query, queries, scoring.facts, near)
        scores = summarise(parts, scoring, self.METRICS)
        add_scores(scores, summarise(by_answer(by_query, queries), scoring))
        return scores

    def paired(
        self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
    ) -> pd.DataFrame:
        """Return the accuracy of each query; ties are not tested."""
        queries = cluster_queries(tables, scoring.cluster)
        return _without_ties(weighted(values(predictions, queries, ties=False)))

    def evaluate(
        self, predictions: pd.DataFrame, tables: BenchmarkTables, scoring: Scoring
    ) -> Evaluated:
        """Score predictions, each variant that lists its answers also with those to others."""
        queries = cluster_queries(tables, scoring.cluster)
        by_query, near = values(predictions, queries), near_queries(tables)
        scores = self._score(by_query, queries, near, scoring)
        tests = [pd.DataFrame(columns=TESTS)]
        for rows, of_variant in _listed(by_query, predictions):
            rule = find_rule(tables.normalise)
            strata = find_strata(rows, of_variant, queries, rule)
            parts = with_parts(shuffled_values(rows, strata), queries, scoring.facts)
            # Where letters find nothing, the answers of such queries alone are the control.
            blind = without_queries(strata, near, BLIND)
            parts = pd.concat([parts, shuffled_values(rows, blind)], ignore_index=True)
            add_scores(scores, summarise(parts, scoring))
            tests.append(shuffled_tests(rows, strata | blind, scoring))
        return Evaluated(scores, _without_ties(weighted(by_query)), pd.concat(tests))


def _without_ties(values: pd.DataFrame) -> pd.DataFrame:
    return values.drop(columns=[name for name in values if name.endswith("_tied")])


def values(predictions: pd.DataFrame, queries: pd.DataFrame, *, ties: bool = True) -> pd.DataFrame:
    """One row a variant, replicate and query of the subsets that were probed.

    Columns: `variant, replicate, query_id, subset, relation, cluster, answer` and one of numbers
    for each metric: `acc_at_<k>`; `acc_at_<k>_tied`, where `ties` are asked for and all predictions
    carry scores; `reciprocal_rank` and `names_ahead`, where they carry `answer_rank`;
    `subject_at_1`, where they are the best names, not those ranked above the answer;
    `rouge_l`, where they carry it; `unanswered`, where predictions are free answers.
    `queries` are as `cluster_queries` gives them.
    """
    check_queries(predictions, queries)
    has_scores = ties and bool(predictions["score"].notna().all())
    if predictions.empty:
        return _values_of_run(predictions, queries, has_scores)
    tables = []
    for (variant, _), rows in predictions.groupby(["variant", "replicate"]):
        asked = queries
        if is_shuffled(variant):  # such a control can lack some
            asked = queries[queries["query_id"].isin(rows["query_id"].unique())]
        tables.append(_values_of_run(rows, asked, has_scores))
    return pd.concat(tables, ignore_index=True)


def _listed(
    by_query: pd.DataFrame, predictions: pd.DataFrame
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """The values and predictions of each variant that lists its answers and is compared."""
    if not lists_outranking(predictions):
        for variant, rows in by_query.groupby("variant"):
            if is_compared(str(variant)):
                yield rows, predictions[predictions["variant"] == variant]


def by_answer(values: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """The accuracy of each answer over its queries, one row per variant, replicate and answer.

    An answer stands where a query does: a common one counts no more than a rare one. Clusters of
    answers are the clusters, so intervals say how far a value would move with other answers.
    """
    about = queries.set_index("query_id")[["first_answer", "answer_cluster"]]
    keys = ["variant", "replicate", "subset", "relation", "first_answer", "answer_cluster"]
    groups = values.join(about, on="query_id").groupby(keys, sort=True)
    means = groups[["acc_at_1", "acc_at_10"]].mean().add_suffix("_by_answer").reset_index()
    return means.rename(columns={"first_answer": "query_id", "answer_cluster": "cluster"})


def _values_of_run(
    predictions: pd.DataFrame, queries: pd.DataFrame, has_scores: bool
) -> pd.DataFrame:
    """`values` of one variant and replicate."""
    table = _queries_of_subsets(predictions, queries)
    query_ids = table["query_id"]
    place = pd.Index(query_ids).get_indexer(predictions["query_id"])  # of each prediction's query
    rank, hit = predictions["rank"].to_numpy(), predictions["hit"].to_numpy(bool)
    best_rank = np.full(len(table), np.inf)
    np.minimum.at(best_rank, place[hit], rank[hit])
    for k in KS:
        table[f"acc_at_{k}"] = (best_rank <= k).astype(float)
    if has_scores:
        for k in KS:
            table[f"acc_at_{k}_tied"] = share_ties(predictions, place, len(table), k)
    if "answer_rank" in predictions:
        known = predictions.dropna(subset="answer_rank").drop_duplicates("query_id")
        ranks = query_ids.map(known.set_index("query_id")["answer_rank"])
        table["reciprocal_rank"] = (1 / ranks).fillna(0.0)
        table["names_ahead"] = ranks - 1
    subject = table.pop("subject")
    if not lists_outranking(predictions):
        firsts = predictions[rank == 1].set_index("query_id")
        first_prediction = query_ids.map(firsts["prediction"])
        table["subject_at_1"] = (first_prediction == subject).astype(float)
        if "rouge_l" in predictions:
            table["rouge_l"] = query_ids.map(firsts["rouge_l"]).fillna(0.0)
        if "unanswered" in predictions and predictions["unanswered"].notna().any():
            table["unanswered"] = (first_prediction.fillna("") == "").astype(float)
    return table


def _queries_of_subsets(predictions: pd.DataFrame, queries: pd.DataFrame) -> pd.DataFrame:
    """All queries of every subset that a variant and replicate has predictions for."""
    queries = queries[[*QUERY_KEYS, "subject"]]
    subset = predictions["query_id"].map(queries.set_index("query_id")["subset"])
    runs = predictions[["variant", "replicate"]].assign(subset=subset).drop_duplicates()
    table = runs.merge(queries, on="subset").sort_values(KEYS, ignore_index=True)
    return table[[*KEYS, *QUERY_KEYS[1:], "subject"]]


def share_ties(predictions: pd.DataFrame, place: np.ndarray, queries: int, k: int) -> np.ndarray:
    """The chance of a hit among the first k where equal scores are in random order: [queries].

    `place` says of which query each prediction is. With a scores above the k-th, g equal to it and
    h hits among these g, the chance is 1 where a score above is a hit, else 1 - C(g-h, k-a) /
    C(g, k-a). Ties are seen as far as the table goes: methods list up to five names behind the last
    that equal it.
    """
    score, hit = predictions["score"].to_numpy(), predictions["hit"].to_numpy(bool)
    is_within = predictions["rank"].to_numpy() <= k
    edge_score = np.full(queries, np.inf)
    np.minimum.at(edge_score, place[is_within], score[is_within])
    is_above, is_equal = score > edge_score[place], score == edge_score[place]

    def count(which: np.ndarray) -> np.ndarray:
        return np.bincount(place[which], minlength=queries)

    places_left = count(is_within) - count(is_above)  # fewer than k where there are not so many
    group, hits = count(is_equal), count(is_equal & hit)
    chance = 1 - comb(group - hits, places_left) / comb(group, places_left)
    return np.where(count(is_above & hit) > 0, 1.0, chance)


SCORER = Accuracy()
