"""Which differences between two systems are more than chance.

Paired tests that turn round whole clusters.

If two systems were alike, the difference in all that one cluster holds could as well have had the
other sign (Fisher 1935; Dror et al. 2018, section 3.2). The chance of a difference as large as the
observed one, over all 2^clusters ways to choose the signs, is computed and not drawn: it has no
error of its own, and is as small as it is, so that any number of tests can be corrected for.

Hits have few outcomes, and the one that was observed a chance of its own. Counted in whole it makes
a test careful: at a level of .05 it errs less often than that. Half of it is counted, which is the
mid-p (Lancaster 1961; for two systems' hits: Fagerland, Lydersen and Laake 2013).
"""

from typing import Final

import numpy as np
from scipy.special import stdtrit

from medprobe.metrics.intervals import percentiles, resampled_means
from medprobe.metrics.two_way import POWER_QUANTILE

FEW: Final = 6  # clusters that differ: to so few mid-p would promise too much, 1 outcome in 16
COUNTED: Final = 16  # clusters that differ: so few have their outcomes listed one by one
REACH: Final = 9.0  # standard deviations: what lies beyond is rarer than 1e-17 (Hoeffding 1963)
STEPS: Final = 200  # to a standard deviation, where differences are no multiples of a number
LEAST: Final = 1e-15  # no p is smaller: the sums of a Fourier transform are rounded there


def permutation(sums: np.ndarray) -> float:
    """Two-sided mid-p of a paired permutation test, from each cluster's share in the difference.

    The (weighted) sum of its queries' differences. Where up to 6 clusters differ it is the exact p,
    which counts outcomes as far as the observed one in whole.

    No outcome is left out where up to 16 clusters differ, or where all shares are multiples of one
    number, as the hits of one run are; else the shares are rounded to a 200th, or less, of the
    standard deviation of their sum. p is in [1e-15, 1].

    >>> permutation(np.array([1.0, 1.0, 1.0, 0.0])), permutation(np.array([2.0, -2.0]))
    (0.25, 1.0)
    """
    sizes = np.abs(sums)
    differ = sizes > 1e-9 * sizes.max(initial=0.0)
    sizes, sums = sizes[differ], sums[differ]
    if not len(sizes):
        return 1.0
    observed = abs(float(sums.sum()))
    if len(sizes) <= COUNTED:
        outcomes = np.zeros(1)
        for size in sizes:
            outcomes = np.concatenate([outcomes + size, outcomes - size])
        further = np.abs(outcomes) - observed
        as_far = np.abs(further) <= 1e-9 * sizes.sum()
        tie_weight = 1.0 if len(sizes) <= FEW else 0.5
        return float(((further > 0) & ~as_far).mean() + tie_weight * as_far.mean())
    spread = float(np.sqrt((sizes**2).sum()))
    if observed > REACH * spread:
        return LEAST
    step = _unit(sizes) or spread / max(STEPS, 8 * len(sizes) ** 0.5)
    return float(np.clip(_beyond(sizes / step, observed / step), LEAST, 1.0))


def _unit(sizes: np.ndarray) -> float:
    """A number that all sizes are multiples of, or 0 where none of a reasonable size is."""
    for parts in range(1, 13):
        unit = sizes.min() / parts
        if (sizes.max() / unit) < 1e4 and np.abs(sizes / unit - np.rint(sizes / unit)).max() < 1e-6:
            return float(unit)
    return 0.0


def _beyond(sizes: np.ndarray, observed: float) -> float:
    """The chance that a sum with random signs is further from 0 than the observed one.

    Sizes are rounded to whole numbers; those rounded to 0 are together a normal variable. Half of
    the chance of being as far is added. The characteristic function, a product of cosines, is
    transformed back.
    """
    steps, least = np.rint(sizes).astype(int), int(np.rint(observed))
    reach = max(least, int(REACH * np.sqrt((sizes**2).sum()))) + 1
    size = 1 << int(2 * reach).bit_length()  # sums beyond the reach fall together, all but never
    turns = 2 * np.pi / size * np.arange(size // 2 + 1)
    values, counts = np.unique(steps[steps > 0], return_counts=True)
    cosines = np.cos(np.outer(values, turns))
    with np.errstate(divide="ignore"):
        logs = counts @ np.log(np.abs(cosines))
    logs -= (sizes[steps == 0] ** 2).sum() * turns**2 / 2
    signs = 1 - 2 * (counts @ (cosines < 0) % 2)
    chances = np.fft.irfft(signs * np.exp(logs), size)
    as_far = chances[least] * (2 if least else 1)
    return float(chances[least : size - least + 1].sum() - as_far / 2)


def difference_interval(
    sums: np.ndarray, sizes: np.ndarray, resamples: int, confidence: float, seed: int
) -> tuple[float, float]:
    """Paired bootstrap interval of the mean difference.

    Args:
        sums: (weighted) sums of differences, [clusters].
        sizes: sums of weights, [clusters].
        resamples: number of resamples.
        confidence: of the interval.
        seed: of the resamples.

    Returns:
        Lower and upper bound; NaN for fewer than three clusters.
    """
    means = resampled_means(sums[:, None], sizes, resamples, seed)
    low, high = percentiles(means, confidence, len(sums))
    mean = sums.sum() / sizes.sum()
    return float(np.minimum(low, mean)[0]), float(np.maximum(high, mean)[0])


def holm(chances: np.ndarray) -> np.ndarray:
    """p-values corrected for their number (Holm 1979), in the order given.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(chances, kind="stable")
    steps = np.maximum.accumulate(chances[order] * np.arange(len(chances), 0, -1))
    corrected = np.empty(len(chances))
    corrected[order] = np.minimum(steps, 1.0)
    return corrected


def smallest_difference(sums: np.ndarray, sizes: np.ndarray, level: float) -> float:
    """The smallest true mean difference that a test finds four times in five (Cohen 1988).

    It follows from the noncentral t, or, if few clusters differ, from the number of clusters that
    must differ at all. Infinite if even all clusters on one side are too few; NaN if no cluster
    differs or there is only one, because the spread is then unknown.

    Args:
        sums: (weighted) sums of differences, [clusters].
        sizes: sums of weights, [clusters].
        level: of the test.
    """
    n, differ = len(sums), np.abs(sums) > 1e-9 * np.abs(sums).max(initial=0.0)
    if n < 2 or not differ.any():
        return float("nan")
    needed = 1 - np.log2(level)  # clusters on one side, for two of 2^needed outcomes to be rare
    if needed > FEW:
        needed = max(needed - 1, FEW + 1)  # of which mid-p counts one
    if n < needed:
        return float("inf")
    mean = sums.sum() / sizes.sum()
    errors = sums - mean * sizes
    spread = np.sqrt(n / (n - 1) * (errors**2).sum())
    t = stdtrit(n - 1, 1 - level / 2)
    by_spread = (
        t + POWER_QUANTILE * np.sqrt(1 + t**2 / (2 * (n - 1)))
    ) * spread  # noncentral t, nearly
    by_count = (needed + POWER_QUANTILE * np.sqrt(needed)) * np.abs(sums[differ]).mean()
    return float(max(by_spread, by_count) / sizes.sum())
