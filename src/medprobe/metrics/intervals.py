"""Bootstrap intervals over clusters: what chance draws whole.

Queries about one subject, or contexts around it, succeed and fail together. A resample therefore
draws whole clusters with replacement (Davison and Hinkley 1997, section 3.8), the same ones for all
metrics and relations. Replicates (seeds, sentence sets), where there are any, are drawn apart from
them (Owen 2007): an interval says how far a value would move with other clusters of the same kind
and other replicates.
"""

from collections.abc import Iterator
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from scipy.special import stdtrit

BLOCK: Final = 2_000_000  # drawn indices held at a time
KEPT: Final = 32_000_000  # counts of the last draw are kept up to this size: 256 MB


def resampled_sums(sums: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Sums over resamples, with replacement, of the rows of `sums` (clusters x numbers).

    Returns resamples x numbers. The same number of clusters and seed draw the same clusters.
    """
    if resamples * len(sums) <= KEPT:
        return _kept(len(sums), resamples, seed) @ sums
    return np.concatenate([counts @ sums for counts in drawn(len(sums), resamples, seed)])


def replicate_weights(replicates: int, resamples: int, seed: int) -> np.ndarray:
    """How often each replicate is taken, [1 + resamples, replicates]: once each, then as drawn.

    >>> replicate_weights(1, 2, seed=0).ravel(), replicate_weights(2, 500, seed=0)[0]
    (array([1., 1., 1.]), array([1., 1.]))
    """
    itself = np.ones((1, replicates))
    return np.concatenate([itself, *drawn(replicates, resamples, seed + 1)])


def resampled_means(values: np.ndarray, sizes: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Means of resamples, from the clusters' sums of values (clusters x metrics) and their sizes
    (clusters). Returns resamples x metrics; NaN where a resample has no cluster of any size."""
    sums = resampled_sums(np.column_stack([values, sizes]), resamples, seed)
    whole = sums[:, -1:]
    return np.divide(sums[:, :-1], whole, out=np.full_like(sums[:, :-1], np.nan), where=whole > 0)


@lru_cache(maxsize=2)
def _kept(clusters: int, resamples: int, seed: int) -> np.ndarray:
    return np.concatenate(list(drawn(clusters, resamples, seed)))


def drawn(clusters: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each resample holds each cluster, some resamples at a time."""
    generator = np.random.default_rng(seed)
    block = max(1, BLOCK // clusters)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        yield multiplicities(generator, size, clusters)


def multiplicities(generator: np.random.Generator, resamples: int, clusters: int) -> np.ndarray:
    """How often each resample holds each cluster, [resamples, clusters]."""
    drawn = generator.integers(0, clusters, (resamples, clusters))
    places = drawn + clusters * np.arange(resamples)[:, None]
    counts = np.bincount(places.ravel(), minlength=resamples * clusters)
    return counts.reshape(resamples, clusters).astype(float)


def interval(
    estimate: np.ndarray, means: np.ndarray, confidence: float, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds, by metric, from means over resamples (resamples x metrics) of n
    clusters; resamples that are NaN are left out.

    Percentiles, expanded for few clusters as t is against the normal distribution (Hesterberg 2015,
    section 5.3): without that intervals from ten clusters hold the truth nine times in ten, not
    nineteen in twenty. The bounds always hold the estimate. Where all resamples are 0 or all are 1
    the bootstrap says nothing about what other clusters would give: the bound is then Wilson's
    (1927) for n. Of one cluster there is no interval otherwise: NaN.
    """
    zero, one = (np.all((means == end) | np.isnan(means), axis=0) for end in (0, 1))
    low, high = percentiles(means, confidence, n)
    low, high = np.minimum(low, estimate), np.maximum(high, estimate)
    square = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    low, high = np.where(zero, 0.0, low), np.where(one, 1.0, high)
    return np.where(one, n / (n + square), low), np.where(zero, square / (n + square), high)


def percentiles(means: np.ndarray, confidence: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The expanded percentiles of `interval`, by metric; NaN where n is 1."""
    if n < 2:
        return np.full(means.shape[1], np.nan), np.full(means.shape[1], np.nan)
    reach = stdtrit(n - 1, (1 + confidence) / 2) * np.sqrt(n / (n - 1))
    tail = NormalDist().cdf(-reach)
    take = np.nanquantile if np.isnan(means).any() else np.quantile
    low, high = take(means, [tail, 1 - tail], axis=0)
    return low, high
