"""Each query scored with the answers that the same model gave to other subjects: the control.

A model that does not look at the subject, whatever it knows of how usual answers are, scores the
same with its answers to its own subjects and to others (control tasks: Hewitt and Liang 2019).
Nothing is asked again: the answers are those of the prediction table. A search that lists no best
names asks its prompts about the answers of other queries itself, and writes the control's variant.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from medprobe.core.answers import loose, uncased
from medprobe.metrics import Scoring
from medprobe.metrics.statistics import (
    Clusters,
    PairedTest,
    control_test,
    control_tests,
    exchanges,
)
from medprobe.metrics.summary import QUERY_KEYS

SHUFFLED: Final = "shuffled"  # the variant that is this control of a method's main variant
LARGEST: Final = 2000  # queries of a relation that change places: memory grows with their square
BLOCK: Final = 4_000_000  # exchanged answers held at a time
Rule = Callable[[str], str]


def shuffled_name(variant: str) -> str:
    """Return the name of the variant that is the control of a variant.

    >>> shuffled_name(""), shuffled_name("relation")
    ('shuffled', 'shuffled-relation')
    """
    return f"{SHUFFLED}-{variant}" if variant else SHUFFLED


def is_shuffled(variant: str) -> bool:
    """Return whether a variant holds answers to other subjects."""
    return variant.partition("-")[0] == SHUFFLED


def original_variant(variant: str) -> str:
    """Return the variant that a shuffled one is the control of.

    >>> original_variant("shuffled"), original_variant("shuffled-relation")
    ('', 'relation')
    """
    return variant.partition("-")[2]


class Stratum(NamedTuple):
    """The queries of a relation, or of a block of a large one, and whose answers fit them."""

    queries: pd.DataFrame  # a row each
    clusters: np.ndarray  # as codes from 0
    hits: list[np.ndarray]  # for each k [queries, lists], a mean over replicates
    expected: list[np.ndarray]  # for each k [queries], with the answers to other clusters
    share: float  # the weight of all its queries: of a relation, 1


def find_strata(
    values: pd.DataFrame, predictions: pd.DataFrame, queries: pd.DataFrame, rule: Rule
) -> dict[str, list[Stratum]]:
    """Find out whose answers fit whom."""
    rule = strictest_rule(predictions, queries, rule)
    texts = {text: rule(text) for text in predictions["prediction"].unique()}
    listed = predictions[["replicate", "query_id", "rank"]].assign(
        text=predictions["prediction"].map(texts)
    )
    answers = queries.set_index("query_id")["answers"]
    means = values.groupby(["query_id"], sort=True)[_metrics(values)].mean()
    first = values.drop_duplicates("query_id").sort_values("query_id").set_index("query_id")
    first[_metrics(values)] = means
    places = first.index.get_indexer(listed["query_id"])
    strata: dict[str, list[Stratum]] = {}
    for (subset, _), rows in first.groupby(["subset", "relation"]):
        for block in _blocks(rows):
            table, clusters = block.reset_index(), pd.factorize(block["cluster"])[0]
            if clusters.max() == 0:
                continue
            found = [{*map(rule, names)} for names in answers[block.index]]
            in_block = np.append(first.index.isin(block.index), [False])  # the last of no query
            hits = _hits(table, listed[in_block[places]], found)
            expected = [shuffled_means(own, clusters) for own in hits]
            stratum = Stratum(table, clusters, hits, expected, len(block) / len(rows))
            strata.setdefault(str(subset), []).append(stratum)
    return strata


def without_queries(
    strata: dict[str, list[Stratum]], left_out: Collection[str], part: str
) -> dict[str, list[Stratum]]:
    """Return the strata of a part of each subset: without some queries, the rest counting alike."""
    parts: dict[str, list[Stratum]] = {}
    for subset, of_subset in strata.items():
        name = f"{subset}/{part}"
        for stratum in of_subset:
            kept = np.flatnonzero(~stratum.queries["query_id"].isin(left_out))
            clusters = np.unique(stratum.clusters[kept], return_inverse=True)[1]
            if clusters.max(initial=0) == 0:
                continue
            queries = stratum.queries.iloc[kept].reset_index(drop=True).assign(subset=name)
            hits = [own[np.ix_(kept, kept)] for own in stratum.hits]
            expected = [shuffled_means(own, clusters) for own in hits]
            rest = Stratum(queries, clusters, hits, expected, float(len(kept)))
            parts.setdefault(name, []).append(rest)
    return parts


def shuffled_values(values: pd.DataFrame, strata: dict[str, list[Stratum]]) -> pd.DataFrame:
    """Return the expected accuracy of each query with the answers to other clusters of names."""
    metrics = _metrics(values)
    tables = [
        stratum.queries[QUERY_KEYS].assign(**dict(zip(metrics, stratum.expected, strict=True)))
        for of_subset in strata.values()
        for stratum in of_subset
    ]
    if not tables:
        return values.head(0)
    variant = shuffled_name(str(values["variant"].iloc[0]))
    return pd.concat(tables, ignore_index=True).assign(variant=variant, replicate="")


TESTS: Final = ["variant", "subset", "metric", *PairedTest._fields, "n"]


def shuffled_tests(
    values: pd.DataFrame, strata: dict[str, list[Stratum]], scoring: Scoring
) -> pd.DataFrame:
    """Test each accuracy of a variant against that with shuffled answers (`control_test`)."""
    rows, variant = [], str(values["variant"].iloc[0])
    for subset, of_subset in strata.items():
        queries = pd.concat([stratum.queries for stratum in of_subset], ignore_index=True)
        clusters = Clusters.of(queries["cluster"].to_numpy(str), queries["answer"].to_numpy(str))
        weights = np.concatenate(
            [np.full(len(stratum.clusters), stratum.share / len(stratum.clusters))
             for stratum in of_subset]
        )  # fmt: skip
        names, confidence = _metrics(values), scoring.params.confidence
        own = [
            np.concatenate([np.diagonal(x.hits[at]) - x.expected[at] for x in of_subset])
            for at in range(len(names))
        ]
        drawn = _exchange(of_subset, scoring)
        tests = control_tests(own, drawn, weights, clusters, confidence=confidence)
        rows += [
            (variant, subset, metric, *test, len(queries))
            for metric, test in zip(names, tests, strict=True)
        ]
    return pd.DataFrame(rows, columns=TESTS)


def _exchange(strata: Sequence[Stratum], scoring: Scoring) -> Iterator[list[np.ndarray]]:
    """The differences of all queries under random exchanges, in blocks.

    Each block has for each metric [exchanges, queries].
    """
    draw, left = np.random.default_rng(scoring.seed), exchanges(scoring.tests)
    size = max(1, BLOCK // sum(len(stratum.clusters) for stratum in strata))
    while left:
        few = min(size, left)
        parts = []
        for stratum in strata:
            given = exchange_clusters(stratum.clusters, few, draw).T
            cells = given + np.arange(0, len(given) ** 2, len(given))[:, None]
            pairs = zip(stratum.hits, stratum.expected, strict=True)
            parts.append([hits.take(cells) - expected[:, None] for hits, expected in pairs])
        yield [np.concatenate(of_metric).T for of_metric in zip(*parts, strict=True)]
        left -= few


def exchange_clusters(
    clusters: np.ndarray, exchanges: int, draw: np.random.Generator
) -> np.ndarray:
    """Exchange whole clusters at random.

    Each cluster gets the places of another one, beginning at a random one of them, repeated or cut
    to its size.

    Returns:
        The place of the query whose answers each query gets, [exchanges, queries].
    """
    order, sizes = np.argsort(clusters, kind="stable"), np.bincount(clusters)
    starts = np.cumsum(sizes) - sizes
    place = np.empty(len(clusters), dtype=int)  # of each query in its cluster
    place[order] = np.arange(len(clusters)) - starts[clusters[order]]
    giver = draw.permuted(np.tile(np.arange(len(sizes)), (exchanges, 1)), axis=1)
    turn, giver = (np.ascontiguousarray(x.T) for x in (draw.integers(sizes[giver]), giver))
    within = turn[clusters]  # a row per query: fast to look up
    within += place[:, None]
    within %= sizes[giver][clusters]
    within += starts[giver][clusters]
    return np.asarray(order.take(within).T)


def draw_others(clusters: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Draw other queries for each query, each of another cluster: random rings of clusters.

    Returns:
        The places of the other queries, [count, queries]; none where there is one cluster.

    >>> draw_others(np.array([0, 1, 0]), 1, seed=1)
    array([[1, 0, 1]])
    """
    order, sizes = np.argsort(clusters, kind="stable"), np.bincount(clusters)
    starts, draw = np.cumsum(sizes) - sizes, np.random.default_rng(seed)
    place = np.empty(len(clusters), dtype=int)
    place[order] = np.arange(len(clusters)) - starts[clusters[order]]
    rows = []
    for _ in range(count if len(sizes) > 1 else 0):
        ring, giver = draw.permutation(len(sizes)), np.empty(len(sizes), dtype=int)
        giver[ring] = np.roll(ring, 1)
        turn = (draw.random(len(sizes)) * sizes[giver]).astype(int)
        source = giver[clusters]
        rows.append(order[starts[source] + (place + turn[clusters]) % sizes[source]])
    return np.array(rows, dtype=int).reshape(-1, len(clusters))


def compare_with_others(own: pd.DataFrame, others: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """Test a variant whose prompts were also asked about the answers of some other queries.

    For a model that does not look at the subject, a query's own answers are one more of these
    draws: each cluster of names takes any of them in their place.
    """
    rows, confidence = [], scoring.params.confidence
    for subset, of_subset in own.groupby("subset", sort=True):
        table = of_subset.set_index("query_id")
        for metric in _metrics(own):
            drawn = others[others["subset"] == subset].pivot_table(
                index="query_id", columns="replicate", values=metric
            )
            asked = table.loc[table.index.isin(drawn.index)]
            if asked.empty:
                continue
            every = np.column_stack([asked[metric], drawn.loc[asked.index]])
            differences = (every - every.mean(axis=1, keepdims=True)) * (
                every.shape[1] / (every.shape[1] - 1)
            )
            test = control_test(
                differences[:, 0],
                _choose(differences, asked, scoring),
                asked["weight"].to_numpy(float),
                Clusters.of(asked["cluster"].to_numpy(str), asked["answer"].to_numpy(str)),
                confidence=confidence,
            )
            rows.append((own["variant"].iloc[0], subset, metric, *test, len(asked)))
    return pd.DataFrame(rows, columns=TESTS)


def _choose(
    differences: np.ndarray, queries: pd.DataFrame, scoring: Scoring
) -> Iterator[np.ndarray]:
    """The differences where each cluster of a relation takes a random one of its draws."""
    draw, left = np.random.default_rng(scoring.seed), exchanges(scoring.tests)
    clusters = pd.factorize(queries["relation"] + " " + queries["cluster"])[0]
    size, places = max(1, BLOCK // len(queries)), np.arange(len(queries))
    while left:
        few = min(size, left)
        taken = draw.integers(differences.shape[1], size=(few, clusters.max() + 1))
        yield differences[places, taken[:, clusters]]
        left -= few


def strictest_rule(predictions: pd.DataFrame, queries: pd.DataFrame, rule: Rule) -> Rule:
    """Return the strictest rule by which all recorded hits are hits.

    Methods that write texts compare them without regard to case, or more loosely, and the answers
    to other queries have to be compared as their own were.
    """
    rows = predictions.loc[predictions["hit"].astype(bool), ["query_id", "prediction"]]
    answers = rows["query_id"].map(queries.set_index("query_id")["answers"])
    pairs = [*zip(rows["prediction"], answers, strict=True)]
    for candidate in (rule, uncased(rule)):
        if all(candidate(text) in {*map(candidate, names)} for text, names in pairs):
            return candidate
    return loose(rule)


def _metrics(values: pd.DataFrame) -> list[str]:
    """The accuracies that a list of answers decides, such as `acc_at_10`."""
    return [name for name in values if name.removeprefix("acc_at_").isdigit()]


def shuffled_means(hits: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Return how often each query is hit by the answers that other clusters got.

    Args:
        hits: [queries, lists]; whether the list that was given to a query holds an answer of
            another, 0 to 1. Rows are queries that are scored, columns whose list they are given.
        clusters: of each query, as codes from 0.

    Returns:
        The mean over the other clusters of the mean over each one's lists, [queries]; NaN where
        there is one cluster.

    >>> shuffled_means(np.array([[1, 0, 1], [0, 1, 0], [0, 0, 1]]), np.array([0, 0, 1]))
    array([1., 0., 0.])
    """
    sizes = np.bincount(clusters)
    members = csr_matrix((np.ones(len(clusters)), (np.arange(len(clusters)), clusters)))
    of_cluster = np.asarray(hits @ members) / sizes
    others = of_cluster.sum(axis=1) - of_cluster[np.arange(len(hits)), clusters]
    return others / (len(sizes) - 1) if len(sizes) > 1 else np.full(len(hits), np.nan)


def _blocks(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The queries of a relation, whole clusters of names together, in blocks of about LARGEST."""
    sizes = rows["cluster"].value_counts().sort_index()
    block_of = (sizes.cumsum() - sizes) // LARGEST
    for _, block in rows.groupby(rows["cluster"].map(block_of)):
        yield block


def _hits(
    table: pd.DataFrame, listed: pd.DataFrame, answers: Sequence[set[str]]
) -> list[np.ndarray]:
    """Whether each list holds an answer of each query, by metric; [queries, lists].

    The diagonal is what the method itself counted. Of one replicate they are bool: looked up often,
    a byte is faster than four.
    """
    codes = {text: code for code, text in enumerate(sorted(set[str]().union(*answers)))}
    size = (len(table), len(codes))
    pairs = [(row, codes[text]) for row, texts in enumerate(answers) for text in texts]
    rows, columns = np.array(pairs).T
    of_queries = csr_matrix((np.ones(len(pairs), np.float32), (rows, columns)), size)
    row_of = {query: row for row, query in enumerate(table["query_id"])}
    replicates = listed["replicate"].nunique()
    listed = listed.assign(code=listed["text"].map(codes)).dropna(subset="code")
    metrics = _metrics(table)
    totals = [np.zeros((len(table), len(table)), np.float32) for _ in metrics]
    for _, of_replicate in listed.groupby("replicate"):
        lists = of_replicate["query_id"].map(row_of).to_numpy()
        for place, metric in enumerate(metrics):
            within = (of_replicate["rank"] <= int(metric.removeprefix("acc_at_"))).to_numpy()
            cells = (lists[within], of_replicate["code"].to_numpy(int)[within])
            named = csr_matrix((np.ones(within.sum(), np.float32), cells), size)
            totals[place] += (of_queries @ named.T).toarray() > 0
    means = [total / max(1, replicates) for total in totals]
    for mean, metric in zip(means, metrics, strict=True):
        np.fill_diagonal(mean, table[metric])
    return [mean.astype(bool) if np.isin(mean, (0, 1)).all() else mean for mean in means]
