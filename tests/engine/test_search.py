"""Nearest neighbours against a slow, obvious search."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.engine.search import MARGIN, Distance, NameIndex


def nearest(
    queries: Any, candidates: Any, names: list[str], k: int, distance: Distance = "l2"
) -> Any:
    """The best of all names of an index that holds no others."""
    index = NameIndex(distance)
    index.add(names, candidates)
    return index.nearest(queries, names, k)


def slow(queries: Any, candidates: Any, names: list[str], k: int) -> list[list[str]]:
    """Every distance in double precision, sorted by distance and name."""
    all_hits = []
    for query in queries.astype(np.float64):
        apart = [float(((query - candidate) ** 2).sum()) for candidate in candidates]
        order = sorted(range(len(names)), key=lambda i: (apart[i], names[i]))
        all_hits.append([names[i] for i in order[:k]])
    return all_hits


@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 12), st.integers(1, 3))
def test_ranks_equal_those_of_a_slow_search_with_many_ties(
    seed: int, count: int, k: int, spread: int
) -> None:
    draw = np.random.default_rng(seed)
    candidates = draw.integers(0, spread + 1, (count, 3)).astype(np.float32)
    queries = draw.integers(0, spread + 1, (5, 3)).astype(np.float32)
    names = [f"name {i}" for i in draw.permutation(count)]
    places, scores = nearest(queries, candidates, names, k)
    assert [[names[i] for i in row] for row in places] == slow(queries, candidates, names, k)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_ties_over_the_edge_of_k_go_by_name() -> None:
    candidates = np.zeros((500, 4), np.float32)
    names = [f"name {i:03}" for i in range(500)][::-1]
    places, scores = nearest(np.ones((2, 4), np.float32), candidates, names, 3)
    assert [[names[i] for i in row] for row in places] == [["name 000", "name 001", "name 002"]] * 2
    assert scores.tolist() == [[-4.0] * 3] * 2


def test_names_that_lie_close_together_far_from_the_origin_need_no_wider_search() -> None:
    """As those of an encoder that was not rewired."""
    draw = np.random.default_rng(0)
    centre = draw.normal(size=32) * 5
    candidates, queries = (
        (centre + draw.normal(size=(count, 32)) * 0.02).astype(np.float32) for count in (2000, 5)
    )
    names = [f"name {i}" for i in range(2000)]
    index, fetched = NameIndex(), []
    index.add(names, candidates)
    index.nearest(queries, names, 10)
    search = index.faiss_index.search

    def counted(block: Any, count: int) -> Any:
        fetched.append(count)
        return search(block, count)

    index.faiss_index = SimpleNamespace(search=counted)
    places, _ = index.nearest(queries, names, 10)
    assert [[names[i] for i in row] for row in places] == slow(queries, candidates, names, 10)
    assert {*fetched} == {10 + MARGIN}


@pytest.mark.parametrize("distance", ["l2", "cosine"])
def test_ranks_do_not_depend_on_the_order_of_candidates_or_queries(distance: Any) -> None:
    draw = np.random.default_rng(0)
    candidates = draw.normal(size=(300, 16)).astype(np.float32)
    candidates[100:150] = candidates[50:100]  # names that differ in case only embed alike
    queries = candidates[40:110] + draw.normal(size=(70, 16)).astype(np.float32) * 0.1
    names = [f"name {i}" for i in range(300)]
    places, scores = nearest(queries, candidates, names, 10, distance)
    shuffled = draw.permutation(300)
    again, same = nearest(
        queries[::-1], candidates[shuffled], [names[i] for i in shuffled], 10, distance
    )
    assert (shuffled[again][::-1] == places).all()
    assert (same[::-1] == scores).all()
    alone, _ = nearest(queries[:1], candidates, names, 10, distance)
    assert (alone[0] == places[0]).all()


def test_cosine_scores_are_cosines() -> None:
    candidates = np.array([[2, 0], [0, 3], [-1, 0]], np.float32)
    places, scores = nearest(
        np.array([[5, 0]], np.float32), candidates, ["a", "b", "c"], 3, "cosine"
    )
    assert places.tolist() == [[0, 1, 2]]
    assert scores[0] == pytest.approx([1, 0, -1])


def test_fewer_candidates_than_k_are_all_returned() -> None:
    places, _ = nearest(np.ones((1, 2), np.float32), np.eye(2, dtype=np.float32), ["b", "a"], 10)
    assert places.tolist() == [[1, 0]]


@given(st.integers(0, 10_000), st.integers(2, 60), st.integers(1, 12), st.integers(1, 3))
def test_some_names_of_an_index_that_grew_are_ranked_as_alone(
    seed: int, count: int, k: int, spread: int
) -> None:
    draw = np.random.default_rng(seed)
    vectors = draw.integers(0, spread + 1, (count, 3)).astype(np.float32)
    queries = draw.integers(0, spread + 1, (4, 3)).astype(np.float32)
    names = [f"name {i}" for i in draw.permutation(count)]
    cut = int(draw.integers(1, count))
    for distance in ("l2", "cosine"):
        index = NameIndex(distance)
        index.add(names[:cut], vectors[:cut])
        index.add(names[cut:], vectors[cut:])
        selected = sorted(draw.choice(count, int(draw.integers(1, count + 1)), replace=False))
        among = [names[i] for i in selected]
        places, scores = index.nearest(queries, among, k)
        alone, same = nearest(queries, vectors[selected], among, k, distance)
        assert [[index.names[i] for i in row] for row in places] == [
            [among[i] for i in row] for row in alone
        ]
        assert (scores == same).all()


def test_unknown_names_are_not_in_the_index() -> None:
    index = NameIndex()
    assert "a" not in index
    index.add(["a"], np.zeros((1, 2), np.float32))
    assert "a" in index and "b" not in index
