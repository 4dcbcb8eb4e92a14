"""Intervals, in closed form and of resamples: against scipy, and what they promise."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from medprobe.metrics.resampling import resampled_interval, resampled_means, resampled_sums
from medprobe.metrics.statistics import Clusters, Scale, interval, jackknife

marks = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=3, max_size=40)


def means(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Of values that are a cluster each."""
    return resampled_means(values, np.ones(len(values)), resamples, seed)


@given(marks, st.integers(1, 60), st.integers(0, 5))
def test_the_interval_holds_the_estimate(values: list[float], resamples: int, seed: int) -> None:
    matrix = np.array(values)[:, None]
    drawn = means(matrix, resamples, seed)
    low, high = resampled_interval(matrix.mean(axis=0), drawn, 0.95, len(matrix))
    assert drawn.shape == (resamples, 1)
    if np.isnan(low[0]):
        assert np.ptp(drawn) < 1e-12 and 0 < matrix.mean() < 1
        return
    assert 0 <= low[0] <= matrix.mean() + 1e-12
    assert matrix.mean() - 1e-12 <= high[0] <= 1


def test_blocks_do_not_change_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = resampled_sums(np.eye(10), 33, 5)
    assert whole.sum(axis=1) == pytest.approx(np.full(33, 10))
    monkeypatch.setattr("medprobe.metrics.resampling.BLOCK", 25)
    monkeypatch.setattr("medprobe.metrics.resampling.MOST_COUNTS", 1)
    again = resampled_sums(np.eye(10), 33, 5)
    assert again.shape == (33, 10)
    assert (again == whole).all()


def test_a_cluster_is_drawn_whole() -> None:
    """Five clusters of hits or misses: a mean is a number of fifths; alone they are finer."""
    sums, sizes = np.array([[4.0], [0], [0], [4], [4]]), np.full(5, 4.0)
    drawn = 5 * resampled_means(sums, sizes, 200, 0)
    assert drawn == pytest.approx(np.rint(drawn))


def test_of_many_clusters_the_interval_is_scipys() -> None:
    """Near the percentiles of scipy's own draws, of a mean over clusters of unequal size."""
    draw = np.random.default_rng(2)
    sizes = draw.integers(1, 6, 80).astype(float)
    sums = draw.binomial(sizes.astype(int), 0.3).astype(float)
    drawn = resampled_means(sums[:, None], sizes, 9999, 0)
    ours = resampled_interval(
        np.array([sums.sum() / sizes.sum()]), drawn, 0.95, 10**6
    )  # as of many clusters
    theirs = stats.bootstrap(
        (sums, sizes),
        lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=9999,
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert [float(edge[0]) for edge in ours] == pytest.approx(list(theirs), abs=0.004)


def bounds(values: np.ndarray, scale: Scale = "share") -> tuple[float, float]:
    """The interval of the mean of values that are a cluster each."""
    numbers, one = np.asarray(values, dtype=float), np.zeros(len(values), int)
    shares = (numbers - numbers.mean())[:, None] / len(numbers)
    spread = jackknife(shares, one, one, Clusters.of(np.arange(len(values))))
    low, high = interval(
        np.array([numbers.mean()]), spread.deviation, 0.95, len(values), scales=[scale]
    )
    return float(low[0]), float(high[0])


@given(marks)
def test_resamples_and_the_closed_form_give_nearly_the_same(values: list[float]) -> None:
    """Of single queries: 4,000 resamples err by some per cent of the width."""
    matrix = np.array(values)[:, None]
    drawn = means(matrix, 4000, 0)
    low, high = resampled_interval(matrix.mean(axis=0), drawn, 0.95, len(matrix))
    closed = bounds(np.array(values))
    width = closed[1] - closed[0]
    assert closed == pytest.approx((low[0], high[0]), abs=0.1 * width, nan_ok=True)


@pytest.mark.parametrize("units", [3, 8])
def test_any_other_number_has_the_interval_of_t(units: int) -> None:
    values = np.random.default_rng(0).normal(size=units)
    expected = stats.t.interval(0.95, units - 1, values.mean(), stats.sem(values))
    assert bounds(values, "plain") == pytest.approx(expected)


def test_what_is_above_zero_has_the_interval_of_its_logarithm() -> None:
    values = np.random.default_rng(0).lognormal(3, 0.5, 400)
    low, high = bounds(values, "log")
    assert np.sqrt(low * high) == pytest.approx(values.mean())
    error = stats.sem(values) / values.mean()  # of the logarithm, nearly
    assert np.log(high / low) / 2 == pytest.approx(stats.t.ppf(0.975, 399) * error, rel=1e-9)
    low, high = bounds(np.array([1.0, 1, 1, 1000]), "log")
    assert 0 < low < 250 < high


def test_a_share_has_the_score_interval_by_hand() -> None:
    """10 of 40: Wilson's bounds for 39 queries, since a variance is estimated, with t instead of
    1.96. scipy has Wilson's with 1.96."""
    t, size = stats.t.ppf(0.975, 39), 39
    middle = (0.25 + t**2 / (2 * size)) / (1 + t**2 / size)
    reach = t / (1 + t**2 / size) * np.sqrt(0.25 * 0.75 / size + t**2 / (4 * size**2))
    limits = bounds(np.arange(40) < 10)
    assert limits == pytest.approx((middle - reach, middle + reach))
    wilson = stats.binomtest(10, 40).proportion_ci(method="wilson")
    assert limits == pytest.approx((wilson.low, wilson.high), abs=0.01)


def test_no_hit_at_all_is_not_certainty() -> None:
    t = stats.t.ppf(0.975, 19)
    assert bounds(np.zeros(20)) == (0, pytest.approx(t**2 / (20 + t**2)))
    assert bounds(np.ones(20)) == (pytest.approx(20 / (20 + t**2)), 1)
    low, high = interval(np.array([1 - 1e-15]), np.zeros(1), 0.95, 20)  # a mean of ones, rounded
    assert (low[0], high[0]) == (pytest.approx(20 / (20 + t**2)), pytest.approx(1))


@pytest.mark.parametrize("queries", [5, 20, 40, 216])
def test_one_rule_serves_from_no_success_to_all(queries: int) -> None:
    """No bound falls as successes are added; one of 40 has a higher upper bound than none."""
    intervals = np.array([bounds(np.arange(queries) < hits) for hits in range(queries + 1)])
    assert (np.diff(intervals, axis=0) > 0).all()
    assert (intervals[0, 0], intervals[-1, 1]) == pytest.approx((0, 1), abs=1e-12)


@pytest.mark.parametrize("value", [-0.5, 1.5, 3.0])
def test_what_is_no_share_has_no_interval_of_one(value: float) -> None:
    """It would be NaN, without a word, or one between 0 and 1."""
    with pytest.raises(ValueError, match="is not a share: give the scale of its metric"):
        interval(np.array([value]), np.full(1, 0.1), 0.95, 40)
    low, high = interval(np.array([value]), np.full(1, 0.1), 0.95, 40, scales=["plain"])
    assert low[0] < value < high[0]


@pytest.mark.parametrize("units", [1, 2])
def test_fewer_than_three_units_have_no_interval(units: int) -> None:
    for values in (np.zeros(units), np.arange(units) + 0.5):
        assert np.isnan(bounds(values)).all()
        assert np.isnan(bounds(values, "plain")).all()


@pytest.mark.parametrize("scale", ["share", "log", "plain"])
def test_what_does_not_vary_has_no_interval(scale: Scale) -> None:
    """A model that says one word is right on half of each subject's statements: no precision."""
    assert np.isnan(bounds(np.full(80, 0.5), scale)).all()


def coverage(draw: Callable[[], np.ndarray], truth: float, scale: Scale = "share") -> float:
    """How often 95 % intervals hold the truth."""
    intervals = [bounds(draw(), scale) for _ in range(400)]
    return float(np.mean([low <= truth <= high for low, high in intervals]))


@pytest.mark.parametrize(("queries", "rate"), [(40, 0.02), (40, 0.3), (216, 0.02), (216, 0.3)])
def test_intervals_of_shares_hold_the_truth(queries: int, rate: float) -> None:
    random = np.random.default_rng(queries)
    assert 0.93 <= coverage(lambda: random.random(queries) < rate, rate) <= 0.995


@pytest.mark.parametrize("units", [3, 6])
def test_intervals_of_few_units_hold_the_truth(units: int) -> None:
    random = np.random.default_rng(units)
    assert coverage(lambda: random.normal(size=units), 0, "plain") > 0.92


def test_of_heavy_tails_the_log_scale_holds_better() -> None:
    def measure_coverage(scale: Scale) -> float:
        random = np.random.default_rng(5)
        return coverage(lambda: random.lognormal(size=40), float(np.exp(0.5)), scale)

    assert measure_coverage("log") > max(0.9, measure_coverage("plain"))
