"""What a table can show, by simulation: more facts and more answers show more."""

import numpy as np
import pandas as pd

from medprobe.metrics.power import power


def table(facts: int, answers: int) -> pd.DataFrame:
    names = [f"q{number}" for number in range(facts)]
    answer = [f"answer {number % answers}" for number in range(facts)]
    about = {"query_id": names, "relation": "treats", "cluster": names, "answer": names}
    return pd.DataFrame({**about, "answers": [[name] for name in answer]})


def test_more_facts_show_more() -> None:
    few, many = power(table(20, 10), 0), power(table(150, 10), 0)
    for share, (low, high) in few.known.items():
        assert low <= high
        assert many.known[share][0] >= low
    assert many.known[0.2][0] > 0.9
    assert few.gains[0.2] < many.gains[0.2]
    assert few.gains[0.5] > 0.5


def test_the_same_table_and_seed_give_the_same() -> None:
    assert power(table(30, 6), 3) == power(table(30, 6), 3)


def test_three_facts_show_nothing() -> None:
    found = power(table(3, 3), 0)
    assert max(np.ravel([*found.known.values()])) < 0.3
