"""Resamples of whole clusters, for numbers that are no means: F1, AUROC, shares of rank changes.

Queries about one subject, or contexts around it, succeed and fail together. A resample therefore
draws whole clusters with replacement (Davison and Hinkley 1997, section 3.8), the same ones for all
metrics and relations. Means have their variance in closed form (`statistics.jackknife`).
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from medprobe.metrics.statistics import ROUNDING, Scale, interval

BLOCK: Final = 2_000_000  # drawn indices held at a time
MOST_COUNTS: Final = 8_000_000  # counts of the last draw are kept up to this size: 64 MB


def resampled_sums(sums: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Sums over resamples, with replacement, of the rows of `sums` (clusters x numbers).

    Returns resamples x numbers. The same number of clusters and seed draw the same clusters.
    """
    blocks = counts_of_clusters(len(sums), resamples, seed)
    return np.concatenate([counts @ sums for counts in blocks])


def counts_of_clusters(clusters: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each resample holds each cluster: [resamples, clusters], in blocks of resamples."""
    if resamples * clusters <= MOST_COUNTS:
        yield _cached_counts(clusters, resamples, seed)
    else:
        yield from draw_counts(clusters, resamples, seed)


def replicate_weights(replicates: int, resamples: int, seed: int) -> np.ndarray:
    """How often each replicate is taken, [1 + resamples, replicates]: once each, then as drawn.

    >>> replicate_weights(1, 2, seed=0).ravel(), replicate_weights(2, 500, seed=0)[0]
    (array([1., 1., 1.]), array([1., 1.]))
    """
    itself = np.ones((1, replicates))
    # Another seed than that of the clusters: both are drawn, and neither follows from the other.
    return np.concatenate([itself, *draw_counts(replicates, resamples, seed + 1)])


def resampled_means(values: np.ndarray, sizes: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Means over resamples of clusters.

    Args:
        values: sums of each cluster, [clusters, metrics].
        sizes: of each cluster, [clusters].
        resamples: number of resamples.
        seed: of the resamples.

    Returns:
        [resamples, metrics]; NaN where a resample has no cluster of any size.
    """
    return means_of_sums(resampled_sums(np.column_stack([values, sizes]), resamples, seed))


def means_of_sums(totals: np.ndarray) -> np.ndarray:
    """Means, from sums whose last column is the number summed; NaN where that is 0."""
    sums, counts = totals[..., :-1], totals[..., -1:]
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


@lru_cache(maxsize=2)
def _cached_counts(clusters: int, resamples: int, seed: int) -> np.ndarray:
    return np.concatenate(list(draw_counts(clusters, resamples, seed)))


def draw_counts(clusters: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each resample holds each cluster, some resamples at a time."""
    generator = np.random.default_rng(seed)
    block = max(1, BLOCK // clusters)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        yield draw_multiplicities(generator, size, clusters)


def draw_multiplicities(
    generator: np.random.Generator, resamples: int, clusters: int
) -> np.ndarray:
    """How often each resample holds each cluster, [resamples, clusters]."""
    clusters_drawn = generator.integers(0, clusters, (resamples, clusters))
    places = clusters_drawn + clusters * np.arange(resamples)[:, None]
    counts = np.bincount(places.ravel(), minlength=resamples * clusters)
    return counts.reshape(resamples, clusters).astype(float)


def resampled_interval(
    estimate: np.ndarray,
    means: np.ndarray,
    confidence: float,
    units: int,
    *,
    scales: Sequence[Scale] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of each metric (`statistics.interval`), from its values over resamples.

    Args:
        estimate: values of the sample itself, [metrics].
        means: values over resamples, [resamples, metrics]; NaN is left out.
        confidence: share of intervals that hold the truth.
        units: what was drawn, such as subjects or diseases.
        scales: the scale of each metric; all are shares where none are given.

    Returns:
        Lower bounds and upper bounds, [metrics]; NaN for fewer than three units, where a metric has
        no value in any resample, and where no resample differs from a value that could vary.
    """
    widening = np.sqrt(units / max(units - 1, 1))
    columns = [column[~np.isnan(column)] for column in means.T]
    deviation = np.array([widening * _deviation(column) for column in columns])
    value = np.where([len(column) > 0 for column in columns], estimate, np.nan)
    return interval(value, deviation, confidence, units, scales=scales)


def _deviation(draws: np.ndarray) -> float:
    """The standard deviation of resamples; 0 where they do not differ."""
    if not len(draws) or np.ptp(draws) <= ROUNDING * max(1.0, float(np.abs(draws).max())):
        return 0.0
    return float(draws.std())
