"""Accuracy with answers to other subjects, from the predictions alone."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.controls import compare_with_controls
from helpers.toy_project import METADATA
from medprobe.core.params import ScoreParams
from medprobe.core.tables import BenchmarkTables
from medprobe.library import probing
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.shuffled import (
    compare_with_others,
    draw_others,
    exchange_clusters,
    shuffled_means,
)
from medprobe.metrics.statistics import Clusters, control_test, exchanges

NAMES = ("pain", "Fever", "gout", "a cough")
SCORING = Scoring(ScoreParams(bootstrap=20), 3, "subject_id")


def benchmark(answers: list[list[str]], subjects: list[str] | None = None) -> BenchmarkTables:
    subjects = subjects or [f"drug{number}" for number in range(len(answers))]
    queries = pd.DataFrame(
        {
            "query_id": [f"q{number}" for number in range(len(answers))],
            "benchmark": "toy",
            "relation": ["r", "s"] * (len(answers) // 2) + ["r"] * (len(answers) % 2),
            "subject": subjects,
            "subject_id": subjects,
            "prompt": [f"{subject} treats [Y] ." for subject in subjects],
            "answers": answers,
            "answer_ids": answers,
            "subset": "full",
        }
    )
    candidates = pd.DataFrame({"name": NAMES, "id": NAMES, "type": "", "subset": "full"})
    return BenchmarkTables(queries, candidates)


def predictions(lists: list[list[str]], answers: list[list[str]], replicate: str = ""):
    rows = [
        ("", replicate, f"q{query}", rank, name, name, -float(rank), name in answers[query])
        for query, names in enumerate(lists)
        for rank, name in enumerate(names, start=1)
    ]
    columns = ["variant", "replicate", "query_id", "rank", "prediction", "prediction_id", "score"]
    return pd.DataFrame(rows, columns=[*columns, "hit"])


def score(table: pd.DataFrame, tables: BenchmarkTables, scorer: str, scoring: Scoring) -> Scores:
    return probing.score(table, tables, scorer, scoring).scores


def compare(lists: list[list[str]], answers: list[list[str]]) -> pd.DataFrame:
    found = probing.score(predictions(lists, answers), benchmark(answers), "accuracy", SCORING)
    tests = compare_with_controls(found, METADATA, SCORING.params, ("m", "asked"))
    return tests[tests["subset"] == "full"]


RUNS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True),
        st.permutations(NAMES),
    ),
    min_size=4,
    max_size=9,
)


@settings(settings.get_profile("few"))
@given(RUNS, st.integers(1, 4))
def test_each_list_is_scored_with_the_answers_to_all_other_subjects(runs, length) -> None:
    """Against a loop over pairs of queries."""
    answers, lists = [run[0] for run in runs], [run[1][:length] for run in runs]
    tables = benchmark(answers)
    scores = score(predictions(lists, answers), tables, "accuracy", SCORING)
    for k in (1, 5, 10):
        means = []
        for relation in ("r", "s"):
            of = [n for n, name in enumerate(tables.queries["relation"]) if name == relation]
            pairs = [(query, other) for query in of for other in of if query != other]
            hits = [any(name in answers[q] for name in lists[d][:k]) for q, d in pairs]
            means.append(np.mean(hits))
            found = scores["shuffled"]["full"][relation][f"acc_at_{k}"]["value"]
            assert found == pytest.approx(means[-1], abs=1e-6)
        found = scores["shuffled"]["full"]["macro"][f"acc_at_{k}"]["value"]
        assert found == pytest.approx(np.mean(means), abs=1e-6)


def test_a_constant_list_scores_the_same_shuffled() -> None:
    answers = [["pain"], ["Fever"], ["pain"], ["pain"], ["gout"], ["Fever"]] * 3
    found = compare([["pain", "gout"]] * 18, answers)
    row = found[found["metric"] == "acc_at_1"].iloc[0]
    assert (row["difference"], row["p"]) == (pytest.approx(0, abs=0.03), 1)


def test_a_model_that_knows_its_subjects_is_above_and_the_test_says_so() -> None:
    answers = [[NAMES[number % 3]] for number in range(36)]
    found = compare(answers, answers)
    [row] = found[found["metric"] == "acc_at_1"].to_dict("records")
    assert {row["method_a"], row["method_b"]} == {"asked", "asked:shuffled"}
    assert abs(row["difference"]) > 0.5
    assert row["p_holm"] == pytest.approx(2 / 2000)


def test_other_answers_count_as_the_methods_own_do() -> None:
    """A method that ignores case and articles is shuffled by the same rule."""
    answers = [["pain"], ["Fever"], ["a cough"], ["pain"]] * 2
    lists = [["Pain"], ["fever"], ["cough"], ["Pain"]] * 2
    table = predictions(lists, answers).assign(hit=True)
    shuffled = score(table, benchmark(answers), "accuracy", SCORING)["shuffled"]["full"]
    # relation r: pain, cough twice each; s: fever, pain twice each; of three others one fits
    assert shuffled["macro"]["acc_at_1"]["value"] == pytest.approx(1 / 3, abs=1e-6)


def test_the_control_has_no_number_of_the_models_own_answers() -> None:
    answers = [["pain"], ["Fever"], ["gout"], ["pain"]] * 3
    numbers = score(predictions(answers, answers), benchmark(answers), "accuracy", SCORING)
    accuracies = {"acc_at_1", "acc_at_5", "acc_at_10"}
    assert (
        {*numbers["shuffled"]["full"]["macro"]}
        == accuracies
        < {*numbers["default"]["full"]["macro"]}
    )
    assert {*compare(answers, answers)["metric"]} == accuracies


def test_replicates_are_averaged() -> None:
    answers = [["pain"], ["pain"], ["gout"], ["gout"]] * 2
    right, wrong = answers, [["a cough"]] * 8
    both = pd.concat([predictions(right, answers, "0"), predictions(wrong, answers, "1")])
    one = predictions(right, answers)
    halves, whole = (
        score(table, benchmark(answers), "accuracy", SCORING)["shuffled"]["full"]["macro"]
        for table in (both, one)
    )
    assert halves["acc_at_1"]["value"] == pytest.approx(whole["acc_at_1"]["value"] / 2, abs=1e-6)


def test_a_large_relation_is_shuffled_in_blocks(monkeypatch) -> None:
    """A model that knows its subjects is above, and a constant list is not."""
    monkeypatch.setattr("medprobe.metrics.shuffled.LARGEST", 10)
    mixed = [[NAMES[(number // 2) % 3]] for number in range(80)]
    found = compare(mixed, mixed)
    constant = compare([["pain"]] * 80, mixed)
    assert constant.set_index("metric").loc["acc_at_1", "p"] > 0.05
    assert found.set_index("metric").loc["acc_at_1", "p"] == pytest.approx(2 / 2000)


def every_exchange(hits: np.ndarray, clusters: np.ndarray) -> list[float]:
    """The accuracies under all permutations and rotations, written out."""
    members = [np.flatnonzero(clusters == code) for code in np.unique(clusters)]
    means = []
    for givers in permutations(members):
        # a cluster of two that gives to one of three weighs as much as one of six would
        for turns in product(range(12), repeat=len(members)):
            total = sum(
                hits[query, giver[(place + turn) % len(giver)]]
                for own, giver, turn in zip(members, givers, turns, strict=True)
                for place, query in enumerate(own)
            )
            means.append(float(total) / len(clusters))
    return means


def test_drawn_exchanges_are_those_of_whole_clusters() -> None:
    draw = np.random.default_rng(1)
    hits = draw.random((7, 7))
    clusters = np.array([2, 0, 2, 1, 0, 2, 1])
    given = exchange_clusters(clusters, 20_000, np.random.default_rng(3))
    drawn = hits[np.arange(7), given].mean(axis=1)
    expected = every_exchange(hits, clusters)
    for level in (0.05, 0.3, 0.5, 0.9):
        assert np.quantile(drawn, level) == pytest.approx(np.quantile(expected, level), abs=0.01)


CODES = st.lists(st.integers(0, 3), min_size=2, max_size=7).map(
    lambda codes: np.unique(codes, return_inverse=True)[1]
)


@given(CODES, st.integers(0, 999))
def test_shuffled_means_are_those_of_a_loop(codes: np.ndarray, seed: int) -> None:
    hits = np.random.default_rng(seed).random((len(codes), len(codes)))
    means = shuffled_means(hits, codes)
    for query, own in enumerate(codes):
        others = [hits[query, codes == cluster].mean() for cluster in {*codes.tolist()} - {own}]
        assert means[query] == pytest.approx(np.mean(others) if others else np.nan, nan_ok=True)


@given(CODES, st.integers(0, 999))
def test_other_queries_are_of_other_clusters_and_each_cluster_gives_once(codes, seed) -> None:
    rings = draw_others(codes, 3, seed)
    assert rings.shape == (0 if len({*codes.tolist()}) == 1 else 3, len(codes))
    for donors in rings:
        givers = {(own, codes[donor]) for own, donor in zip(codes, donors, strict=True)}
        assert all(own != giver for own, giver in givers)
        assert sorted(own for own, _ in givers) == sorted(giver for _, giver in givers)


def answered(truth: np.ndarray, lists: np.ndarray) -> np.ndarray:
    return np.asarray(truth[:, None] == lists[None, :])


def is_above(hits: np.ndarray, clusters: np.ndarray, truth: np.ndarray, seed: int) -> bool:
    """Is a model above its answers to other subjects, by the test that stages use?"""
    expected = shuffled_means(hits, clusters)
    given = exchange_clusters(clusters, 399, np.random.default_rng(seed))
    drawn = [hits[np.arange(len(hits)), given] - expected]
    own = np.diagonal(hits) - expected
    test = control_test(own, drawn, np.ones(len(own)), Clusters.of(clusters, truth))
    return test.difference > 0 and test.p < 0.05


@pytest.mark.parametrize("wider", [1, 5])
def test_a_habit_is_no_knowledge_and_a_third_of_the_facts_is(wider: int) -> None:
    """Also a habit by kinds of subjects that are five clusters of names each."""
    draw = np.random.default_rng(2)
    clusters = np.repeat(np.arange(40), draw.integers(1, 12, 40))
    clusters = np.unique(clusters, return_inverse=True)[1]
    alarms, found = [], []
    for seed in range(60):
        truth = np.where(
            draw.random(len(clusters)) < 0.5,
            draw.integers(0, 12, 40)[clusters],  # the truth is alike in a cluster, too
            draw.integers(0, 12, len(clusters)),
        )
        habit = draw.integers(0, 12, 40)[clusters // wider]
        knows = np.where(draw.random(len(clusters)) < 0.35, truth, habit)
        alarms.append(is_above(answered(truth, habit), clusters, truth, seed))
        found.append(is_above(answered(truth, knows), clusters, truth, seed))
    assert np.mean(alarms) < 0.1
    assert np.mean(found) > 0.8


def asked(known: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Sixty queries whose prompts were also asked about the answers of four others."""
    draw = np.random.default_rng(seed)
    names = [f"q{number}" for number in range(60)]
    about = {"variant": "", "subset": "full", "query_id": names, "relation": "r"}
    table = pd.DataFrame({**about, "cluster": names, "answer": names, "weight": 1.0})
    own = table.assign(acc_at_1=(draw.random(60) < known).astype(float))
    others = [
        table.assign(replicate=str(number), acc_at_1=(draw.random(60) < 0.02).astype(float))
        for number in range(4)
    ]
    return own, pd.concat(others)


def test_prompts_asked_about_other_answers_show_what_is_known() -> None:
    """A tenth of sixty facts is found, and what is as often right of other queries is not."""

    def found(known: float) -> float:
        tests = [compare_with_others(*asked(known, seed), SCORING) for seed in range(30)]
        return float(np.mean([test["p"].iloc[0] < 0.05 for test in tests]))

    assert found(0.02) < 0.1
    assert found(0.2) > 0.9


def test_the_smallest_p_falls_with_the_number_of_tests() -> None:
    """So that a hundred models can all be above their controls, corrected for each other."""
    for tests in (1, 10, 56, 100, 1000):
        assert tests * 2 / (1 + exchanges(tests)) < 0.05 / 4
