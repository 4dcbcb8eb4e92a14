"""Variance, tests and correction: against loops over clusters, and what they promise."""

from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from medprobe.core.params import ScoreParams
from medprobe.core.tables import BenchmarkTables
from medprobe.metrics import Scoring
from medprobe.metrics.statistics import (
    Clusters,
    PairedTest,
    control_test,
    holm,
    jackknife,
    paired_test,
)
from medprobe.metrics.summary import cluster_queries, summarise

rows = st.lists(
    st.tuples(
        st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]),  # difference
        st.sampled_from([0.5, 1.0, 2.0]),  # weight
        st.integers(0, 5),  # subject
        st.integers(0, 4),  # answer
    ),
    min_size=6,
    max_size=40,
).map(lambda rows: [np.array(column) for column in zip(*rows, strict=True)])


def result(differences: np.ndarray, weights: np.ndarray, *clusters: np.ndarray) -> PairedTest:
    return paired_test(differences, weights, Clusters.of(*clusters))


def squares(shares: list[float], clusters: list[object]) -> float:
    """The sum over clusters of the squared sum within each, by loops."""
    total = 0.0
    for cluster in set(clusters):
        inside = 0.0
        for share, other in zip(shares, clusters, strict=True):
            if other == cluster:
                inside += share
        total += inside**2
    return total


@given(rows)
def test_p_is_that_of_loops_over_clusters(columns: list[np.ndarray]) -> None:
    differences, weights, subjects, answers = columns
    test = result(*columns)
    shares = [*map(float, differences * weights / weights.sum())]
    by_subject, by_answer, by_pair = (
        squares(shares, list(clusters))
        for clusters in (subjects, answers, zip(subjects, answers, strict=True))
    )
    variance = max(by_subject, by_answer, by_subject + by_answer - by_pair)
    if test.units > 2 and variance > 1e-12:
        t = abs(sum(shares)) / np.sqrt(variance)
        assert test.p == pytest.approx(2 * stats.t.sf(t, test.units - 1))
    else:
        assert test.p == 1


@given(rows, st.floats(-1.5, 1.5))
def test_the_interval_has_the_differences_that_are_not_rejected(
    columns: list[np.ndarray], tested: float
) -> None:
    differences, *about = columns
    low, high = result(*columns)[1:3]
    p = result(differences - tested, *about).p
    if not np.isnan(low) and min(abs(tested - low), abs(tested - high)) > 1e-6:
        assert (low < tested < high) == (p > 0.05)


def test_a_worked_example() -> None:
    """Twelve queries of six subjects, two each, and of six answers, two each, in a ring.

    The shares are 2, 0, 2, 0, ... twelfths. Each subject's sum is 2, and so is each answer's; six
    pairs have 2 and six 0. So the variance around 0 is (24 + 24 - 24) / 144, and the mean is 1.
    """
    differences = np.array([2.0, 0] * 6)
    subjects = np.arange(12) // 2
    answers = (np.arange(12) + 1) // 2 % 6
    test = result(differences, np.ones(12), subjects, answers)
    assert test.units == 6
    assert test.p == pytest.approx(2 * stats.t.sf(1 / np.sqrt(24 / 144), 5))


EQUAL = (
    -np.ones(6),
    np.array([0.5, 0.5, 2, 0.5, 0.5, 0.5]),
    [0, 0, 0, 0, 1, 2],
    [0, 0, 0, 0, 2, 1],
)


@example([*map(np.array, EQUAL)], Random(3))  # differences without variance, but for rounding
@given(rows, st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_names_of_clusters_matter(
    columns: list[np.ndarray], random: object
) -> None:
    differences, weights, subjects, answers = columns
    order = list(range(len(differences)))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = result(*(column[order] for column in columns))
    renamed = result(differences, weights, 5 - subjects, (answers + 2) % 5)
    expected = result(*columns)
    for other in (shuffled, renamed):
        assert other[:-1] == pytest.approx(expected[:-1], nan_ok=True)
        assert other.untestable == expected.untestable


@given(rows)
def test_swapped_systems_mirror_the_interval(columns: list[np.ndarray]) -> None:
    differences, *about = columns
    test, swapped = result(differences, *about), result(-differences, *about)
    assert swapped.p == pytest.approx(test.p)
    assert (swapped.low, swapped.high) == pytest.approx((-test.high, -test.low), nan_ok=True)
    assert swapped.smallest_difference == pytest.approx(test.smallest_difference, nan_ok=True)


@given(rows)
def test_subjects_and_answers_stand_alike(columns: list[np.ndarray]) -> None:
    differences, weights, subjects, answers = columns
    test = result(differences, weights, subjects, answers)
    other = result(differences, weights, answers, subjects)
    assert other[:-1] == pytest.approx(test[:-1], nan_ok=True)


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=30).filter(lambda x: np.std(x) > 1e-3))
def test_where_each_query_has_an_answer_of_its_own_it_is_the_one_way_t(values: list[float]) -> None:
    """With the variance around the mean that is tested."""
    differences, one_each = np.array(values), np.arange(len(values))
    n, mean = len(values), differences.mean()
    test = result(differences, np.ones(n), one_each, one_each)
    t = stats.t.ppf(0.975, n - 1)
    if n > t**2:
        reach = t * differences.std() / np.sqrt(n - t**2)
        assert (test.low, test.high) == pytest.approx((mean - reach, mean + reach))
    else:
        assert np.isnan([test.low, test.high]).all()
    error = np.sqrt((differences**2).sum()) / n
    assert test.p == pytest.approx(2 * stats.t.sf(abs(mean) / error, n - 1))


def test_the_smallest_difference_is_found_four_times_in_five() -> None:
    draw = np.random.default_rng(0)
    noise, one_each = draw.normal(size=(600, 40)), np.arange(40)
    tests = [result(row, np.ones(40), one_each, one_each) for row in noise]
    true = np.median([test.smallest_difference for test in tests])
    found = [result(row + true, np.ones(40), one_each, one_each).p < 0.05 for row in noise]
    assert np.mean(found) == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("habit", [0.0, 0.8, 2.0])
@pytest.mark.parametrize("skew", [1.5, 2.0])
def test_one_relation_with_a_very_common_answer_has_few_false_alarms(
    skew: float, habit: float
) -> None:
    """200 queries of thirty answers, and two equal systems: by p, and by the interval."""
    draw = np.random.default_rng(5)
    chances = 1 / np.arange(1, 31) ** skew
    subjects, outside, alarms = np.arange(200), [], []
    for _ in range(300):
        answers = pd.factorize(draw.choice(30, 200, p=chances / chances.sum()))[0]
        level = habit * draw.normal(size=(2, 30))[:, answers] + draw.normal(size=(2, 200))
        first, second = (level > 0.5).astype(float)
        test = result(first - second, np.ones(200), subjects, answers)
        alarms.append(test.p < 0.05)
        outside.append(test.low > 0 or test.high < 0)
    assert np.mean(alarms) < 0.08
    assert np.mean(outside) < 0.08


def test_few_answers_show_nothing() -> None:
    """However many subjects there are, and however large the difference."""
    subjects = np.arange(200)
    test = result(np.ones(200), np.ones(200), subjects, subjects % 2)
    assert (test.p, test.units, test.smallest_difference) == (1.0, 2, np.inf)
    assert np.isnan([test.low, test.high]).all()
    assert test.untestable == "2 independent answers"
    assert result(np.ones(200), np.ones(200), subjects, subjects % 3).p > 0.05
    assert result(np.ones(200), np.ones(200), subjects % 3, subjects).untestable.endswith(
        "3 independent subjects"
    )


def test_where_all_answers_are_there_the_difference_of_few_answers_is_found() -> None:
    """A table of thirty drugs and six classes: only other drugs could have been drawn."""
    draw = np.random.default_rng(0)
    found = []
    for _ in range(100):
        first, second = draw.random(30) < 0.7, draw.random(30) < 0.2
        difference = first.astype(float) - second
        found.append(result(difference, np.ones(30), np.arange(30)).p < 0.05)
        assert not result(difference, np.ones(30), np.arange(30), np.arange(30) % 3).p < 0.05
    assert np.mean(found) > 0.9


def test_without_a_difference_p_is_one() -> None:
    test = result(np.zeros(30), np.ones(30), np.arange(30), np.arange(30) % 7)
    assert test.p == 1
    assert (test.low, test.high) == (0, 0)
    assert np.isnan(test.smallest_difference)


@pytest.mark.parametrize("habit", [0.0, 0.6])
def test_equal_systems_with_habits_by_answer_seldom_seem_to_differ(habit: float) -> None:
    """Forty answers of unequal size: over subjects alone, habits look like differences."""
    draw = np.random.default_rng(3)
    answers = np.repeat(np.arange(40), draw.integers(2, 30, 40))
    subjects, weights = np.arange(len(answers)), np.ones(len(answers))
    both, alone = [], []
    for _ in range(400):
        level = habit * draw.normal(size=(2, 40))[:, answers] + draw.normal(size=(2, len(answers)))
        first, second = (level > 0).astype(float)
        both.append(result(first - second, weights, subjects, answers).p < 0.05)
        alone.append(stats.ttest_rel(first, second).pvalue < 0.05)
    assert np.mean(both) < 0.08
    assert np.mean(alone) < 0.08 if not habit else np.mean(alone) > 0.2


cells = st.lists(
    st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 5), st.integers(0, 4)),
    min_size=4,
    max_size=30,
).map(lambda rows: [np.array(column) for column in zip(*rows, strict=True)])


@given(cells)
def test_the_jackknife_is_that_of_means_computed_again(columns: list[np.ndarray]) -> None:
    """Without each subject, each answer and each pair, over relations that count alike."""
    hits, relations, subjects, answers = columns
    relations = pd.factorize(relations)[0]
    groups = [np.flatnonzero(relations == group) for group in range(relations.max() + 1)]

    def mean(mask: np.ndarray) -> float:
        """The mean over relations; one that is deleted whole keeps its mean."""
        parts = [group[mask[group]] if mask[group].any() else group for group in groups]
        return float(np.mean([hits[part].mean() for part in parts]))

    def variance(codes: np.ndarray) -> float:
        names = np.unique(codes)
        moves = [mean(codes != name) - mean(codes >= 0) for name in names]
        return (len(names) - 1) / len(names) * float(np.sum(np.square(moves)))

    subjects, answers = pd.factorize(subjects)[0], pd.factorize(answers)[0]
    pairs = subjects * 10 + answers
    by_subject, by_answer, by_pair = map(variance, (subjects, answers, pairs))
    sizes = np.array([len(group) for group in groups])[relations]
    centre = np.array([hits[group].mean() for group in groups])[relations]
    shares = ((hits - centre) / sizes / len(groups))[:, None]
    result = jackknife(shares, relations, relations, Clusters.of(subjects, answers))
    both = max(by_subject, by_answer, by_subject + by_answer - by_pair)
    assert result.deviation[0] ** 2 == pytest.approx(both, abs=1e-12)
    assert 1 <= result.freedom <= max(1, result.units - 1) + 1e-9


def test_the_degrees_of_freedom_are_of_effective_units() -> None:
    def freedom(sizes: list[int], relations: list[int]) -> float:
        answers = np.repeat(np.arange(len(sizes)), sizes)
        subjects, relation = np.arange(len(answers)), np.repeat(relations, sizes)
        shares = np.zeros((len(answers), 1))
        return jackknife(shares, relation, relation, Clusters.of(subjects, answers)).freedom

    assert freedom([5] * 12, [0] * 12) == pytest.approx(11)
    assert freedom([90, 5, 5], [0] * 3) == 1  # 1.2 effective answers
    assert freedom([50, 25, 25], [0] * 3) == pytest.approx(1 / (0.25 + 2 / 16) - 1)
    assert freedom([5] * 12, [0] * 6 + [1] * 6) == pytest.approx(10)  # 5 of each relation
    # one relation has nearly all of the variance: 1/2 with 1, and 1/10 with 9
    assert freedom([50, 50, *[10] * 10], [0] * 2 + [1] * 10) == pytest.approx(
        (1 / 2 + 1 / 10) ** 2 / (1 / 4 + 1 / 100 / 9)
    )


@pytest.mark.parametrize("habit", [0.0, 0.8])
def test_intervals_of_one_model_hold_its_accuracy_where_an_answer_has_most_queries(
    habit: float,
) -> None:
    """Six relations, each with answers as frequent as 1, 1/2, 1/3 and so on, to the power 1.5."""
    draw = np.random.default_rng(0)
    sizes = np.ceil(60 / np.arange(1, 21) ** 1.5).astype(int)
    answers = np.repeat(np.arange(120), np.tile(sizes, 6))
    names = np.arange(len(answers)).astype(str)
    keys = {"variant": "", "replicate": "", "query_id": names, "subset": "full", "cluster": names}
    rows = pd.DataFrame({**keys, "relation": answers // 20, "answer": answers})
    scoring = Scoring(ScoreParams(bootstrap=60, confidence=0.95), 0)
    level = stats.norm.ppf(0.25) * np.sqrt(1 + habit**2)
    holds = []
    for _ in range(40):
        ability = habit * draw.normal(size=120)[answers] + draw.normal(size=len(answers))
        hits = (level + ability > 0).astype(float)
        numbers = summarise(rows.assign(hit=hits), scoring)["default"]["full"]["macro"]["hit"]
        holds.append(numbers["low"] <= 0.25 <= numbers["high"])
    assert np.mean(holds) > 0.9


def test_answers_whose_names_end_alike_are_drawn_together() -> None:
    """A model that likes one artery likes others, in one relation."""
    names = ["renal artery", "hepatic artery", "spleen", "left lung"]
    table = pd.DataFrame(
        {
            "query_id": [*"abcdef"],
            "relation": ["r"] * 4 + ["s", "s"],
            "subject": [*"uvwxyz"],
            "answers": [*([name] for name in names), ["iliac artery"], []],
            "answer_ids": [["C1"], ["C2"], [""], ["C4"], ["C3"], []],
        }
    ).assign(benchmark="toy", subset="full", prompt="[Y]", subject_id="")
    drawn = cluster_queries(BenchmarkTables(table, pd.DataFrame()), "subject")["answer"].tolist()
    assert drawn == ["r artery", "r artery", "r spleen", "r lung", "s artery", "s f"]
    source = [("r", "renal artery"), ("s", "iliac artery"), ("s", "heart"), ("s", "lung")]
    source += [("r", name) for name in names[1:]]
    answers = pd.DataFrame(source, columns=["relation", "name"])
    benchmark = BenchmarkTables(table, pd.DataFrame(), others={"relation_answers": answers})
    drawn = cluster_queries(benchmark, "subject")["answer"].tolist()  # of r it has all answers
    assert drawn == [*"abcd", "s artery", "s f"]


chances = st.lists(st.floats(0, 1), min_size=1, max_size=20)


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


def exchanged(hits: np.ndarray, expected: np.ndarray, draws: int, seed: int) -> list[np.ndarray]:
    """The differences of each query with the list of a random other one, in two blocks."""
    draw = np.random.default_rng(seed)
    given = np.array([draw.permutation(len(hits)) for _ in range(draws)])
    differences = hits[np.arange(len(hits)), given] - expected
    return [differences[:7], differences[7:]]


def test_the_control_test_counts_exchanges_by_a_loop() -> None:
    draw = np.random.default_rng(3)
    hits = (draw.random((30, 30)) < 0.2) | np.eye(30, dtype=bool)
    expected = (hits.sum(axis=1) - 1) / 29
    answers = np.arange(30) % 8
    differences, drawn = 1 - expected, exchanged(hits, expected, 199, 1)
    weights = np.where(np.arange(30) < 10, 2.0, 1.0)
    test = control_test(differences, drawn, weights, Clusters.of(np.arange(30), answers))

    def ratio(values: np.ndarray) -> float:
        shares = [*map(float, values * weights / weights.sum())]
        one, two = squares(shares, [*range(30)]), squares(shares, [*answers])
        return sum(shares) / np.sqrt(max(one, two))  # pairs of both are single queries

    ratios = np.array([ratio(row) for row in np.concatenate(drawn)])
    above = (ratios >= ratio(differences) - 1e-12).sum()
    assert test.p == pytest.approx(min(1, 2 * (1 + above) / 200))
    assert test.difference == pytest.approx((differences * weights).sum() / weights.sum())
    assert test.low < test.difference < test.high


@given(rows, st.integers(0, 99))
def test_the_control_test_and_its_interval_agree(columns: list[np.ndarray], seed: int) -> None:
    differences, weights, subjects, answers = columns
    draw = np.random.default_rng(seed)
    signs = draw.choice([-1.0, 1.0], (400, len(differences)))
    test = control_test(differences, [signs * differences], weights, Clusters.of(subjects, answers))
    if not np.isnan(test.low) and test.difference and not 0.03 < test.p < 0.07:
        assert (test.low > 0 or test.high < 0) == (test.p < 0.05)


def test_without_exchanges_nothing_is_shown() -> None:
    test = control_test(np.ones(5), [], np.ones(5), Clusters.of(np.arange(5)))
    assert (test.p, np.isnan(test.low)) == (1.0, True)
