"""Intervals and paired tests, by cluster: against scipy, and what they promise."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from medprobe.metrics.comparisons import (
    LEAST,
    difference_interval,
    holm,
    permutation,
    smallest_difference,
)
from medprobe.metrics.intervals import Scale, interval, resampled_means, resampled_sums

chances = st.lists(st.floats(0, 1), min_size=1, max_size=20)
marks = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=3, max_size=40)


def means(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Of values that are a cluster each."""
    return resampled_means(values, np.ones(len(values)), resamples, seed)


@given(marks, st.integers(1, 60), st.integers(0, 5))
def test_the_interval_holds_the_estimate(values: list[float], resamples: int, seed: int) -> None:
    matrix = np.array(values)[:, None]
    drawn = means(matrix, resamples, seed)
    low, high = interval(matrix.mean(axis=0), drawn, 0.95, len(matrix))
    assert drawn.shape == (resamples, 1)
    if np.isnan(low[0]):
        assert np.ptp(drawn) < 1e-12 and 0 < matrix.mean() < 1
        return
    assert 0 <= low[0] <= matrix.mean() + 1e-12
    assert matrix.mean() - 1e-12 <= high[0] <= 1


def test_blocks_do_not_change_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = resampled_sums(np.eye(10), 33, 5)
    assert whole.sum(axis=1) == pytest.approx(np.full(33, 10))
    monkeypatch.setattr("medprobe.metrics.intervals.BLOCK", 25)
    monkeypatch.setattr("medprobe.metrics.intervals.MOST_COUNTS", 1)
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
    ours = interval(np.array([sums.sum() / sizes.sum()]), drawn, 0.95, 10**6)  # as of many clusters
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


def bounds(
    values: np.ndarray, scale: Scale = "share", resamples: int = 1000
) -> tuple[float, float]:
    """The interval of the mean of values that are a cluster each."""
    matrix = np.asarray(values, dtype=float)[:, None]
    drawn = means(matrix, resamples, 1)
    low, high = interval(matrix.mean(axis=0), drawn, 0.95, len(matrix), scales=[scale])
    return float(low[0]), float(high[0])


@pytest.mark.parametrize("units", [3, 8])
def test_any_other_number_has_the_interval_of_t(units: int) -> None:
    values = np.random.default_rng(0).normal(size=units)
    expected = stats.t.interval(0.95, units - 1, values.mean(), stats.sem(values))
    assert bounds(values, "plain", 20_000) == pytest.approx(expected, abs=0.03 * np.ptp(expected))


def test_what_is_above_zero_has_the_interval_of_its_logarithm() -> None:
    values = np.random.default_rng(0).lognormal(3, 0.5, 400)
    low, high = bounds(values, "log", 20_000)
    assert np.sqrt(low * high) == pytest.approx(values.mean())
    error = stats.sem(values) / values.mean()  # of the logarithm, nearly
    assert np.log(high / low) / 2 == pytest.approx(stats.t.ppf(0.975, 399) * error, rel=0.03)
    low, high = bounds(np.array([1.0, 1, 1, 1000]), "log")
    assert 0 < low < 250 < high


def test_a_share_has_the_score_interval_by_hand() -> None:
    """10 of 40: Wilson's bounds for 39 queries, since a variance is estimated, with t instead of
    1.96. scipy has Wilson's with 1.96."""
    t, size = stats.t.ppf(0.975, 39), 39
    middle = (0.25 + t**2 / (2 * size)) / (1 + t**2 / size)
    reach = t / (1 + t**2 / size) * np.sqrt(0.25 * 0.75 / size + t**2 / (4 * size**2))
    limits = bounds(np.arange(40) < 10, resamples=20_000)
    assert limits == pytest.approx((middle - reach, middle + reach), abs=0.003)
    wilson = stats.binomtest(10, 40).proportion_ci(method="wilson")
    assert limits == pytest.approx((wilson.low, wilson.high), abs=0.01)


def test_no_hit_at_all_is_not_certainty() -> None:
    t = stats.t.ppf(0.975, 19)
    assert bounds(np.zeros(20)) == (0, pytest.approx(t**2 / (20 + t**2)))
    assert bounds(np.ones(20)) == (pytest.approx(20 / (20 + t**2)), 1)
    nearly = np.full((100, 1), 1 - 1e-15)  # a mean of ones, rounded
    low, high = interval(nearly[0], nearly, 0.95, 20)
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
    draws = value + np.linspace(-0.1, 0.1, 50)[:, None]
    with pytest.raises(ValueError, match="is not a share: give the scale of its metric"):
        interval(np.array([value]), draws, 0.95, 40)
    low, high = interval(np.array([value]), draws, 0.95, 40, scales=["plain"])
    assert low[0] < value < high[0]


@pytest.mark.parametrize("units", [1, 2])
def test_fewer_than_three_units_have_no_interval(units: int) -> None:
    for values in (np.zeros(units), np.arange(units) + 0.5):
        assert np.isnan(bounds(values)).all()
        assert np.isnan(bounds(values, "plain")).all()
    assert np.isnan(difference_interval(np.arange(units), np.ones(units), 10, 0.95, 0)).all()


@pytest.mark.parametrize("scale", ["share", "log", "plain"])
def test_what_no_resample_moves_has_no_interval(scale: Scale) -> None:
    """A model that says one word is right on half of each subject's statements: no precision."""
    assert np.isnan(bounds(np.full(80, 0.5), scale)).all()


def test_answers_that_are_drawn_too_widen_it() -> None:
    draws = means(np.random.default_rng(0).normal(size=(50, 1)), 500, 0)
    once, twice = (
        interval(np.zeros(1), draws, 0.95, 50, scales=["plain"], widening=np.array([factor]))
        for factor in (1.0, 1.5)
    )
    assert twice[1] - twice[0] == pytest.approx(1.5 * (once[1] - once[0]))


def coverage(draw: Callable[[], np.ndarray], truth: float, scale: Scale = "share") -> float:
    """How often 95 % intervals hold the truth."""
    intervals = [bounds(draw(), scale, resamples=300) for _ in range(400)]
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


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=50))
def test_p_is_a_chance_and_does_not_know_who_is_first(differences: list[float]) -> None:
    array = np.array(differences)
    p = permutation(array)
    assert 0 < p <= 1
    assert permutation(-array) == pytest.approx(p)
    assert permutation(array[::-1]) == pytest.approx(p)
    assert permutation(3 * array) == pytest.approx(p)


def of_hits(won: int, lost: int) -> float:
    return permutation(np.array([1.0] * won + [-1.0] * lost + [0.0] * 30))


@pytest.mark.parametrize(
    ("won", "lost"), [(6, 1), (4, 4), (8, 1), (14, 4), (9, 9), (300, 200), (300, 120)]
)
def test_p_of_hits_is_mcnemars_mid_p(won: int, lost: int) -> None:
    """The exact p less half of the chance of being as far (Fagerland et al. 2013)."""
    exact, chance = stats.binomtest(won, won + lost).pvalue, stats.binom.pmf(won, won + lost, 0.5)
    as_far = chance if won != lost else chance / 2  # there are two such outcomes, or one
    assert of_hits(won, lost) == pytest.approx(exact - as_far)


@pytest.mark.parametrize(("won", "lost"), [(1, 0), (5, 0), (4, 2), (6, 0)])
def test_p_of_few_is_that_of_the_exact_sign_test(won: int, lost: int) -> None:
    assert of_hits(won, lost) == pytest.approx(stats.binomtest(won, won + lost).pvalue)


@pytest.mark.parametrize("queries", [30, 60, 120])
def test_equal_systems_seldom_seem_to_differ(queries: int) -> None:
    """In .05 of cases within a point, where each query is answered by one of two with a chance of
    .4, and by either as well: all outcomes, with their chances."""
    false = 0.0
    for differ in range(1, queries + 1):
        chance = stats.binom.pmf(differ, queries, 0.4)
        if chance > 1e-5:
            won = np.arange(differ + 1)
            alarms = np.array(
                [of_hits(int(hit_count), differ - int(hit_count)) < 0.05 for hit_count in won]
            )
            false += chance * stats.binom.pmf(won, differ, 0.5)[alarms].sum()
    assert 0.04 < false < 0.06


def test_of_five_or_six_clusters_chance_takes_the_one_extreme_outcome_at_most() -> None:
    """Mid-p would call 1 outcome in 16 rarer than .05."""
    for clusters, extremes in ((5, 0), (6, 2)):
        sizes = 1.1 ** np.arange(clusters)
        signs = np.array(list(product([-1, 1], repeat=clusters)))
        assert sum(permutation(sizes * sign) < 0.05 for sign in signs) == extremes


def test_p_has_its_ends() -> None:
    assert permutation(np.zeros(10)) == 1
    assert permutation(np.ones(500)) == LEAST


SHARES = {
    "whole clusters of hits": lambda draw: draw.integers(-3, 5, 40).astype(float),
    "means over ten sentence sets": lambda draw: draw.integers(-7, 10, 60) / 10,
    "relations of unequal size": lambda draw: draw.integers(-2, 4, 90) / draw.integers(20, 40, 90),
    "perplexities": lambda draw: draw.normal(size=70) ** 3 + 0.6,
    "one cluster above all": lambda draw: np.append(draw.normal(0.2, 1, 60), 40.0),
    "few": lambda draw: draw.normal(0.8, 1, 9),
}


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES.keys())
def test_p_is_scipys(shares: object) -> None:
    """scipy draws what is computed here, and takes the rarer end twice: equal but for the error of
    40,000 draws."""
    sums = shares(np.random.default_rng(7))  # type: ignore[operator]
    scipy_result = stats.permutation_test(
        (sums,),
        lambda x, axis: x.sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=40_000,
        batch=10_000,
        rng=np.random.default_rng(0),
    )
    end, observed = (
        scipy_result.pvalue / 2,
        np.isclose(np.abs(scipy_result.null_distribution), abs(sums.sum())),
    )
    error = max(4 * 2 * np.sqrt(end * (1 - end) / 40_000), 0.002)
    assert permutation(sums) == pytest.approx(scipy_result.pvalue - observed.mean() / 2, abs=error)


def test_the_rounding_of_shares_does_not_show_in_the_tail() -> None:
    """16 clusters are listed; with a 17th, too small to matter, they are rounded."""
    sums = np.random.default_rng(3).normal(1.1, 1, 16)
    listed = permutation(sums)
    assert listed < 0.02
    assert permutation(np.append(sums, 1e-7)) == pytest.approx(listed, rel=0.1)


def test_the_interval_of_a_difference_is_scipys() -> None:
    differences = np.random.default_rng(0).integers(-1, 2, 300).astype(float)
    ours = difference_interval(differences, np.ones(300), 9999, 0.95, 0)
    theirs = stats.bootstrap(
        (differences,), np.mean, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert list(ours) == pytest.approx(list(theirs), abs=0.01)
    assert ours[0] < differences.mean() < ours[1]


def test_holm_by_hand() -> None:
    assert holm(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm(np.array([0.9, 0.8])).tolist() == [1, 1]


@given(chances)
def test_holm_keeps_the_order_and_never_lowers(values: list[float]) -> None:
    raw = np.array(values)
    corrected = holm(raw)
    assert (corrected >= raw - 1e-12).all()
    assert (corrected <= 1).all()
    order = np.argsort(raw, kind="stable")
    assert (np.diff(corrected[order]) >= 0).all()


@given(chances)
def test_holm_is_between_bonferroni_and_benjamini_and_hochberg(values: list[float]) -> None:
    raw = np.array(values)
    corrected = holm(raw)
    assert (corrected <= np.minimum(1, raw * len(raw)) + 1e-12).all()
    assert (corrected >= stats.false_discovery_control(raw) - 1e-12).all()
    assert corrected.min() == pytest.approx(min(1, raw.min() * len(raw)))


def smallest(differences: np.ndarray, level: float = 0.05) -> float:
    return smallest_difference(differences, np.ones(len(differences)), level)


def test_the_smallest_difference_shrinks_with_the_root_of_n() -> None:
    few = np.array([1.0, -1.0] * 50)
    many = np.array([1.0, -1.0] * 200)
    in_standard_errors = smallest(few) / (few.std(ddof=1) / 10)
    within = stats.nct.cdf(-stats.t.ppf(0.975, 99), 99, in_standard_errors)
    assert 1 - stats.nct.cdf(stats.t.ppf(0.975, 99), 99, in_standard_errors) + within == (
        pytest.approx(0.8, abs=0.005)
    )
    assert smallest(few) / smallest(many) == pytest.approx(2, rel=0.02)
    assert smallest(few, 0.05 / 25) > 1.3 * smallest(few)


def test_the_smallest_difference_knows_what_cannot_be_found() -> None:
    assert np.isnan(smallest(np.array([1.0])))
    assert np.isnan(smallest(np.zeros(50)))  # nothing is known of the spread
    assert smallest(np.array([1.0, 1, 1, -1])) == np.inf  # 2 of 16 outcomes are more than .05
    single_difference = np.append(1.0, np.zeros(999))
    assert (
        smallest(single_difference) > 6 / 1000
    )  # six on one side would be .03; 2.8 errors are .0028


@pytest.mark.parametrize("family", [1, 25])
def test_the_smallest_difference_is_found_four_times_in_five(family: int) -> None:
    """Clusters of unequal size, true differences of just that size, at the corrected level."""
    draw = np.random.default_rng(family)
    sizes, level = draw.integers(1, 8, 150).astype(float), 0.05 / family

    def differences(true: float) -> np.ndarray:
        common = draw.normal(0, 0.3, len(sizes))
        return sizes * (common + true) + np.sqrt(sizes) * draw.normal(0, 0.5, len(sizes))

    typical = np.median([smallest_difference(differences(0), sizes, level) for _ in range(100)])
    power = np.mean([permutation(differences(typical)) < level for _ in range(400)])
    assert power == pytest.approx(0.8, abs=0.07)
