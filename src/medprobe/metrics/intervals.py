"""Bootstrap intervals over queries.

Percentile intervals of means (Efron and Tibshirani 1993, chapter 13). An interval says how far a
value would move with other queries of the same kind; the deviation over replicates (seeds, sentence
sets) is another matter and stands beside it.
"""

from statistics import NormalDist

import numpy as np

BLOCK = 2_000_000  # drawn indices held at a time


def resampled_means(
    values: np.ndarray, resamples: int, generator: np.random.Generator
) -> np.ndarray:
    """Means of resamples, with replacement, of the rows of `values` (queries x metrics).

    Returns resamples x metrics. All metrics share each resample's queries.
    """
    n = len(values)
    block = max(1, BLOCK // n)
    means = []
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        drawn = generator.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        means.append(counts @ values / n)
    return np.concatenate(means)


def interval(
    estimate: np.ndarray, means: np.ndarray, confidence: float, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds, by metric, from resampled means (resamples x metrics).

    The bounds always hold the estimate. Where all resamples are 0 or all are 1 the bootstrap says
    nothing about what other queries would give: the bound is then Wilson's (1927) for n queries.
    """
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    low, high = np.minimum(low, estimate), np.maximum(high, estimate)
    square = NormalDist().inv_cdf(1 - tail) ** 2
    high = np.where((means == 0).all(axis=0), square / (n + square), high)
    low = np.where((means == 1).all(axis=0), n / (n + square), low)
    return low, high
