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
from medprobe.report import queries
from medprobe.report.blocks import Links, Paragraph
from medprobe.report.queries import Answers, answers, write
from medprobe.report.results import Results
from medprobe.report.sections.queries import section

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


def given(found: Answers) -> list[list[list]]:
    """What the one system answered, query by query, as the pieces have it."""
    return [
        [[piece["names"][at] for at in ten], right]
        for piece in found.pieces()
        for [(ten, right)] in piece["ranked"]
    ]


def written(found: Answers, folder: Path, *, text: bool) -> str:
    """All that the page and its pieces hold."""
    folder = folder / "pages"
    folder.mkdir()
    write("facts", found, folder, "../index.html", text=text)
    return "".join(path.read_text("utf-8") for path in folder.rglob("*.*"))


def test_by_identifier_no_name_is_told(made: tuple[Path, list[Path]], tmp_path: Path) -> None:
    found = answers(*made, text=False)
    assert found is not None
    assert found.content["systems"] == [["model", "x"]]
    assert found.content["best"] == ["20"]
    assert found.content["queries"] == [
        ["full-may_treat-1", "full", "may_treat", "S1", "", ["C0"]],
        ["query 2", "full", "may_treat", "S2", "", ["C1"]],
    ]
    assert given(found) == [[["name 2", "C0"], [2]], [["no candidate"], []]]
    shown = written(found, tmp_path, text=False)
    assert not any(name in shown for name in ("alba", "brena", "no name", "drug 1", "Drug 2"))


def test_by_text_all_is_told(made: tuple[Path, list[Path]], tmp_path: Path) -> None:
    found = answers(*made, text=True)
    assert found is not None
    assert found.content["queries"][1] == [
        *("of Drug 2", "full", "may_treat", "drug 2", "drug 2 might treat [Y] ."),
        ["brena"],
    ]
    assert set(found.names) == {"alba", "brena", "no name"}
    shown = written(found, tmp_path, text=True)
    assert "drug 1 might treat" in shown and "keep it where the benchmark is" in shown


def test_pieces_hold_what_one_would(
    made: tuple[Path, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = answers(*made, text=True)
    assert found is not None
    whole = given(found)
    monkeypatch.setattr(queries, "PIECE", 1)
    assert len([*found.pieces()]) == 2 and given(found) == whole


def test_what_was_not_asked_has_a_blank(made: tuple[Path, list[Path]]) -> None:
    folder, [path, _] = made
    table = pd.read_parquet(path)
    some = path.parent.parent / "y" / "facts.parquet"
    write_predictions(table[table["query_id"] == "of Drug 2"], some, "accuracy")
    found = answers(folder, [path, some], text=True)
    assert found is not None and found.content["best"] == ["20", " 0"]


def test_where_the_numbers_of_other_methods_are_is_said() -> None:
    found = Results(pd.DataFrame(), queries=frozenset({"facts"}), unlisted={"facts": ["x", "y"]})
    [told] = section(found, "facts")
    assert isinstance(told.blocks[0], Links) and isinstance(told.blocks[1], Paragraph)
    where = "outputs/predictions/<model>/<method>/facts.parquet"
    said = f"What x and y gave query by query stands in the project's tables {where}."
    assert told.blocks[1].text == said
    assert section(Results(pd.DataFrame()), "facts") == []


def test_what_ranks_no_names_has_no_page(made: tuple[Path, list[Path]]) -> None:
    folder, paths = made
    assert answers(folder, paths[1:], text=False) is None
