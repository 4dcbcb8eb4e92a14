"""What bench/significance.py measures, in small: tests by cluster keep their level."""

import pytest

from bench import coverage
from bench.significance import replicated, simulate


def test_clusters_turned_round_whole_give_no_more_false_alarms_than_promised() -> None:
    rates = simulate(queries=400, size=20, simulations=12)
    assert rates["false alarms"] < 0.12  # 1,440 tests of dependent pairs
    assert rates["query by query"] > 0.15  # what ignoring clusters would claim
    assert rates["intervals that hold"] > 0.85
    assert rates["found"] > 0.5


def test_of_single_queries_both_ways_are_one() -> None:
    rates = simulate(queries=150, size=1, simulations=4)
    assert rates["false alarms"] < 0.12
    assert rates["query by query"] == pytest.approx(rates["false alarms"], abs=0.1)


def test_intervals_that_draw_replicates_hold_more_often() -> None:
    rates = replicated(5, simulations=40, queries=60)
    assert rates["of both"] > rates["intervals that hold, of clusters alone"]


def test_intervals_of_many_diseases_hold_their_truth() -> None:
    rows = {row["metric"]: row for row in coverage.diseases(units=40, simulations=12)}
    assert {"f1", "top_1", "auc"} <= rows.keys()
    assert min(rows[metric]["holds"] for metric in ("f1", "top_1", "auc")) > 0.6
