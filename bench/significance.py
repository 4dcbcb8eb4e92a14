"""Do the paired tests keep their promise? False alarms and power in a simulation of 16 models.

    python -m bench.significance                    # the tables of docs/statistics.md: 3 minutes
    python -m bench.significance --simulations 20   # rough

Hits are drawn with a difficulty of each query and of each cluster, such as a subject, that all
models share, and with a knack of each model for each cluster, so that differences of two models run
together within clusters. First no model knows more than another: every difference that is called
significant is a false alarm. Then eight of the models know more, by just the smallest difference
that the page would have called detectable.

A second table asks how often intervals hold the truth where a method is run several times (seeds,
sentence sets): drawing clusters alone, and replicates too.
"""

import argparse
from itertools import combinations, product
from typing import Final

import numpy as np
import pandas as pd
from scipy.stats import norm

from medprobe.core.params import ScoreParams
from medprobe.metrics import Scoring
from medprobe.metrics.comparisons import (
    difference_interval,
    holm,
    permutation,
    smallest_difference,
)
from medprobe.metrics.summary import summarise

MODELS: Final = 16
LEVEL: Final = 0.05
ACCURACY: Final = 0.3
CASES: Final = (  # queries, cluster size
    *((2000, 1), (2000, 5), (2000, 20), (2000, 100)),
    *((200, 1), (200, 5), (200, 20), (40, 1)),
)
QUERY, CLUSTER, KNACK = 0.8, 0.8, 0.6  # deviations, in those of a single answer
SPREAD: Final = np.sqrt(1 + QUERY**2 + CLUSTER**2 + KNACK**2)


def clusters(queries: int, size: int, draw: np.random.Generator) -> np.ndarray:
    """The cluster of each query: of sizes from 1 to twice the mean, less 1, evenly drawn."""
    sizes = draw.integers(1, 2 * size, 4 * queries // size)
    return np.repeat(np.arange(len(sizes)), sizes)[:queries]


def hits(of: np.ndarray, accuracies: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Which queries each model gets right: models x queries, as numbers."""
    models, groups = len(accuracies), of.max() + 1
    common = QUERY * draw.normal(size=len(of)) + CLUSTER * draw.normal(size=groups)[of]
    knack = KNACK * draw.normal(size=(models, groups))[:, of]
    level = norm.ppf(accuracies) * SPREAD
    return (level[:, None] + common + knack + draw.normal(size=(models, len(of))) > 0).astype(float)


def by_cluster(found: np.ndarray, of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hits of each model in each cluster, and the clusters' sizes."""
    sums = np.stack([np.bincount(of, row) for row in found])
    return sums, np.bincount(of).astype(float)


def simulate(queries: int, size: int, simulations: int, seed: int = 0) -> dict[str, float]:
    """The rates of one case, as a row of the table."""
    draw = np.random.default_rng([seed, queries, size])
    pairs = list(combinations(range(MODELS), 2))
    apart = [(2 * one, 2 * one + 1) for one in range(MODELS // 2)]  # share no model
    level = LEVEL / len(pairs)
    single, naive, any_alarm, held, smallest = [], [], [], [], []
    for _ in range(simulations):
        of = clusters(queries, size, draw)
        found = hits(of, np.full(MODELS, ACCURACY), draw)
        sums, sizes = by_cluster(found, of)
        p = np.array([permutation(sums[a] - sums[b]) for a, b in pairs])
        single.append((p < LEVEL).mean())
        any_alarm.append((holm(p) < LEVEL).any())
        for a, b in apart:
            naive.append(permutation(found[a] - found[b]) < LEVEL)
            low, high = difference_interval(sums[a] - sums[b], sizes, 1000, 1 - LEVEL, seed)
            held.append(low <= 0 <= high)
            smallest.append(smallest_difference(sums[a] - sums[b], sizes, level))
    true = float(np.median(smallest))
    power, corrected = [], []
    accuracies = ACCURACY + true * ((np.arange(MODELS) >= MODELS // 2) - 0.5)
    better = [pairs.index(pair) for pair in product(range(MODELS // 2), range(MODELS // 2, MODELS))]
    for _ in range(simulations if np.isfinite(true) else 0):  # too few clusters for any
        of = clusters(queries, size, draw)
        sums, _ = by_cluster(hits(of, accuracies, draw), of)
        p = np.array([permutation(sums[a] - sums[b]) for a, b in pairs])
        power.append((p[better] < level).mean())
        corrected.append((holm(p)[better] < LEVEL).mean())
    return {
        "queries": queries,
        "of a cluster": size,
        "false alarms": float(np.mean(single)),
        "query by query": float(np.mean(naive)),
        "any of 120, corrected": float(np.mean(any_alarm)),
        "intervals that hold": float(np.mean(held)),
        "smallest difference": true,
        "found": float(np.mean(power)) if power else np.nan,
        "found after Holm": float(np.mean(corrected)) if power else np.nan,
    }


REPLICATES: Final = (2, 3, 5, 10)
RUN: Final = 0.25  # deviation of a replicate, in that of a single answer


def replicated(replicates: int, simulations: int, queries: int = 200) -> dict[str, float]:
    """How often intervals hold the accuracy that queries and replicates without end would have:
    of means over replicates, from clusters alone, and as they are."""
    draw = np.random.default_rng([1, replicates])
    scoring = Scoring(ScoreParams(bootstrap=500, confidence=1 - LEVEL), seed=0)
    level = norm.ppf(ACCURACY) * np.sqrt(1 + QUERY**2 + RUN**2)
    alone, both = [], []
    for _ in range(simulations):
        shared = QUERY * draw.normal(size=(queries, 1)) + RUN * draw.normal(size=replicates)
        found = (level + shared + draw.normal(size=shared.shape) > 0).astype(float)
        for held, hits_of in ((both, found), (alone, found.mean(axis=1, keepdims=True))):
            query, replicate = np.indices(hits_of.shape).reshape(2, -1)
            names = query.astype(str)
            keys = {"variant": "", "replicate": replicate.astype(str), "query_id": names}
            about = {"subset": "all", "relation": "r", "cluster": names}
            rows = pd.DataFrame({**keys, **about, "hit": hits_of.ravel()})
            numbers = summarise(rows, scoring)["default"]["all"]["micro"]["hit"]
            held.append(numbers["low"] <= ACCURACY <= numbers["high"])
    return {
        "replicates": replicates,
        "intervals that hold, of clusters alone": float(np.mean(alone)),
        "of both": float(np.mean(both)),
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=400)
    simulations = parser.parse_args().simulations
    show([simulate(queries, size, simulations) for queries, size in CASES], 2)
    show([replicated(replicates, simulations) for replicates in REPLICATES], 1)


def show(rows: list[dict[str, float]], counts: int) -> None:
    """Print rows as a table whose first columns are counts and all others shares."""
    heads = list(rows[0])
    print("\n|", " | ".join(heads), "|")
    print("|" + " ---: |" * len(heads))
    for row in rows:
        shown = [str(row[head]) for head in heads[:counts]]
        shares = [row[head] for head in heads[counts:]]
        shown += [f"{100 * share:.1f} %" if np.isfinite(share) else "–" for share in shares]
        print("|", " | ".join(shown), "|")


if __name__ == "__main__":
    main()
