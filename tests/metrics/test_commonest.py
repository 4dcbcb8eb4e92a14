"""Common answers and effective numbers: of a relation, and as a benchmark's statistics."""

from collections import Counter

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.core.benchmark_statistics import (
    answer_keys,
    effective_number,
    has_common_answer,
    statistics,
    weak_relations,
)
from medprobe.core.tables import CANDIDATE_COLUMNS, BenchmarkTables


def queries(*answers: list[str], relation: str = "treats", subset: str = "full") -> pd.DataFrame:
    """Queries of one relation with these answers, which are their own ids."""
    count = len(answers)
    return pd.DataFrame(
        {
            "query_id": [f"{subset} {relation} {number}" for number in range(count)],
            "subset": subset,
            "relation": relation,
            "subject": [f"s{number}" for number in range(count)],
            "answers": list(answers),
            "answer_ids": list(answers),
        }
    )


def test_the_eleventh_answer_is_uncommon() -> None:
    """Ten answers have two queries each, and an eleventh has one."""
    table = queries(*[[f"a{i % 10}"] for i in range(20)], ["rare"], ["rare", "a3"])
    assert has_common_answer(table).tolist() == [True] * 20 + [False, True]


def test_of_equally_common_answers_the_first_are_common() -> None:
    assert has_common_answer(queries(*[[f"a{i}"] for i in range(12)])).sum() == 10


def test_each_relation_and_subset_has_its_own() -> None:
    first = queries(*[[f"a{i // 2}"] for i in range(22)])
    second = queries(["a10"], ["x"], relation="causes")
    hard = queries(["a10"], subset="hard")
    table = pd.concat([first, second, hard], ignore_index=True)
    assert has_common_answer(table).tolist() == [True] * 20 + [False] * 2 + [True] * 3


def test_names_of_one_id_are_one_answer() -> None:
    table = queries(["pain", "ache"], ["ache"]).assign(answer_ids=[["C1", "C1"], ["C1"]])
    assert answer_keys(table).tolist() == [["C1", "C1"], ["C1"]]
    without = table.assign(answer_ids=[["", ""], [""]])
    assert answer_keys(without).tolist() == [["pain", "ache"], ["ache"]]


@given(st.lists(st.lists(st.integers(0, 25), min_size=1, max_size=3), min_size=1, max_size=60))
def test_it_is_the_count_of_queries_by_answer(answers: list[list[int]]) -> None:
    """Against a counter; its order of equal counts is that of the first occurrence, too."""
    names = [[f"a{number}" for number in answer_numbers] for answer_numbers in answers]
    counts = Counter(name for answer_numbers in names for name in dict.fromkeys(answer_numbers))
    ten = {name for name, _ in counts.most_common(10)}
    expected = [bool(ten.intersection(answer_numbers)) for answer_numbers in names]
    assert has_common_answer(queries(*names)).tolist() == expected


@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=30))
def test_effective_numbers_lie_between_one_and_the_number_of_names(names: list[str]) -> None:
    effective = effective_number(pd.Series(names))
    assert 1 - 1e-9 <= effective <= len(set(names)) + 1e-9
    assert effective_number(pd.Series(names * 2)) == pytest.approx(effective)


def test_statistics_count_effective_and_uncommon_answers() -> None:
    """treats: 12 answers, once each; causes: the first answers are one for three of four."""
    table = pd.concat(
        [
            queries(*[[f"a{i}"] for i in range(12)]),
            queries(["x", "y"], ["x"], ["x"], ["z"], relation="causes"),
        ],
        ignore_index=True,
    )
    candidates = pd.DataFrame([("x", "x", "", "full")], columns=CANDIDATE_COLUMNS)
    table_statistics = statistics(BenchmarkTables(table, candidates))
    rows = table_statistics.set_index("relation")
    assert rows.loc["treats", "effective_answers"] == pytest.approx(12)
    assert rows.loc["causes", "effective_answers"] == pytest.approx(1 / (9 / 16 + 1 / 16))
    assert rows.loc["all", "effective_answers"] == pytest.approx(16**2 / (12 + 9 + 1))
    assert rows["uncommon"].to_dict() == {"causes": 0, "treats": 2, "all": 2}
    assert weak_relations(table_statistics, "full") == ["causes"]
    assert weak_relations(table_statistics, "hard") == []
