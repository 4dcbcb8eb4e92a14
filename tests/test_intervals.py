"""Bootstrap intervals and paired tests."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from medprobe.metrics.comparisons import (
    difference_interval,
    holm,
    permutation,
    smallest_difference,
)
from medprobe.metrics.intervals import interval, resampled_means

chances = st.lists(st.floats(0, 1), min_size=1, max_size=20)
marks = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40)


@settings(deadline=None)
@given(marks, st.integers(1, 60), st.integers(0, 5))
def test_the_interval_holds_the_estimate(values: list[float], resamples: int, seed: int) -> None:
    matrix = np.array(values)[:, None]
    means = resampled_means(matrix, resamples, np.random.default_rng(seed))
    low, high = interval(matrix.mean(axis=0), means, 0.95, len(matrix))
    assert means.shape == (resamples, 1)
    assert 0 <= low[0] <= matrix.mean() + 1e-12
    assert matrix.mean() - 1e-12 <= high[0] <= 1


def test_blocks_do_not_change_the_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("medprobe.metrics.intervals.BLOCK", 25)
    means = resampled_means(np.eye(10), 33, np.random.default_rng(0))
    assert means.shape == (33, 10)
    assert means.sum(axis=1) == pytest.approx(np.ones(33))


def test_the_bootstrap_agrees_with_the_normal_interval() -> None:
    values = (np.arange(400) % 4 == 0).astype(float)[:, None]
    means = resampled_means(values, 4000, np.random.default_rng(1))
    low, high = interval(values.mean(axis=0), means, 0.95, 400)
    error = np.sqrt(0.25 * 0.75 / 400)
    assert low[0] == pytest.approx(0.25 - 1.96 * error, abs=0.005)
    assert high[0] == pytest.approx(0.25 + 1.96 * error, abs=0.005)


def test_no_hit_at_all_is_not_certainty() -> None:
    low, high = interval(np.zeros(1), np.zeros((100, 1)), 0.95, 20)
    assert low[0] == 0
    assert high[0] == pytest.approx(1.96**2 / (20 + 1.96**2), abs=1e-4)  # Wilson
    low, high = interval(np.ones(1), np.ones((100, 1)), 0.95, 20)
    assert (low[0], high[0]) == (pytest.approx(20 / (20 + 1.96**2), abs=1e-4), 1)


@settings(deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=50))
def test_p_is_a_chance_and_does_not_know_who_is_first(differences: list[float]) -> None:
    array = np.array(differences)
    p = permutation(array, 199, 3)
    assert 0 < p <= 1
    assert permutation(-array, 199, 3) == p
    assert permutation(array[::-1], 199, 3) == p


def test_p_is_that_of_the_exact_sign_test() -> None:
    differences = np.array([1.0] * 14 + [-1.0] * 4 + [0.0] * 30)
    assert permutation(differences, 99999, 0) == pytest.approx(binomtest(14, 18).pvalue, abs=0.002)
    assert permutation(np.zeros(10), 99, 0) == 1


def test_the_interval_of_a_difference_holds_it() -> None:
    low, high = difference_interval(np.array([1.0, 0, 0, 1, -1]), 500, 0.95, 0)
    assert low < 0.2 < high


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


def test_the_smallest_difference_shrinks_with_the_root_of_n() -> None:
    few = np.array([1.0, -1.0] * 50)
    many = np.array([1.0, -1.0] * 200)
    assert smallest_difference(few) == pytest.approx(2.8016 * few.std(ddof=1) / 10, rel=1e-3)
    assert smallest_difference(few) / smallest_difference(many) == pytest.approx(2, rel=0.01)
    assert np.isnan(smallest_difference(np.array([1.0])))
