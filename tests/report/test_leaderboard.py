"""The page's first screen as data, from made-up tables: who is best, and what is said of it."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.made_board import board_of, page_data, spelt
from medprobe.report.leaderboard import leaderboard, letters, title

Values = Mapping[str, Mapping[str, float]]
LEAD: Values = {"sure": {"good": 0.9, "fair": 0.5, "poor": 0.4}}


@pytest.mark.parametrize(
    ("values", "apart", "above", "says"),
    [
        (LEAD, ["good fair", "good poor"], "good fair", "good leads on sure by 40.0 points"),
        (
            LEAD,
            ["good poor"],
            "good",
            "good is first but not significantly better than fair on sure (90.0 against 50.0)",
        ),
        (
            LEAD,
            [],
            "good",
            "good is first but not significantly better than 2 others on sure (90.0)",
        ),
        (LEAD, ["good fair"], "", "No model is significantly above its control on sure"),
        (
            {"own": {"good": 0.9}},
            [],
            "good",
            "good is significantly above its control on own by 80.0 points",
        ),
        ({"own": {"good": 0.9}}, [], "", "good is not significantly above its control on own"),
        (
            {"one": {"a": 0.5, "b": 0.2}, "two": {"a": 0.4, "b": 0.3}, "three": {"a": 0.4}},
            ["a b"],
            "a b",
            "a leads b on one by 30.0 and two by 10.0 points",  # nobody else was asked three
        ),
        (
            {"one": {"a": 0.5, "b": 0.2}, "two": {"c": 0.4, "d": 0.4}},
            ["a b"],
            "a b c d",
            "a leads b on one by 30.0 points; "
            "c is first but not significantly better than d on two (40.0 against 40.0)",
        ),
    ],
)
def test_the_title_answers(values: Values, apart: list[str], above: str, says: str) -> None:
    assert title(board_of(values, apart, above.split())) == says


def test_the_title_follows_the_chosen_models() -> None:
    board = board_of(LEAD, ["good fair", "good poor"], ["good", "fair"])
    fair, good, poor = range(3)
    assert [model["name"] for model in board["models"]] == ["fair", "good", "poor"]
    assert title(board, [fair, poor]).startswith("fair is first but not significantly better")
    assert title(board, [poor]) == "poor is not significantly above its control on sure"
    assert title(board, [fair, good]) == "good leads fair on sure by 40.0 points"


def test_what_no_test_could_find_is_not_called_a_tie() -> None:
    board = board_of(LEAD, [], ["good"], untestable="4 independent answers")
    assert title(board) == "Models cannot be compared on sure (4 independent answers)"
    tested = board_of({"own": LEAD["sure"]}, [], ["good"])["benchmarks"]
    assert "sure" not in title({**board, "benchmarks": [*tested, *board["benchmarks"]]})
    column = board["benchmarks"][0]
    assert {test[5] for test in column["tests"]} == {"4 independent answers"}
    assert column["cells"][0]["state"] == "untestable"
    assert "cannot be tested: 4 independent answers" in column["cells"][0]["about"]


def test_cells_say_where_a_model_stands_to_its_control_and_blanks_who_was_not_asked() -> None:
    values = {"a": {"up": 0.5, "flat": 0.12}, "b": {"up": 0.4}}
    board = leaderboard(page_data(values, [], ["up"], below=["flat"]))
    a, b = board["benchmarks"]
    flat, up = a["cells"]
    assert (up["text"], up["value"], up["control"], up["gain"]) == ("50.0", 50.0, 10.0, 40.0)
    assert (up["state"], flat["state"]) == ("above", "below")
    assert up["about"].splitlines()[1] == "its answers to other subjects: 10.0"
    assert b["cells"][0] is None and b["name"] == "b"


def test_where_low_is_good_the_lowest_leads_and_has_no_place_on_the_scale() -> None:
    values = {"texts": {"a": 30.0, "b": 20.0}}
    board = leaderboard(page_data(values, ["a b"], [], below=["a", "b"], metric="perplexity"))
    [column] = board["benchmarks"]
    assert [cell["place"] for cell in column["cells"]] == [1, 0]
    assert column["tests"][0][2:5] == [-10.0, -10.05, -9.95]  # a is worse
    assert not column["share"]
    assert title(board) == "b leads a on texts"


@given(st.integers(2, 9), st.integers(0, 2**36 - 1))
def test_models_share_a_letter_if_and_only_if_they_cannot_be_told_apart(n: int, bits: int) -> None:
    different = np.zeros((n, n), bool)
    for place, pair in enumerate(combinations(range(n), 2)):
        different[pair] = different[pair[::-1]] = bits >> place & 1
    groups = [spelt(text) for text in letters(different)]
    for i, j in combinations(range(n), 2):
        assert bool(groups[i] & groups[j]) != different[i, j]


def test_no_numbers_give_no_first_screen() -> None:
    board = leaderboard(page_data({}, [], []))
    assert board["benchmarks"] == [] and title(board) == ""
    assert isinstance(board["models"], list) and pd.DataFrame(board["models"]).empty
