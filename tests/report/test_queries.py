"""Down to the query: what the page holds of predictions, by identifier and by text."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.toy_project import NAMED, project, query, ranked
from medprobe.cli.show import show, show_differing
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.core.tables import (
    CANDIDATE_COLUMNS,
    PREDICTION_COLUMNS,
    QUERY_COLUMNS,
    BenchmarkTables,
    write_predictions,
)
from medprobe.report import queries
from medprobe.report.queries import Answers, write

MADE_UP = Path("outputs/benchmarks/made_up")
NAMES = [("alba", "C0", "", "full"), ("brena", "brena", "", "full")]


def benchmark(
    folder: Path, queries: pd.DataFrame, others: dict[str, pd.DataFrame] | None = None
) -> Path:
    """A benchmark of these queries, with further tables."""
    candidates = pd.DataFrame(NAMES, columns=CANDIDATE_COLUMNS)
    tables = BenchmarkTables(queries, candidates, others=others or {}, builder="medlama")
    tables.write(folder / "facts")
    return folder / "facts"


@pytest.fixture
def toy_benchmark(tmp_path: Path) -> tuple[Path, list[Path]]:
    """A benchmark of two queries, of which one has its subject in its identifier, and one model:
    `x` with two replicates and a sweep, and a table that ranks nothing."""
    first, second = query(1), query(2, answer=1)
    second = ("of Drug 2", *second[1:])
    folder = benchmark(tmp_path, pd.DataFrame([first, second], columns=QUERY_COLUMNS))
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
    values = pd.DataFrame(rows[:1], columns=PREDICTION_COLUMNS).assign(perplexity=12.34)
    write_predictions(values, other, "perplexity")
    return folder, [path, other]


def answers(folder: Path, tables: list[Path], *, text: bool) -> Answers | None:
    query_answers = queries.read_answers(folder, tables)
    return query_answers and query_answers.label(text=text)


def last_answers(query_answers: Answers) -> list[list[list]]:
    """What the last system answered, query by query, as the pieces have it."""
    return [
        [[piece["names"][at] for at in ten], right]
        for piece in query_answers.pieces()
        for *_, (ten, right) in piece["ranked"]
    ]


def page_text(query_answers: Answers, folder: Path, *, text: bool) -> str:
    """All that the page and its pieces hold."""
    folder = folder / "pages"
    folder.mkdir()
    write("facts", query_answers, folder, text=text, is_open=False)
    return "".join(path.read_text("utf-8") for path in folder.rglob("*.*"))


def test_by_identifier_no_name_is_shown(
    toy_benchmark: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    query_answers = answers(*toy_benchmark, text=False)
    assert query_answers is not None
    assert query_answers.content["systems"] == [["model", "perplexity"], ["model", "x"]]
    assert query_answers.content["best"] == [". ", "20"]
    assert query_answers.content["queries"] == [
        ["full-may_treat-1", "full", "may_treat", "S1", "", ["C0"]],
        ["query 2", "full", "may_treat", "S2", "", ["C1"]],
    ]
    assert last_answers(query_answers) == [[["name 2", "C0"], [2]], [["no candidate"], []]]
    page = page_text(query_answers, tmp_path, text=False)
    assert not any(name in page for name in ("alba", "brena", "no name", "drug 1", "Drug 2"))


def test_a_system_that_shows_names_ahead_of_an_answer_says_so(
    toy_benchmark: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    folder, tables = toy_benchmark
    found = pd.read_parquet(tables[0]).assign(ahead=True)
    found.loc[found["prediction"] == "no name", "prediction"] = ""  # ten are ahead of the answer
    write_predictions(found, tables[0], "accuracy")
    query_answers = answers(folder, tables, text=True)
    assert query_answers is not None
    assert query_answers.content["ahead"] == [1]
    assert last_answers(query_answers)[1] == [["–"], []]
    assert "none is shown" in page_text(query_answers, tmp_path, text=True)


def test_by_text_everything_is_shown(
    toy_benchmark: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    query_answers = answers(*toy_benchmark, text=True)
    assert query_answers is not None
    assert query_answers.content["queries"][1] == [
        *("of Drug 2", "full", "may_treat", "drug 2", "drug 2 might treat [Y] ."),
        ["brena"],
    ]
    assert set(query_answers.names) == {"alba", "brena", "no name", "perplexity 12.3"}
    page = page_text(query_answers, tmp_path, text=True)
    assert "drug 1 might treat" in page and "do not share it more widely" in page


def test_small_pieces_have_the_answers_of_one_large_piece(
    toy_benchmark: tuple[Path, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    query_answers = answers(*toy_benchmark, text=True)
    assert query_answers is not None
    whole = last_answers(query_answers)
    monkeypatch.setattr(queries, "PIECE", 1)
    assert len([*query_answers.pieces()]) == 2 and last_answers(query_answers) == whole


def test_what_was_not_asked_has_a_blank(toy_benchmark: tuple[Path, list[Path]]) -> None:
    folder, [path, _] = toy_benchmark
    table = pd.read_parquet(path)
    other_path = path.parent.parent / "y" / "facts.parquet"
    write_predictions(table[table["query_id"] == "of Drug 2"], other_path, "accuracy")
    query_answers = answers(folder, [path, other_path], text=True)
    assert query_answers is not None and query_answers.content["best"] == ["20", " 0"]


def test_where_nothing_is_right_or_wrong_there_is_no_page(
    toy_benchmark: tuple[Path, list[Path]],
) -> None:
    folder, paths = toy_benchmark
    assert answers(folder, paths[1:], text=False) is None


def test_one_query_and_what_two_systems_differ_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path, monkeypatch)
    params = Params(**NAMED)
    show("made_up", "full-may_treat-3", params)
    output = capsys.readouterr().out
    assert "may_treat: drug 3 might treat [Y] ." in output and output.count("/contrastive") == 4
    assert "✓ name 1; name 2; name 3" in output
    show_differing("made_up", "untaught/contrastive", "taught/contrastive", params)
    output = capsys.readouterr().out
    assert output.count("full-may_") == 14  # 15 of 20 are right against 1
    monkeypatch.setenv("COLUMNS", "40")  # whole names however narrow the terminal is
    show_differing("made_up", "untaught/contrastive", "taught/contrastive", params)
    assert capsys.readouterr().out == output
    for ask, says in (
        (lambda: show("made_up", "none", params), "no query 'none'"),
        (lambda: show("made", "none", params), "did you mean 'made_up'"),
        (
            lambda: show_differing("made_up", "taught/contrastiv", "x", params),
            "did you mean 'taught/con",
        ),
        (
            lambda: show_differing("made_up", "taught/contrastive", "taught/contrastive", params),
            "--differ: 'taught/contrastive' twice; name two systems",
        ),
    ):
        with pytest.raises(BadInput, match=says):
            ask()


def test_a_query_is_shown_by_its_number_where_its_identifier_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path, monkeypatch)
    params = Params(**NAMED)
    for path in [*Path("outputs/predictions").rglob("*.parquet"), MADE_UP / "queries.parquet"]:
        table = pq.read_table(path)
        place = table.schema.get_field_index("query_id")
        names = table["query_id"].to_pylist()
        named = ["drug 3" if name == "full-may_treat-3" else name for name in names]
        field = table.schema.field(place)
        pq.write_table(table.set_column(place, field, pa.array(named, field.type)), path)
    raw = queries.read_answers(MADE_UP, Path("outputs/predictions").rglob("*.parquet"))
    assert raw is not None
    [number] = [entry[0] for entry in raw.label(text=False).content["queries"] if " " in entry[0]]
    for name in ("drug 3", number):
        show("made_up", name, params)
        assert "may_treat: drug 3 might treat [Y] ." in capsys.readouterr().out
