"""Nearest names, against the code that MedLAMA released."""

from functools import cache

import numpy as np
import pytest

from helpers import parity
from medprobe.engine.search import NameIndex
from medprobe.papers.medlama.methods.contrastive import round_to_half

INPUTS, OUTPUTS = parity.read("retrieval", "inputs"), parity.read("retrieval", "outputs")
RUNS = [
    (case, run)
    for case, outputs in enumerate(OUTPUTS["cases"])
    for run in range(len(outputs["runs"]))
]
FAR = 1e3  # of a name that has no vector in the case
K = 10


@cache
def ranked(case: int, run: int, half: bool = False) -> dict[str, list[str]]:
    """Our ten names of each query. Names that are answers only were far away."""
    case_inputs, theirs = INPUTS["cases"][case], OUTPUTS["cases"][case]["runs"][run]
    names = [*case_inputs["names"], *theirs["not_in_the_list"]]
    vectors = np.array(case_inputs["vectors"], dtype=np.float32)
    far = np.full((len(theirs["not_in_the_list"]), vectors.shape[1]), FAR, dtype=np.float32)
    queries = np.array([query["vector"] for query in case_inputs["queries"]], dtype=np.float32)
    offered = np.concatenate([vectors, far])
    if half:
        queries, offered = map(round_to_half, (queries, offered))
    index = NameIndex()
    index.add(names, offered)
    indices, _ = index.nearest(queries, names, K)
    return {
        query["id"]: [names[i] for i in row]
        for query, row in zip(case_inputs["queries"], indices, strict=True)
    }


def distances(case: int, query: int, names: list[str], half: bool = False) -> np.ndarray:
    """The squared distances of names from a query, in double precision."""
    case_inputs = INPUTS["cases"][case]
    width = np.float16 if half else np.float64
    vectors = dict(
        zip(case_inputs["names"], np.array(case_inputs["vectors"], dtype=width), strict=True)
    )
    query_vector = np.array(case_inputs["queries"][query]["vector"], dtype=width).astype(np.float64)
    return np.array(
        [((vectors[name].astype(np.float64) - query_vector) ** 2).sum() for name in names]
    )


def same_up_to_ties(case: int, query: int, ours: list[str], theirs: list[str], half=False) -> bool:
    """Are the distances at each place the same? Equal ones may stand in any order."""
    a, b = distances(case, query, ours, half), distances(case, query, theirs, half)
    norm = 1 + np.square(INPUTS["cases"][case]["queries"][query]["vector"]).sum()
    return bool(np.allclose(a, b, rtol=0, atol=2e-6 * norm))


def compared(case: int, run: int):
    """(place of the query, our list, what the released code gave)"""
    theirs = OUTPUTS["cases"][case]["runs"][run]["queries"]
    for i, (name, ranking) in enumerate(ranked(case, run).items()):
        yield i, name, ranking, theirs[name]


@pytest.mark.parametrize(("case", "run"), RUNS)
def test_the_ten_nearest_are_the_same_up_to_ties(case, run):
    for i, name, ranking, theirs in compared(case, run):
        assert same_up_to_ties(case, i, ranking, theirs["top"]), name


@pytest.mark.parametrize(("case", "run"), RUNS)
def test_vectors_of_half_precision_give_what_the_released_script_gave(case, run):
    half = ranked(case, run, half=True)
    for i, name, _, theirs in compared(case, run):
        their_top = theirs["top"] if theirs["top_half"] == "same" else theirs["top_half"]
        assert same_up_to_ties(case, i, half[name], their_top, half=True), name


def test_our_order_does_not_depend_on_that_of_the_index():
    for case in range(len(OUTPUTS["cases"])):
        first, second = ranked(case, 0), ranked(case, 1)
        assert first == second
