"""Bootstrap intervals over clusters: what chance draws whole.

Queries about one subject, or contexts around it, succeed and fail together. A resample therefore
draws whole clusters with replacement (Davison and Hinkley 1997, section 3.8), the same ones for all
metrics and relations. Replicates (seeds, sentence sets), where there are any, are drawn apart from
them (Owen 2007): an interval says how far a value would move with other clusters of the same kind
and other replicates. `two_way` says how much wider it is where answers are drawn as well, and where
one unit has much of the weight.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from scipy.special import stdtrit

BLOCK: Final = 2_000_000  # drawn indices held at a time
MOST_COUNTS: Final = 8_000_000  # counts of the last draw are kept up to this size: 64 MB
FEWEST: Final = 3  # units that have an interval
ROUNDING: Final = 1e-12  # values this close are equal

Scale = Literal["share", "log", "plain"]  # of a metric: between 0 and 1, above 0, or any number


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


def interval(
    estimate: np.ndarray,
    means: np.ndarray,
    confidence: float,
    units: int,
    *,
    scales: Sequence[Scale] | None = None,
    widening: np.ndarray | None = None,
    freedom: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of each metric, from its values over resamples.

    A value between 0 and 1 has Wilson's (1927) score interval, with two changes: the sample size is
    the one that would give the variance over resamples (the effective size of a clustered sample:
    Dean and Pagano 2015), and Student's t for `units` takes the place of the normal distribution.
    Where no resample differs from 0, or from 1, the effective size is `units`. So one rule serves
    from no success to all. A value on the log scale has a t-interval of its logarithm, any other
    value one of itself.

    Args:
        estimate: values of the sample itself, [metrics].
        means: values over resamples, [resamples, metrics]; NaN is left out.
        confidence: share of intervals that hold the truth.
        units: what was drawn, such as subjects or diseases.
        scales: the scale of each metric; all are shares where none are given.
        widening: what each deviation over resamples is multiplied with, [metrics]; by default the
            root of units / (units - 1).
        freedom: degrees of freedom of Student's t; by default units - 1.

    Returns:
        Lower bounds and upper bounds, [metrics]; NaN for fewer than three units, and where no
        resample differs from a value that could vary.

    Raises:
        ValueError: a value on the scale of shares is not between 0 and 1.
    """
    bounds = np.full((2, len(estimate)), np.nan)
    if units < FEWEST:
        return bounds[0], bounds[1]
    t = float(stdtrit(freedom or units - 1, (1 + confidence) / 2))
    scales = scales or ["share"] * len(estimate)
    if widening is None:
        widening = np.full(len(estimate), np.sqrt(units / (units - 1)))
    for place, (value, scale) in enumerate(zip(estimate, scales, strict=True)):
        draws = means[~np.isnan(means[:, place]), place]
        if len(draws) and not np.isnan(value):
            draws = np.log(draws) if scale == "log" else draws
            deviation = float(widening[place]) * _deviation(draws)
            bounds[:, place] = _bounds(float(value), deviation, t, units, scale)
    return bounds[0], bounds[1]


def _bounds(
    value: float, deviation: float, t: float, units: int, scale: Scale
) -> tuple[float, float]:
    """The interval of one metric from its standard error, of the logarithm on the log scale."""
    if scale == "share" and not -ROUNDING <= value <= 1 + ROUNDING:
        raise ValueError(f"{value:g} is not a share: give the scale of its metric")
    at_an_end = scale == "share" and min(value, 1 - value) < ROUNDING
    if not deviation and not at_an_end:
        return np.nan, np.nan
    if scale == "log":
        return value * np.exp(-t * deviation), value * np.exp(t * deviation)
    if scale == "plain":
        return value - t * deviation, value + t * deviation
    size = float(units) if at_an_end else value * (1 - value) / deviation**2
    middle = (value + t**2 / (2 * size)) / (1 + t**2 / size)
    reach = t * np.sqrt(value * (1 - value) / size + t**2 / (4 * size**2)) / (1 + t**2 / size)
    return float(max(middle - reach, 0.0)), float(min(middle + reach, 1.0))


def _deviation(draws: np.ndarray) -> float:
    """The standard deviation of resamples; 0 where they do not differ."""
    if np.ptp(draws) <= ROUNDING * max(1.0, float(np.abs(draws).max())):
        return 0.0
    return float(draws.std())


def percentiles(means: np.ndarray, confidence: float, units: int) -> tuple[np.ndarray, np.ndarray]:
    """Percentiles of resamples, by metric; NaN for fewer than three units.

    They are expanded as t is against the normal distribution (Hesterberg 2015, section 5.3).
    """
    if units < FEWEST:
        return np.full(means.shape[1], np.nan), np.full(means.shape[1], np.nan)
    reach = stdtrit(units - 1, (1 + confidence) / 2) * np.sqrt(units / (units - 1))
    tail = NormalDist().cdf(-reach)
    take = np.nanquantile if np.isnan(means).any() else np.quantile
    low, high = take(means, [tail, 1 - tail], axis=0)
    return low, high
