"""Down to the query: what the page holds of predictions, by identifier and by text."""

from pathlib import Path

import pandas as pd
import pytest

from made_up import query, ranked
from medprobe.core.tables import (
    CANDIDATE_COLUMNS,
    PREDICTION_COLUMNS,
    QUERY_COLUMNS,
    BenchmarkTables,
    write_predictions,
)
from medprobe.report.queries import answers, page

NAMES = [("alba", "C0", "", "full"), ("brena", "brena", "", "full")]


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, list[Path]]:
    """A benchmark of two queries, of which one has its subject in its identifier, and one model:
    `x` with two replicates and a sweep, and a table that ranks nothing."""
    first, second = query(1), query(2, answer=1)
    second = ("of Drug 2", *second[1:])
    asked = pd.DataFrame([first, second], columns=QUERY_COLUMNS)
    candidates = pd.DataFrame(NAMES, columns=CANDIDATE_COLUMNS)
    BenchmarkTables(asked, candidates, builder="medlama").write(tmp_path / "facts")
    rows = [
        ("", "a", first[0], 1, "brena", "brena", -1.0, False),
        ("", "a", first[0], 2, "alba", "C0", -2.0, True),
        ("", "a", "of Drug 2", 1, "no name", "", -1.0, False),
        *ranked(first[0], "x", "", "b"),
        *ranked(first[0], "x", "step-20", "a"),
    ]
    path = tmp_path / "model" / "x" / "facts.parquet"
    write_predictions(pd.DataFrame(rows, columns=PREDICTION_COLUMNS), path, "accuracy")
    other = tmp_path / "model" / "perplexity" / "facts.parquet"
    write_predictions(pd.DataFrame(rows[:1], columns=PREDICTION_COLUMNS), other, "perplexity")
    return tmp_path / "facts", [path, other]


def test_by_identifier_no_name_is_told(made: tuple[Path, list[Path]]) -> None:
    found = answers(*made, text=False)
    assert found is not None
    assert found["systems"] == [["model", "x"]]
    assert found["queries"] == [
        ["full-may_treat-1", "full", "may_treat", "S1", "", ["C0"]],
        ["query 2", "full", "may_treat", "S2", "", ["C1"]],
    ]
    named = [[[found["names"][at] for at in ten], right] for ten, right in found["ranked"][0]]
    assert named == [[["name 2", "C0"], [2]], [["no candidate"], []]]
    shown = page("facts", found, "../index.html", text=False)
    assert not any(name in shown for name in ("alba", "brena", "no name", "drug 1", "Drug 2"))


def test_by_text_all_is_told(made: tuple[Path, list[Path]]) -> None:
    found = answers(*made, text=True)
    assert found is not None
    assert found["queries"][1] == [
        *("of Drug 2", "full", "may_treat", "drug 2", "drug 2 might treat [Y] ."),
        ["brena"],
    ]
    assert set(found["names"]) == {"alba", "brena", "no name"}
    shown = page("facts", found, "../index.html", text=True)
    assert "drug 1 might treat" in shown and "keep it where the benchmark is" in shown


def test_what_ranks_no_names_has_no_page(made: tuple[Path, list[Path]]) -> None:
    folder, paths = made
    assert answers(folder, paths[1:], text=False) is None
