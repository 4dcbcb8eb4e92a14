"""Whether the hard set differs from the full one: queries about one subject count once."""

import numpy as np
import pandas as pd
import pytest

from medprobe.metrics.subset_tests import subset_tests

SYSTEM = ("model", "fill_mask")
PAIRS = [("hard", "full")]


def table(hits: np.ndarray, hard: np.ndarray, clusters: np.ndarray) -> pd.DataFrame:
    """The rows of a system: all queries are in `full`, those marked in `hard` too."""
    full = pd.DataFrame({"acc_at_1": hits, "cluster": clusters, "weight": 1.0}).astype(float)
    parts = {"full": full, "hard": full[hard].rename(index="{}-hard".format)}
    return pd.concat(parts, names=["subset", "query_id"]).reset_index()


def p(hits: np.ndarray, hard: np.ndarray, clusters: np.ndarray) -> float:
    [row] = subset_tests({SYSTEM: table(hits, hard, clusters)}, PAIRS, 0.95).to_dict("records")
    assert row["difference"] == pytest.approx(hits[hard].mean() - hits.mean())
    assert row["low"] <= row["difference"] <= row["high"]
    return float(row["p"])


def test_repeated_queries_of_a_subject_are_no_further_evidence() -> None:
    hits, hard = np.array([1, 1, 1, 0, 1, 0, 0, 0, 1, 0]), np.arange(10) < 5
    clusters = np.arange(10)
    once = p(hits, hard, clusters)
    assert 0.05 < once < 1
    assert p(*(np.repeat(values, 4) for values in (hits, hard, clusters))) == pytest.approx(once)
    assert p(*(np.tile(values, 4) for values in (hits, hard)), np.arange(40)) < once / 2


def test_alike_subsets_are_rarely_significant_and_others_are() -> None:
    draw = np.random.default_rng(5)
    clusters = np.repeat(np.arange(60), 4)
    hard = np.repeat(draw.random(60) < 0.5, 4)  # subjects, not queries, are hard
    chances = []
    for _ in range(150):
        rates = np.repeat(draw.random(60), 4)  # a subject's queries are right together
        chances.append(p((draw.random(240) < rates).astype(int), hard, clusters))
    assert np.mean(np.array(chances) < 0.05) < 0.1
    assert p((draw.random(240) < np.where(hard, 0.2, 0.6)).astype(int), hard, clusters) < 1e-3


def test_sweeps_baselines_and_one_subset_are_not_tested() -> None:
    rows = table(np.array([1, 0, 1]), np.array([True, False, True]), np.arange(3))
    assert subset_tests({SYSTEM: rows[rows["subset"] == "full"]}, PAIRS, 0.95).empty
    assert subset_tests({("baseline", "chance"): rows}, PAIRS, 0.95).empty
    assert subset_tests({("model", "fill_mask:step-40"): rows}, PAIRS, 0.95).empty
