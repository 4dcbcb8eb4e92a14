"""The statistics behind every number: variance, interval, paired test, control test, correction.

Queries are not independent. Those about subjects with similar names succeed and fail together, and
so do those with one answer, so both are clusters. One variance serves intervals and tests: that
over clusters of subjects, plus that over clusters of answers, less that over pairs of both
(Cameron, Gelbach and Miller 2011), and never below either of the first two. Where a table has all
answers of its relations, each query is its own cluster of answers (`summary.cluster_queries`), and
what is left is the variance over subjects.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Final, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import stdtr, stdtrit

LEVEL: Final = 0.05  # of significance
FEWEST: Final = 3  # clusters that have an interval or a test
ROUNDING: Final = 1e-12  # values this close are equal; a variance of so little is rounding
POWER_QUANTILE: Final = NormalDist().inv_cdf(0.8)  # a true difference is found four times in five

Scale = Literal["share", "log", "plain"]  # of a metric: between 0 and 1, above 0, or any number


@dataclass(frozen=True)
class Clusters:
    """What the queries of a table have in common, as codes from 0.

    Attributes:
        subjects: of each query, the cluster of its subject.
        answers: of each query, the cluster of its answer.
    """

    subjects: np.ndarray
    answers: np.ndarray

    @classmethod
    def of(cls, subjects: np.ndarray, answers: np.ndarray | None = None) -> "Clusters":
        """Return the clusters of codes or names; without answers each query has its own."""
        queries = np.arange(len(subjects))
        return cls(_codes(subjects), queries if answers is None else _codes(answers))

    @cached_property
    def pairs(self) -> np.ndarray:
        """Of each query, its pair of subject and answer."""
        return _codes(self.subjects * (int(self.answers.max(initial=0)) + 1) + self.answers)

    @cached_property
    def sides(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Subjects, answers, and pairs of both."""
        return self.subjects, self.answers, self.pairs

    @property
    def units(self) -> int:
        """How many clusters of subjects or of answers there are, whichever are fewer."""
        return 1 + int(min(self.subjects.max(initial=-1), self.answers.max(initial=-1)))

    def at(self, places: np.ndarray) -> "Clusters":
        """The clusters of some of the queries."""
        return Clusters.of(self.subjects[places], self.answers[places])


def _codes(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1]


class Spread(NamedTuple):
    """How far means move with other subjects and answers."""

    deviation: np.ndarray  # of each mean, [means]
    units: int  # subjects or answers, whichever are fewer
    freedom: float  # degrees of freedom of Student's t


def jackknife(
    shares: np.ndarray, groups: np.ndarray, relations: np.ndarray, clusters: Clusters
) -> Spread:
    """Return the deviation of means over subjects and answers, leaving out a cluster at a time.

    Without a cluster that has the share h of a group's queries, the group's mean moves by the sum
    of the cluster's shares over 1 - h. The variance over n clusters is (n - 1) / n times the sum of
    the squared moves (MacKinnon, Nielsen and Webb 2024). A cluster that is a whole group moves
    nothing.

    A relation with clusters of weights w has v = sum(w^2) of the variance, if they vary alike, and
    sum(w)^2 / v effective clusters. It has as many degrees of freedom, less 1, and at least 1. The
    mean has sum(v)^2 / sum(v^2 / freedom) over relations (Satterthwaite 1946), but no more than
    its own clusters have, whatever their relations. The smaller side counts.

    Args:
        shares: what each query adds to the means, around the mean of its group, [queries, means].
        groups: what the means are averaged over, such as relations, as codes from 0. Groups count
            alike, and so do the queries of a group.
        relations: the relation of each query, as codes from 0.
        clusters: of the queries.

    >>> one, each = np.zeros(4, int), np.arange(4)
    >>> shares = np.array([[1.0], [1.0], [-1.0], [-1.0]]) / 4
    >>> jackknife(shares, one, one, Clusters.of(each, np.array([0, 0, 1, 1])))
    Spread(deviation=array([1.]), units=2, freedom=1.0)
    """
    by_subject, by_answer, by_pair = (
        np.diagonal(_products(shares * _moves(codes, groups)[:, None], codes))
        * (codes.max() / (codes.max() + 1))
        for codes in clusters.sides
    )
    variance = np.max([by_subject, by_answer, by_subject + by_answer - by_pair], axis=0)
    weights = 1 / np.bincount(groups)[groups]
    freedom = min(
        _freedom(weights, strata, codes)
        for codes in clusters.sides[:2]
        for strata in (relations, np.zeros_like(relations))
    )
    deviation = np.sqrt(np.where(variance > ROUNDING**2, variance, 0.0))
    return Spread(deviation, clusters.units, freedom)


def _freedom(weights: np.ndarray, strata: np.ndarray, codes: np.ndarray) -> float:
    """The degrees of freedom of a weighted mean, by clusters within strata (`jackknife`)."""
    cells, places = np.unique(codes * (strata.max() + 1) + strata, return_inverse=True)
    cell_weights, cell_strata = np.bincount(places, weights), cells % (strata.max() + 1)
    squares = np.bincount(cell_strata, cell_weights**2)
    effective = np.bincount(cell_strata, cell_weights) ** 2 / squares
    return float(squares.sum() ** 2 / (squares**2 / np.maximum(effective - 1, 1)).sum())


def _moves(codes: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """1 / (1 - h) for each query, where h is the share of its cluster in its group; 0 for all."""
    cells = _codes(codes * (groups.max() + 1) + groups)
    share = np.bincount(cells)[cells] / np.bincount(groups)[groups]
    return np.divide(1, 1 - share, out=np.zeros(len(share)), where=share < 1)


def _products(shares: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The sum over clusters of the products of the sums within them, [sums, sums]."""
    sums = np.stack([np.bincount(codes, column) for column in shares.T])
    return np.asarray(sums @ sums.T)


def interval(
    value: np.ndarray,
    deviation: np.ndarray,
    confidence: float,
    units: int,
    *,
    freedom: float | None = None,
    scales: Sequence[Scale] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of means, from their deviations.

    A value between 0 and 1 has Wilson's (1927) score interval, with two changes: the sample size is
    the one that would give this variance (the effective size of a clustered sample: Dean and Pagano
    2015), and Student's t takes the place of the normal distribution. Of 0 and 1, whose deviation
    is 0, the effective size is `units`. So one rule serves from no success to all. A value on the
    log scale has a t-interval of its logarithm, any other value one of itself.

    Args:
        value: the means, [metrics].
        deviation: of each, [metrics].
        confidence: share of intervals that hold the truth.
        units: what chance has drawn, such as subjects or diseases.
        freedom: degrees of freedom of Student's t; by default units - 1.
        scales: the scale of each metric; all are shares where none are given.

    Returns:
        Lower bounds and upper bounds, [metrics]; NaN for fewer than three units, and where nothing
        varies although another value is possible.
    """
    bounds = np.full((2, len(value)), np.nan)
    if units >= FEWEST:
        t = float(stdtrit(freedom or units - 1, (1 + confidence) / 2))
        of_scale: Sequence[Scale] = scales or ["share"] * len(value)
        numbers = zip(value, deviation, of_scale, strict=True)
        for place, (number, error, scale) in enumerate(numbers):
            if not np.isnan(number):
                bounds[:, place] = _bounds(float(number), float(error), t, units, scale)
    return bounds[0], bounds[1]


def _bounds(
    value: float, deviation: float, t: float, units: int, scale: Scale
) -> tuple[float, float]:
    if scale == "share" and not -ROUNDING <= value <= 1 + ROUNDING:
        raise ValueError(f"{value:g} is not a share: give the scale of its metric")
    at_an_end = scale == "share" and min(value, 1 - value) < ROUNDING
    if not deviation and not at_an_end:
        return np.nan, np.nan
    if scale == "log":
        return value * np.exp(-t * deviation / value), value * np.exp(t * deviation / value)
    if scale == "plain":
        return value - t * deviation, value + t * deviation
    size = float(units) if at_an_end else value * (1 - value) / deviation**2
    middle = (value + t**2 / (2 * size)) / (1 + t**2 / size)
    reach = t * np.sqrt(value * (1 - value) / size + t**2 / (4 * size**2)) / (1 + t**2 / size)
    return float(max(middle - reach, 0.0)), float(min(middle + reach, 1.0))


class PairedTest(NamedTuple):
    """A test of a mean difference over subjects and answers."""

    difference: float
    low: float  # of the interval of the difference
    high: float
    p: float
    smallest_difference: float  # that is found four times in five at the given level; inf: none
    units: int  # of the smaller side
    untestable: str  # why no difference could be significant, such as "4 independent answers"

    def of_shares(self) -> "PairedTest":
        """The test of a difference of shares, whose interval is between -1 and 1."""
        return self._replace(low=max(self.low, -1.0), high=min(self.high, 1.0))


class _Forms:
    """The variance of a weighted mean around a tested value x: squares - 2 x crossed + x^2 weight.

    Each of the three numbers has a place for subjects, answers, and both; the largest form counts.
    """

    def __init__(self, differences: np.ndarray, weights: np.ndarray, clusters: Clusters) -> None:
        self.share = weights / weights.sum()
        columns = np.stack([self.share * differences, self.share], axis=1)
        subjects, answers, pairs = (_products(columns, codes) for codes in clusters.sides)
        forms = np.stack([subjects, answers, subjects + answers - pairs])
        self.squares, self.crossed, self.weight = forms[:, 0, 0], forms[:, 0, 1], forms[:, 1, 1]
        self.mean = float(self.share @ differences)

    def deviation(self, tested: float) -> float:
        """That of the mean, around the value that is tested."""
        variance = (self.squares - 2 * tested * self.crossed + tested**2 * self.weight).max()
        terms = (self.squares + tested**2 * self.weight).max()  # they cancel if all are equal
        return float(np.sqrt(variance)) if variance > ROUNDING * terms else 0.0

    def bound(self, t: float, side: Literal[-1, 1]) -> float:
        """The last value that is not rejected on a side; NaN where none could be rejected.

        x is not rejected: (mean - x)^2 <= t^2 (squares - 2 x crossed + x^2 weight), by one form.
        """
        curve, middle = 1 - t**2 * self.weight, self.mean - t**2 * self.crossed
        if curve.min() <= 0:
            return np.nan
        with np.errstate(invalid="ignore"):  # one of the three may reject all
            reach = np.sqrt(middle**2 - curve * (self.mean**2 - t**2 * self.squares))
        ends = (middle + side * reach) / curve
        return float((np.fmin if side < 0 else np.fmax).reduce(ends, initial=self.mean))

    def smallest(self, t: float) -> float:
        """The mean x that is found four times in five, if its variance grows by x^2 `weight`."""
        deviation, z, curve = (
            self.deviation(self.mean),
            POWER_QUANTILE,
            1 - t**2 * self.weight.max(),
        )
        if not deviation or curve <= 0:
            return np.inf if curve <= 0 else np.nan
        # (x - z deviation)^2 = t^2 (deviation^2 + x^2 weight)
        return float(deviation * (z + np.sqrt(z**2 + curve * (t**2 - z**2))) / curve)

    def cause(self) -> str:
        """What is too few for a test, as the effective number of the side that has fewer."""
        side = int(self.weight[1] > self.weight[0])
        count = max(1, round(1 / float(self.weight[side])))
        noun = ("subject", "answer")[side]
        return f"{count} independent {noun}{'s' if count != 1 else ''}"


def paired_test(
    differences: np.ndarray,
    weights: np.ndarray,
    clusters: Clusters,
    *,
    confidence: float = 0.95,
    level: float = LEVEL,
) -> PairedTest:
    """Test whether a weighted mean of paired differences is 0.

    The mean is divided by its deviation around 0, and compared with Student's t. This keeps its
    level however unlike the clusters are (Bakirov and Székely 2005), so one answer may have most of
    the queries. The interval has the means that the same test does not reject.
    """
    forms, units = _Forms(differences, weights, clusters), clusters.units
    if units < FEWEST:
        return PairedTest(forms.mean, np.nan, np.nan, 1.0, np.inf, units, forms.cause())
    error = forms.deviation(0)
    p = float(2 * stdtr(units - 1, -abs(forms.mean) / error)) if error else 1.0
    t = float(stdtrit(units - 1, (1 + confidence) / 2))
    smallest = forms.smallest(float(stdtrit(units - 1, 1 - level / 2)))
    untestable = forms.cause() if np.isinf(smallest) else ""
    low, high = forms.bound(t, -1), forms.bound(t, 1)
    return PairedTest(forms.mean, low, high, p, smallest, units, untestable)


def control_test(
    differences: np.ndarray,
    drawn: Iterable[np.ndarray],
    weights: np.ndarray,
    clusters: Clusters,
    *,
    confidence: float = 0.95,
) -> PairedTest:
    """Test whether a model's answers fit its own subjects better than other ones.

    A model that does not look at subjects would as well have given its answers to other ones of the
    relation: whole clusters of names are exchanged. The mean is divided by its two-way deviation
    around 0, in the data and in each exchange alike (a studentised permutation test: Janssen 1997;
    Chung and Romano 2013). So models that answer alike for kinds of subjects wider than clusters of
    names, whose deviation is larger, seldom seem to know them.

    Args:
        differences: of each query, its value less that expected with answers to other subjects.
        drawn: the same under random exchanges, in blocks, [exchanges, queries] each.
        weights: of the queries in the mean.
        clusters: of the queries.
        confidence: of the interval.

    Returns:
        The test. p is two-sided: twice the share of exchanges, the data among them, that are as far
        on the side of the data. The interval has the differences that the same test does not
        reject. Without exchanges p is 1.
    """
    blocks = ([block] for block in drawn)
    return control_tests([differences], blocks, weights, clusters, confidence=confidence)[0]


def control_tests(
    differences: Sequence[np.ndarray],
    drawn: Iterable[Sequence[np.ndarray]],
    weights: np.ndarray,
    clusters: Clusters,
    *,
    confidence: float = 0.95,
) -> list[PairedTest]:
    """`control_test` of several metrics that share their exchanges.

    `differences` and each block of `drawn` have one entry for each metric.
    """
    share = weights / weights.sum()
    members = [
        csr_matrix((np.ones(len(codes)), (codes, np.arange(len(codes)))))
        for codes in clusters.sides
    ]
    ratios = [[np.zeros(0)] for _ in differences]
    for blocks in drawn:
        for of_metric, block in zip(ratios, blocks, strict=True):
            of_metric.append(_studentised(block * share, members))
    return [
        _control_test(
            _Forms(values, weights, clusters),
            clusters.units,
            float(_studentised((values * share)[None], members)[0]),
            np.concatenate(of_metric),
            confidence,
        )
        for values, of_metric in zip(differences, ratios, strict=True)
    ]


def _control_test(
    forms: _Forms, units: int, own: float, ratios: np.ndarray, confidence: float
) -> PairedTest:
    """The test of one metric, from its ratio of mean to deviation and those under exchanges."""
    as_far = min((ratios >= own - ROUNDING).sum(), (ratios <= own + ROUNDING).sum())
    p = min(1.0, 2 * (1 + int(as_far)) / (1 + len(ratios)))
    low = high = np.nan
    if len(ratios) and units >= FEWEST:
        below, above = np.quantile(ratios, [(1 - confidence) / 2, (1 + confidence) / 2])
        low, high = forms.bound(max(float(above), 0.0), -1), forms.bound(max(float(-below), 0.0), 1)
    return PairedTest(forms.mean, low, high, p, np.nan, units, "").of_shares()


def _studentised(shares: np.ndarray, members: Sequence[csr_matrix]) -> np.ndarray:
    """The sum of each row over its two-way deviation around 0; 0 where nothing differs."""
    subjects, answers, pairs = (((side @ shares.T) ** 2).sum(axis=0) for side in members)
    variance = np.max([subjects, answers, subjects + answers - pairs], axis=0)
    variance = np.where(variance > ROUNDING * (shares**2).sum(axis=1), variance, np.inf)
    return np.asarray(shares.sum(axis=1) / np.sqrt(variance))


def exchanges(tests: int) -> int:
    """How many exchanges are drawn where so many tests are corrected for.

    The smallest p is 2 / (1 + exchanges). It stays below a fifth of the level that the first test
    of Holm's method needs, and changes in steps, so that few additions to a project change it.

    >>> exchanges(1), exchanges(40)
    (1999, 7999)
    """
    drawn = 2000
    while drawn < 5 * 2 * tests / LEVEL:
        drawn *= 2
    return drawn - 1


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
