"""What a mean says of a relation: subjects are drawn, and answers too.

Queries about one subject succeed and fail together, and so do queries with one answer: a model that
likes an answer is right wherever it is right. A claim about a relation, and not about these answers
alone, has to reckon with both. The variance of a mean under two crossed clusterings is the sum of
the variances under each, less that under their intersection (Cameron, Gelbach and Miller 2011,
section 2.2), with degrees of freedom from the smaller side.
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


def variances(
    shares: np.ndarray, subjects: np.ndarray, answers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Variances of sums of queries' shares: over subjects alone, and over subjects and answers.

    Args:
        shares: what each query adds to the sums, [queries, sums].
        subjects: the subject of each query, as codes from 0.
        answers: its answer, as codes from 0.

    Returns:
        Both variances, [sums]; the second is never below the first.

    >>> shares = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    >>> variances(shares, np.arange(4), np.array([0, 0, 1, 1]))
    (array([4.]), array([8.]))
    """
    pairs = np.unique(subjects * (answers.max() + 1) + answers, return_inverse=True)[1]
    by_subject, by_answer, by_pair = (
        _squares(shares, codes) for codes in (subjects, answers, pairs)
    )
    return by_subject, np.max([by_subject, by_answer, by_subject + by_answer - by_pair], axis=0)


def _squares(shares: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The sum over clusters of the squared sums within them, [sums]."""
    sums = np.stack([np.bincount(codes, column) for column in shares.T])
    return np.asarray((sums**2).sum(axis=1))


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

    The test takes the variance around 0, as the hypothesis says, the interval that around the mean.

    Args:
        differences: of two systems, by query.
        weights: of the queries in the mean.
        subjects: the subject of each query, as codes from 0.
        answers: its answer, as codes from 0.
        level: of the test that the smallest difference is found by.
        confidence: of the interval.

    Returns:
        The test. p is 1 where nothing differs, and for fewer than three subjects or answers, which
        have no interval either.
    """
    units = min(len(np.unique(subjects)), len(np.unique(answers)))
    if units < FEWEST:
        return TwoWayTest(1.0, np.nan, np.nan, np.inf, units)
    share = weights / weights.sum()
    mean = float(share @ differences)
    columns = np.stack([share * differences, share * (differences - mean)], axis=1)
    deviations = np.sqrt(variances(columns, subjects, answers)[1])
    deviations[deviations < ROUNDING * np.abs(differences).max()] = 0
    around_zero, around_mean = deviations
    p = 2 * stdtr(units - 1, -abs(mean) / around_zero) if around_zero else 1.0
    reach = stdtrit(units - 1, (1 + confidence) / 2) * around_mean
    needed = (stdtrit(units - 1, 1 - level / 2) + POWER_QUANTILE) * around_mean
    smallest = float(needed) if needed else np.nan
    return TwoWayTest(float(p), mean - float(reach), mean + float(reach), smallest, units)
