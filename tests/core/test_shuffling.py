"""Answers exchanged between clusters of names: what depends on the subject, and what does not."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.core.shuffling import draw_other, name_clusters, permutation_p, shuffled_means

WORDS = ["carcinoma", "Carcinoma", "lung", "gene", "Gene,", "acute", "2"]
NAMES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


def table(names: list[str], relations: list[str], clusters: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"subject": names, "relation": relations, "key": clusters})


@given(st.lists(st.tuples(NAMES, st.sampled_from("rs"), st.sampled_from("abcdef")), min_size=1))
def test_a_subject_is_in_one_cluster_and_a_cluster_is_a_word_of_its_name(
    rows: list[tuple[str, str, str]],
) -> None:
    queries = table(*map(list, zip(*rows, strict=True)))  # type: ignore[arg-type]
    queries.index = queries.index[::-1] + 7
    clusters = name_clusters(queries)
    assert clusters.index.equals(queries.index)
    first = queries.sort_values("subject").drop_duplicates("key").set_index("key")["subject"]
    for key, labels in clusters.groupby(queries["key"]):
        assert labels.nunique() == 1
        words = first[key].casefold().replace(",", "").split()
        assert labels.iloc[0] in [*words, key]


@pytest.mark.parametrize(
    ("others", "cluster"),
    [(["Aspirin"] * 3, "gene"), (["XR1 Gene", "Aspirin"], "gb2"), (["One gene"] * 3, "gb2")],
    ids=["few share the last word", "most share it", "each other one does"],
)
def test_a_last_word_that_most_share_tells_nothing(others: list[str], cluster: str) -> None:
    names = ["GB2 gene", *others]
    clusters = [str(number) for number in range(len(names))]
    assert name_clusters(table(names, ["r"] * len(names), clusters))[0] == cluster


def test_a_subject_keeps_its_cluster_in_relations_where_its_last_word_is_rare() -> None:
    names = ["A gene", "B gene", "A gene", "gout", "C gene", "flu", "pain"]
    queries = table(names, ["r"] * 2 + ["s"] * 5, [*"aba", "gout", "c", "flu", "pain"])
    assert name_clusters(queries).tolist() == ["a", "b", "a", "gout", "gene", "flu", "pain"]


def test_subjects_of_one_name_are_clusters_of_their_own() -> None:
    queries = table(["Squad"] * 4, ["r"] * 4, [*"abca"])
    assert name_clusters(queries).tolist() == [*"abca"]


def test_without_names_each_subject_is_a_cluster() -> None:
    queries = table(["", "", "-", ""], ["r"] * 4, [*"abca"])
    assert name_clusters(queries).tolist() == [*"abca"]


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


def test_drawn_permutations_are_those_of_whole_clusters() -> None:
    draw = np.random.default_rng(1)
    hits = (draw.random((7, 7)) < 0.3) | np.eye(7, dtype=bool)
    clusters = np.array([5, 0, 5, 2, 0, 5, 2])
    means = np.array(every_exchange(hits, clusters))
    observed, _, p = permutation_p([hits], [clusters], permutations=20_000, seed=3)
    assert observed == 1
    assert p == pytest.approx(2 * (means > 1 - 1e-9).mean(), abs=0.01)


def answered(subjects_answers: np.ndarray, lists: np.ndarray) -> np.ndarray:
    return np.asarray(subjects_answers[:, None] == lists[None, :])


def test_a_habit_by_cluster_is_no_knowledge_and_a_tenth_of_the_facts_is() -> None:
    draw = np.random.default_rng(2)
    clusters = np.repeat(np.arange(40), draw.integers(1, 12, 40))
    alarms, alarms_by_query, found = [], [], []
    for seed in range(60):
        truth = np.where(
            draw.random(len(clusters)) < 0.7,
            draw.integers(0, 5, 40)[clusters],  # the truth is alike in a cluster, too
            draw.integers(0, 5, len(clusters)),
        )
        habit = draw.integers(0, 5, 40)[clusters]
        knows = np.where(draw.random(len(clusters)) < 0.3, truth, habit)
        single = np.arange(len(clusters))
        for results, lists, blocks in (
            (alarms, habit, clusters),
            (alarms_by_query, habit, single),
            (found, knows, clusters),
        ):
            hits = answered(truth, lists)
            results.append(permutation_p([hits], [blocks], permutations=199, seed=seed)[2] < 0.05)
    assert np.mean(alarms) < 0.15
    assert np.mean(alarms_by_query) > 0.3
    assert np.mean(found) > 0.8


def test_the_same_seed_draws_the_same_permutations() -> None:
    draw = np.random.default_rng(4)
    hits = [draw.random((9, 9)) for _ in range(2)]  # means over replicates
    clusters = [np.arange(9) // 2, np.arange(9) // 3]
    first, again = (permutation_p(hits, clusters, permutations=99, seed=5) for _ in range(2))
    assert first == again


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
def test_another_query_is_of_another_cluster_and_each_cluster_gives_once(codes, seed) -> None:
    donors = draw_other(codes, seed)
    if len({*codes.tolist()}) == 1:
        assert (donors == -1).all()
        return
    givers = {(own, codes[donor]) for own, donor in zip(codes, donors, strict=True)}
    assert all(own != giver for own, giver in givers)
    assert sorted(own for own, _ in givers) == sorted(giver for _, giver in givers)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=12), st.permutations(range(0, 40, 4)))
def test_clusters_are_told_apart_by_whatever_codes(clusters: list[int], names: list[int]) -> None:
    """Codes may have gaps, as those of a part of a benchmark's queries do."""
    hits = np.random.default_rng(0).random((len(clusters), len(clusters))) < 0.5
    codes, order = np.unique(clusters, return_inverse=True)
    for own in (codes[order], np.sort(names)[order]):
        observed, expected, _ = permutation_p([hits], [own], permutations=9, seed=1)
        assert observed == np.diagonal(hits).mean()
        assert np.isnan(expected) == (len(codes) == 1)
        assert len(codes) == 1 or expected == pytest.approx(shuffled_means(hits, order).mean())
