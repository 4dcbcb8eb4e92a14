"""Which differences between two systems are more than chance.

Paired sign-flip tests over whole clusters.

If two systems were alike, the difference in all that one cluster holds could as well have had the
other sign (Fisher 1935; Dror et al. 2018, section 3.2). The chance of a difference as large as the
observed one, over all 2^clusters ways to choose the signs, is computed and not drawn: it has no
error of its own, and is as small as it is, so that any number of tests can be corrected for.

Hits have few outcomes, and the one that was observed a chance of its own. Counted in whole it makes
a test careful: at a level of .05 it errs less often than that. Half of it is counted, which is the
mid-p (Lancaster 1961; for two systems' hits: Fagerland, Lydersen and Laake 2013).
"""

from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from medprobe.metrics.intervals import FEWEST, percentiles, resampled_means

POWER_QUANTILE: Final = NormalDist().inv_cdf(0.8)  # a true difference is found four times in five
CANCELLED: Final = 1e-12  # a variance of so little of its terms is their rounding


class TwoWayTest(NamedTuple):
    """A paired test of a mean difference over subjects and answers."""

    p: float
    low: float  # of the interval of the difference
    high: float
    smallest_difference: float  # that is found at the given level, with the given power
    units: int  # of the smaller side


class Jackknife(NamedTuple):
    """How far means move with other subjects and answers."""

    widening: np.ndarray  # of a deviation over resamples of subjects, [sums]
    units: int  # subjects or answers, whichever are fewer
    freedom: float  # degrees of freedom of Student's t


def jackknife(
    shares: np.ndarray,
    groups: np.ndarray,
    relations: np.ndarray,
    subjects: np.ndarray,
    answers: np.ndarray,
) -> Jackknife:
    """Compare the delete-one variance over subjects and answers with that of resampled subjects.

    Without a cluster that has the share h of a group's queries, the group's mean moves by the sum
    of the cluster's shares over 1 - h. The variance over n clusters is (n - 1) / n times the sum of
    the squared moves. A cluster that is a whole group moves nothing. The sum of those over subjects
    and over answers, less that over their pairs, is never below either of the first two.

    A relation with clusters of weights w has v = sum(w^2) of the variance, if they vary alike, and
    sum(w)^2 / v effective clusters. It has as many degrees of freedom, less 1, and at least 1. The
    mean has sum(v)^2 / sum(v^2 / freedom) over relations (Satterthwaite 1946), but no more than
    its own clusters have, whatever their relations. The smaller side counts.

    Args:
        shares: what each query adds to the sums, around the mean of its group, [queries, sums].
        groups: what the means are averaged over, such as relations, as codes from 0. Groups count
            alike, and so do the queries of a group.
        relations: the relation of each query, as codes from 0.
        subjects: its subject, as codes from 0.
        answers: its answer, as codes from 0.

    Returns:
        The root of the ratio of both variances, 1 where no subject differs, and the units.

    >>> one, each = np.zeros(4, int), np.arange(4)
    >>> shares = np.array([[1.0], [1.0], [-1.0], [-1.0]]) / 4
    >>> jackknife(shares, one, one, each, np.array([0, 0, 1, 1]))
    Jackknife(widening=array([2.]), units=2, freedom=1.0)
    """
    by_subject, by_answer, by_pair = (
        _squares(shares * _moves(codes, groups)[:, None], codes) * codes.max() / (codes.max() + 1)
        for codes in (subjects, answers, _pairs(subjects, answers))
    )
    both = np.max([by_subject, by_answer, by_subject + by_answer - by_pair], axis=0)
    resampled = _squares(shares, subjects)
    ratio = np.divide(both, resampled, out=np.ones_like(both), where=resampled > 0)
    weights = 1 / np.bincount(groups)[groups]
    freedom = min(
        _freedom(weights, strata, codes)
        for codes in (subjects, answers)
        for strata in (relations, np.zeros_like(relations))
    )
    return Jackknife(np.sqrt(ratio), 1 + int(min(subjects.max(), answers.max())), freedom)


def _freedom(weights: np.ndarray, strata: np.ndarray, codes: np.ndarray) -> float:
    """The degrees of freedom of a weighted mean, by clusters within strata (`jackknife`)."""
    cells, places = np.unique(codes * (strata.max() + 1) + strata, return_inverse=True)
    cell_weights, cell_strata = np.bincount(places, weights), cells % (strata.max() + 1)
    squares = np.bincount(cell_strata, cell_weights**2)
    effective = np.bincount(cell_strata, cell_weights) ** 2 / squares
    return float(squares.sum() ** 2 / (squares**2 / np.maximum(effective - 1, 1)).sum())


def _moves(codes: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """1 / (1 - h) for each query, where h is the share of its cluster in its group; 0 for all."""
    cells = np.unique(codes * (groups.max() + 1) + groups, return_inverse=True)[1]
    share = np.bincount(cells)[cells] / np.bincount(groups)[groups]
    return np.divide(1, 1 - share, out=np.zeros(len(share)), where=share < 1)


def _pairs(subjects: np.ndarray, answers: np.ndarray) -> np.ndarray:
    return np.unique(subjects * (answers.max() + 1) + answers, return_inverse=True)[1]


def _squares(shares: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The sum over clusters of the squared sums within them, [sums]."""
    return np.diagonal(_products(shares, codes))


def _products(shares: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The sum over clusters of the products of the sums within them, [sums, sums]."""
    sums = np.stack([np.bincount(codes, column) for column in shares.T])
    return np.asarray(sums @ sums.T)


def paired_test(
    differences: np.ndarray,
    weights: np.ndarray,
    subjects: np.ndarray,
    answers: np.ndarray,
    *,
    level: float,
    confidence: float,
) -> TwoWayTest:
    """Test whether a weighted mean of paired differences is 0 for the relation.

    The sum of the differences is divided by its deviation around 0, and compared with Student's t.
    This keeps its level however unlike the clusters are (Bakirov and Székely 2005), so one answer
    may have most of the queries. The interval has the means that the same test does not reject.

    Args:
        differences: of two systems, by query.
        weights: of the queries in the mean.
        subjects: the subject of each query, as codes from 0.
        answers: its answer, as codes from 0.
        level: of the test that the smallest difference is found by.
        confidence: of the interval.

    Returns:
        The test. p is 1 where nothing differs, and for fewer than three subjects or answers. These
        have no interval, nor have so few with so much weight that no mean could be rejected.
    """
    units = min(len(np.unique(subjects)), len(np.unique(answers)))
    if units < FEWEST:
        return TwoWayTest(1.0, np.nan, np.nan, np.inf, units)
    share = weights / weights.sum()
    mean = float(share @ differences)
    columns = np.stack([share * differences, share], axis=1)
    by_subject, by_answer, by_pair = (
        _products(columns, codes) for codes in (subjects, answers, _pairs(subjects, answers))
    )
    forms = np.stack([by_subject, by_answer, by_subject + by_answer - by_pair])
    squares, crossed, weight = forms[:, 0, 0], forms[:, 0, 1], forms[:, 1, 1]

    def deviation(tested: float) -> float:
        """That of the mean, around the one that is tested."""
        variance = (squares - 2 * tested * crossed + tested**2 * weight).max()
        terms = (squares + tested**2 * weight).max()  # which cancel where all differences are equal
        return float(np.sqrt(variance)) if variance > CANCELLED * terms else 0.0

    p = 2 * stdtr(units - 1, -abs(mean) / deviation(0)) if deviation(0) else 1.0
    # x is not rejected: (mean - x)^2 <= t^2 (squares - 2 x crossed + x^2 weight), by one of three
    t = stdtrit(units - 1, (1 + confidence) / 2)
    curve, middle = 1 - t**2 * weight, mean - t**2 * crossed
    low = high = np.nan
    if curve.min() > 0:
        with np.errstate(invalid="ignore"):  # one of the three may reject all
            reach = np.sqrt(middle**2 - curve * (mean**2 - t**2 * squares))
        low = np.fmin.reduce((middle - reach) / curve, initial=mean)
        high = np.fmax.reduce((middle + reach) / curve, initial=mean)
    smallest = _smallest(deviation(mean), stdtrit(units - 1, 1 - level / 2), weight.max())
    return TwoWayTest(float(p), float(low), float(high), smallest, units)


def _smallest(deviation: float, t: float, weight: float) -> float:
    """The mean x that is found four times in five, if a variance grows by x^2 times `weight`."""
    z, curve = POWER_QUANTILE, 1 - t**2 * weight
    if not deviation or curve <= 0:
        return np.inf if deviation else np.nan
    # (x - z deviation)^2 = t^2 (deviation^2 + x^2 weight)
    return float(deviation * (z + np.sqrt(z**2 + curve * (t**2 - z**2))) / curve)


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


def holm(chances: np.ndarray, untested: int = 0) -> np.ndarray:
    """p-values corrected for their number (Holm 1979), in the order given.

    What the results have chosen to test is corrected for the pairs that were left out, too.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(chances, kind="stable")
    steps = np.maximum.accumulate(chances[order] * np.arange(len(chances) + untested, untested, -1))
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
