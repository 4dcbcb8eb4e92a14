"""What a table of facts can show: how often a model that knows some of them is found.

Models are simulated on the table itself. One knows a share of the facts, and of the others names
the usual answers, or nothing that is right. The test is that of every control (`shuffled`).
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from medprobe.metrics.shuffled import exchange_clusters, shuffled_means
from medprobe.metrics.statistics import LEVEL, Clusters, control_test, paired_test

WORLDS: Final = 40
EXCHANGES: Final = 99  # of each test: p is .02 at least
KNOWN: Final = (0.1, 0.2)  # shares of the facts
GAINS: Final = (0.2, 0.3, 0.5)  # by which one of two models knows more
BASE: Final = 0.2  # what the other of them knows
LARGEST: Final = 300  # queries that are simulated: of more, so many are drawn


class Power(NamedTuple):
    """How often something is found, 0 to 1.

    Attributes:
        known: share of the facts that a model knows -> how often it is above its control: at worst,
            if it else names usual answers, and at best, if it is else wrong.
        gains: by how much one of two models knows more -> how often they differ significantly.
    """

    known: dict[float, tuple[float, float]]
    gains: dict[float, float]


def power(queries: pd.DataFrame, seed: int) -> Power:
    """Simulate models on the queries of a benchmark."""
    draw = np.random.default_rng(seed)
    if len(queries) > LARGEST:
        queries = queries.iloc[draw.permutation(len(queries))[:LARGEST]]
    relations = [*_relations(queries.sort_values("relation", kind="stable"))]
    sizes = [len(relation.clusters) for relation in relations]
    weights = np.concatenate([np.full(size, 1 / size) for size in sizes])
    ordered = queries.sort_values("relation", kind="stable")
    clusters = Clusters.of(ordered["cluster"].to_numpy(str), ordered["answer"].to_numpy(str))
    found: dict[float, list[list[bool]]] = {share: [[], []] for share in KNOWN}
    differ: dict[float, list[bool]] = {gain: [] for gain in GAINS}
    for _ in range(WORLDS):
        for share in KNOWN:
            knows = draw.random(len(weights)) < share
            for habit, results in enumerate(found[share]):
                results.append(_is_above(relations, knows, clusters, draw, has_habit=not habit))
        luck = draw.random((2, len(weights)))
        for gain in GAINS:
            first, second = luck[0] < min(1.0, BASE + gain), luck[1] < BASE
            test = paired_test(first.astype(float) - second, weights, clusters)
            differ[gain].append(test.p < LEVEL and test.difference > 0)
    shares = {share: (np.mean(a), np.mean(b)) for share, (a, b) in found.items()}
    return Power(
        {share: (float(min(pair)), float(max(pair))) for share, pair in shares.items()},
        {gain: float(np.mean(results)) for gain, results in differ.items()},
    )


class _Relation(NamedTuple):
    clusters: np.ndarray  # of each query, as codes from 0
    right: np.ndarray  # [queries, answers]: which are right


def _relations(queries: pd.DataFrame) -> Iterator[_Relation]:
    for _, rows in queries.groupby("relation", sort=True):
        names = {name: place for place, name in enumerate(sorted({*rows["answers"].explode()}))}
        right = np.zeros((len(rows), len(names)), dtype=bool)
        for row, answers in enumerate(rows["answers"]):
            right[row, [names[name] for name in answers]] = True
        yield _Relation(pd.factorize(rows["cluster"])[0], right)


def _is_above(
    relations: Sequence[_Relation],
    knows: np.ndarray,
    clusters: Clusters,
    draw: np.random.Generator,
    *,
    has_habit: bool,
) -> bool:
    """Is a model above its answers to other subjects, which knows these facts?"""
    own, drawn, weights, start = [], [], [], 0
    for codes, right in relations:
        size, answers = right.shape
        usual = right.sum(axis=0) / right.sum()
        named = np.full(size, answers)
        if has_habit:
            named = np.asarray(draw.choice(answers, size, p=usual))
        is_known = knows[start : start + size]
        named[is_known] = right[is_known].argmax(axis=1)
        lists = np.arange(answers + 1)[:, None] == named  # the last place: no answer of the table
        hits = (right.astype(np.float32) @ lists[:answers].astype(np.float32)) > 0
        expected = np.nan_to_num(shuffled_means(hits.astype(float), codes))
        given = exchange_clusters(codes, EXCHANGES, draw)
        own.append(np.diagonal(hits) - expected)
        drawn.append(hits[np.arange(size), given] - expected)
        weights.append(np.full(size, 1 / size))
        start += size
    test = control_test(
        np.concatenate(own), [np.concatenate(drawn, axis=1)], np.concatenate(weights), clusters
    )
    return test.difference > 0 and test.p < LEVEL


def describe(found: Power, facts: int) -> str:
    """Say what a table can show.

    >>> describe(Power({0.1: (0.3, 0.7), 0.2: (0.7, 0.95)}, {0.2: 0.3, 0.3: 0.5, 0.5: 0.9}), 30)
    'What 30 facts can show: 20 % known beyond habit is found in 7 to 10 of 10 cases, 10 % in 3 to \
7; of two models, 50 points more are found in 9 of 10, 30 points in 5, 20 points in 3'
    """

    def cases(low: float, high: float) -> str:
        bounds = [f"{10 * share:.0f}" for share in (low, high)]
        return bounds[0] if bounds[0] == bounds[1] else " to ".join(bounds)

    shares = sorted(found.known, reverse=True)
    parts = [f"{100 * share:.0f} % {{}}in {cases(*found.known[share])}" for share in shares]
    known = parts[0].format("known beyond habit is found ") + " of 10 cases"
    known += "".join(f", {part.format('')}" for part in parts[1:])
    gains = sorted(found.gains, reverse=True)
    texts = [f"{100 * gain:.0f} points" for gain in gains]
    more = f"{texts[0]} more are found in {10 * found.gains[gains[0]]:.0f} of 10"
    more += "".join(
        f", {text} in {10 * found.gains[gain]:.0f}"
        for text, gain in zip(texts[1:], gains[1:], strict=True)
    )
    noun = "fact" if facts == 1 else "facts"
    return f"What {facts:,} {noun} can show: {known}; of two models, {more}"
