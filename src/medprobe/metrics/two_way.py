"""What a mean says of a relation: subjects are drawn, and answers too.

Queries about one subject succeed and fail together, and so do queries with one answer: a model that
likes an answer is right wherever it is right. A claim about a relation, and not about these answers
alone, has to reckon with both. The variance of a mean under two crossed clusterings is the sum of
the variances under each, less that under their intersection (Cameron, Gelbach and Miller 2011,
section 2.2).

An answer that most queries have hides its own deviation, since the mean is close to it. Two ways
lead out. The interval of one system takes the variances of the delete-one jackknife, which
recomputes the mean without each subject, answer and pair (MacKinnon, Nielsen and Webb 2024, section
4), and Student's t with effective degrees of freedom (`jackknife`). For a difference of two systems
there is a value to test, 0, and the variance around it hides nothing (`paired_test`).
"""

from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from medprobe.metrics.intervals import FEWEST, ROUNDING

POWER_QUANTILE: Final = NormalDist().inv_cdf(0.8)  # a true difference is found four times in five


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
        scale = ROUNDING * np.abs(differences).max()
        return float(np.sqrt(variance)) if variance > scale**2 else 0.0

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
