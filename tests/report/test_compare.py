"""The comparison: its table, its tests and its page."""

import re
from collections.abc import Iterator, Sequence
from contextlib import chdir
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import FolderOf, made_up_paper
from helpers.toy_project import METADATA, NAMES, project, score_once
from helpers.toy_report import PARAMS, write_report
from medprobe.core import places
from medprobe.core.papers import papers
from medprobe.metrics.results import COMPARISON
from medprobe.pipeline.stages.compare import compare, with_names
from medprobe.report.blocks import Block, Cell, Chapter, Links, Part, Table, drawings
from medprobe.report.numbers import format_value
from medprobe.report.page import chapters, render
from medprobe.report.page_data import PageData
from medprobe.report.queries import QueryJob, write_page_of_benchmark
from medprobe.report.sections import published, statistics
from medprobe.report.sections.models import breakdowns


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, tiny_model: FolderOf) -> Path:
    return write_report(tmp_path_factory.mktemp("project"), tiny_model("bert"))


@pytest.fixture
def printed(working_folder: Path) -> Iterator[None]:
    """The working folder is a project with a paper of its own."""
    with made_up_paper.published(working_folder):
        yield


def test_a_page_of_numbers_without_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, monkeypatch)
    statistics = "subset,relation,queries,chance_at_1\nfull,may_treat,10,0.2\n"
    Path("outputs/benchmarks/made_up/statistics.csv").write_text(statistics)
    score_once(PARAMS)
    for path in places.SCORES.glob("*/*.json"):
        numbers = re.sub(r'"(low|high)": [-\d.e]+,?', "", path.read_text())
        path.write_text(re.sub(r",\s*}", "}", numbers))
    compare(PARAMS)
    assert "made_up" in Path("reports/index.html").read_text()


def test_the_table_has_its_columns_and_every_number(reports: Path) -> None:
    table = pd.read_csv(reports / "comparison.csv")
    assert list(table) == COMPARISON
    where = table.set_index(["subset", "relation", "model", "method", "metric"])
    row = where.loc[("full", "macro", "taught", "contrastive", "acc_at_1")]
    assert (row["value"], row["n"]) == (0.75, 20)
    assert row["low"] < 0.75 < row["high"]
    assert ("full", "may_treat", "untaught", "contrastive:original", "acc_at_5") in where.index
    assert not table.duplicated(COMPARISON[:6]).any()


def test_the_benchmark_itself_is_counted(reports: Path, tiny_model: FolderOf) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model("bert"))
    lengths = [len(tokenizer(name, add_special_tokens=False)["input_ids"]) for name in NAMES]
    benchmark_statistics = pd.read_csv(reports / "statistics.csv")
    where = benchmark_statistics.set_index(["subset", "relation", "model", "metric"])["value"]
    assert where["full", "all", "any", "queries"] == 20
    assert where["full", "may_treat", "any", "queries"] == 10
    assert where["full", "all", "any", "relations"] == 1
    assert where["full", "all", "any", "answer_characters"] == 13.2
    mean = sum(lengths) / len(NAMES)
    assert where["full", "all", "taught", "tokens_per_answer"] == pytest.approx(mean)
    share = lengths.count(1) / len(NAMES)
    assert where["full", "all", "taught", "single_token_share"] == pytest.approx(share)
    counted = [where["full", "all", "taught", name] for name in ("names", "same_names")]
    assert counted == [len(NAMES), 0]
    of_two = lengths.count(2) / len(NAMES)
    assert where["full", "all", "taught", "answers_of_2"] == pytest.approx(of_two)
    table = pd.read_csv(reports / "comparison.csv")
    assert set(table["model"]) == {"taught", "untaught", "baseline"}
    assert "Distinct answers, in the tokens of each model" in (reports / "index.html").read_text()


def test_a_file_beside_the_page_says_how_and_when_the_results_were_made(reports: Path) -> None:
    provenance = (reports / "provenance.js").read_text()
    for text in ("tokens per second", "a quick one", "torch", "UTC", "medprobe "):
        assert text in provenance, text
    assert 'src="provenance.js"' in (reports / "index.html").read_text()


def test_the_same_input_gives_the_same_bytes(reports: Path) -> None:
    again = reports.parent / "again"
    files = {path.relative_to(reports) for path in reports.rglob("*") if path.is_file()}
    assert len(files) > 6
    files.remove(Path("provenance.js"))
    for name in files:
        assert (again / name).read_bytes() == (reports / name).read_bytes(), name


def test_the_page_is_whole_and_needs_no_network(reports: Path) -> None:
    page = (reports / "index.html").read_text()
    assert "url(http" not in page
    assert "@import" not in page

    open_tags: list[str] = []

    class Checker(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list) -> None:
            if tag not in ("meta", "br", "link"):
                open_tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert open_tags.pop() == tag

        def handle_startendtag(self, tag: str, attrs: list) -> None:
            pass

    Checker().feed(page)
    assert open_tags == []


def test_every_heading_has_an_address(reports: Path) -> None:
    page = (reports / "index.html").read_text()
    addresses = re.findall(r'<h[1-6] id="([^"]+)"', page)
    assert len(addresses) == len(set(addresses)) == len(re.findall(r"<h[1-6]\b", page)) > 8
    assert {"top", "made_up/made_up", "reading/all-metrics"} <= set(addresses)


def test_the_page_shows_the_drawings_that_papers_get(reports: Path) -> None:
    page = (reports / "index.html").read_text()
    files = [*(reports / "figures").glob("*.svg")]
    assert page.count("<svg") >= len(files) > 3
    assert all(path.read_text() in page for path in files)


def test_breakdowns_hold_the_numbers_of_the_table() -> None:
    rows = [
        ("facts", "full", "causes", "a", "x", "acc_at_1", 0.5, 0.4, 0.6, 10, None),
        ("facts", "full", "treats", "a", "x", "acc_at_1", 0.25, 0.2, 0.3, 19_003, None),
        ("facts", "full", "treats", "b", "x", "acc_at_1", 0.75, 0.7, 0.8, 19_003, None),
        ("facts", "full", "treats", "b", "x:step-3", "acc_at_1", 0.9, 0.9, 0.9, 19_003, None),
        ("facts", "full", "macro", "a", "x", "acc_at_1", 0.4, 0.3, 0.5, 19_013, None),
        ("facts", "full/read:over-9", "micro", "a", "x", "acc_at_1", 0.1, 0.1, 0.1, 4, None),
        ("facts", "full/read:1-9", "micro", "a", "x", "acc_at_1", 0.2, 0.2, 0.2, 5, None),
        ("facts", "full/read:1-9", "treats", "a", "x", "acc_at_1", 0.3, 0.3, 0.3, 5, None),
    ]
    results = PageData(
        comparison=pd.DataFrame(rows, columns=COMPARISON), benchmarks={"facts": METADATA}
    )
    relation, read = (breakdowns(results, "facts", "full")[by] for by in ("relation", "times read"))
    assert relation.heads == ["model", "method", "causes (10)", "treats (19,003)"]
    assert [[getattr(cell, "text", cell) for cell in row] for row in relation.rows] == [
        ["b", "x", "–", "75.0  [70.0, 80.0]"],
        ["a", "x", "50.0  [40.0, 60.0]", "25.0  [20.0, 30.0]"],
    ]
    assert read.heads[2:] == ["1-9 (5)", "over-9 (4)"]
    assert len(read.rows) == 1


@pytest.mark.parametrize(
    ("about", "text"),
    [({}, False), ({"invented": True}, False), ({"terms": "own"}, False), ({}, True)],
)
def test_prompts_are_on_a_page_only_where_they_are_open_or_ones_own_or_allowed(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, about: dict, text: bool
) -> None:
    monkeypatch.chdir(reports.parent)
    replace(METADATA, **{"invented": False, **about}).write(tmp_path / "made_up.json")
    monkeypatch.setattr(places, "ABOUT", tmp_path)
    tables = sorted(places.PREDICTIONS.glob("*/*/made_up.parquet"))
    write_page_of_benchmark(tmp_path, text, QueryJob("made_up", tables))
    page = (tmp_path / "made_up.html").read_text() + (tmp_path / "made_up/0.js").read_text()
    assert ("drug 1 might treat" in page) == ("corvin" in page) == bool(about or text)


WHERE = {"benchmark": "facts", "model": "mine", "method": "fill_mask", "metric": "acc_at_1"}
PRINTED = [f"relation {number}" for number in range(19)]  # of 1,000 queries each, in the paper


def measured(
    relations: dict[str, int],
    mean: str = "macro",
    value: float = 0.034,
    subset: str = "full",
    std: float | None = 0.01,
) -> PageData:
    """A mean over these relations, of so many queries each."""
    sizes = [*relations.items(), (mean, sum(relations.values()))]
    rows = [
        {**WHERE, "subset": subset, "relation": name, "value": value, "std": std, "n": size}
        for name, size in sizes
    ]
    return PageData(
        comparison=pd.DataFrame(rows, columns=COMPARISON),
        benchmarks={"facts": replace(METADATA, invented=False)},
        builders={"facts": "table"},
        published={"mine": "Old BERT"},
    )


def note(results: PageData, table: str = "1", models: Sequence[str] = ()) -> str:
    """The note on the mean."""
    number = list(results.comparison.itertuples())[-1]
    paper = papers()["made_up"]
    return published.data_note(results, number, paper, paper.tables[table], models)


@pytest.mark.parametrize(
    ("value", "queries", "std", "verdict"),
    [
        (0.034, 1000, 0.01, "within one"),
        (0.04, 1000, 0.01, "3.6"),
        (0.034, 999, 0.01, "–"),
        (0.034, 1000, None, "–"),
    ],
)
def test_a_difference_is_counted_in_printed_deviations_on_the_papers_data_alone(
    printed: None, value: float, queries: int, std: float | None, verdict: str
) -> None:
    """In print: 3.28 ± 0.20 on 19 relations of 1,000 queries, over several replicates."""
    results = measured(dict.fromkeys(PRINTED, queries), value=value, std=std)
    [section] = published.section(results, "facts")
    table = section.blocks[0]
    assert isinstance(table, Table)
    [row] = table.rows
    cell = row[[*table.heads].index("in deviations")]
    assert (cell.text if isinstance(cell, Cell) else cell) == verdict


@settings(settings.get_profile("few"))
@given(st.data())
def test_what_a_mean_is_over_decides_about_the_papers_data(data: st.DataObject) -> None:
    """Whatever relations and queries are taken out of a mean or put in, the word changes."""
    with TemporaryDirectory() as folder, chdir(folder), made_up_paper.published(Path(folder)):
        mean = data.draw(st.sampled_from(["macro", "micro", "weighted"]))
        whole = dict.fromkeys(PRINTED, 1000)
        assert note(measured(whole, mean)) == "yes"
        names = st.sampled_from([*PRINTED, "another"])
        other = data.draw(st.dictionaries(names, st.integers(1, 2000), min_size=1, max_size=20))
        says = note(measured(other, mean))
        is_as_large = (sum(other.values()), len(other)) == (19000, 19)
        assert says.startswith("yes" if is_as_large else "no: ")
        named = set(
            data.draw(st.sets(st.sampled_from(["treats", "causes", "another"]), min_size=1))
        )
        says = note(measured(dict.fromkeys(named, 5), mean, subset="named"))
        assert says.startswith("yes" if named == {"treats", "causes"} else "no: "), says
        probed = data.draw(st.sets(st.sampled_from(["Old BERT", "Lost BERT", "own"]), min_size=1))
        says = note(measured(whole, mean), "2", sorted(probed))
        assert says.startswith("yes" if probed == {"Old BERT", "Lost BERT"} else "no: ")


@pytest.mark.parametrize(
    ("subset", "relations", "says"),
    [
        ("hard", dict.fromkeys(PRINTED, 8), "yes"),
        (
            "hard",
            dict.fromkeys(PRINTED, 9),
            "no: 171 queries, 19 relations here; 152 queries, 19 relations there",
        ),
        ("other", dict.fromkeys(PRINTED, 5), "yes, by its relations"),
        ("nowhere", {"treats": 5}, "not counted by the paper"),
        ("named", {"treats": 5, "cures": 5}, "no: other relations, cures here, causes there"),
    ],
)
def test_where_print_has_no_count_that_of_the_released_files_decides(
    printed: None, subset: str, relations: dict[str, int], says: str
) -> None:
    assert note(measured(relations, subset=subset)) == says


def test_the_papers_models_do_not_make_data_the_papers(printed: None) -> None:
    """A mean over the paper's models, of a data set that it does not count."""
    number, models = measured({"treats": 5}, subset="nowhere"), ["Old BERT", "Lost BERT"]
    assert note(number, "2", models) == "not counted by the paper"
    assert note(number, "2", models[:1]).startswith("no: 1 models here; 2 models there")


def test_counts_in_print_stand_next_to_those_of_the_papers_data(printed: None) -> None:
    """In print: 19 relations, 19 thousand queries, 2.3 answers each."""
    of_relations = {"relation": ["treats", "causes"], "queries": [1000, 234]}
    of_all = {"relation": ["all"], "queries": [1234], "answers_per_query": [2.25]}
    counted = pd.concat([pd.DataFrame(of_relations), pd.DataFrame(of_all)]).assign(subset="full")

    def blocks(*, invented: bool) -> list[Block]:
        results = PageData(
            comparison=pd.DataFrame(columns=COMPARISON),
            benchmarks={"facts": replace(METADATA, invented=invented)},
            builders={"facts": "table"},
            statistics={"facts": counted},
        )
        return [block for part in statistics.section(results, "facts") for block in part.blocks]

    tables = [block for block in blocks(invented=False) if isinstance(block, Table)]
    [table] = [table for table in tables if table.caption.startswith("Counts in print")]
    rows = [[cell.text if isinstance(cell, Cell) else cell for cell in row] for row in table.rows]
    assert rows == [
        ["queries", "1,234", "19,000"],
        ["relations", "2", "19"],
        ["answers per query", "2.25", "2.3"],
    ]
    assert len(blocks(invented=True)) == len(blocks(invented=False)) - 1


def test_every_text_is_escaped() -> None:
    name = "<b>&'\""
    blocks = [Table([name], [[name], [Cell(name, 1.0, 0.5)]], name), Links([("#" + name, name)])]
    results = PageData(pd.DataFrame(columns=COMPARISON))
    page = render(results, [Chapter(name, name, [name], [Part(name, blocks)])])
    assert "<b>&'" not in page
    assert page.count("&lt;b&gt;&amp;&#39;&#34;") == 14


def test_the_chapters_of_twins(reports: Path) -> None:
    """Which model is the untaught twin is what params.yaml says."""
    tables = (pd.read_csv(reports / f"{name}.csv") for name in ("comparison", "significance"))
    results = PageData(*tables, benchmarks={"made_up": METADATA}, twins={"taught": "untaught"})
    [of_twins] = chapters(results)
    assert any("calibration" in name for name in drawings(of_twins.parts))
    assert "better in 0 and the untaught one in 1" in str(of_twins.parts)
    [alone] = chapters(replace(results, twins={}))
    assert not any("calibration" in name for name in drawings(alone.parts))


def test_a_number_that_is_none_is_a_dash() -> None:
    assert format_value("acc_at_1", float("nan")) == "–"


@pytest.mark.parametrize(("text", "shown_names"), [(False, ["C2", "chf"]), (True, ["chf", "gout"])])
def test_a_concept_goes_by_a_name_that_a_paper_prints(
    printed: None, text: bool, shown_names: list[str]
) -> None:
    folder = places.BENCHMARKS / "own"
    folder.mkdir(parents=True)
    chf = "C0018802"
    names = [(chf, "Congestive heart failure", True), (chf, "CHF", False), ("C2", "gout", True)]
    pd.DataFrame(names, columns=["cui", "name", "preferred"]).to_parquet(folder / "names.parquet")
    rows = [
        ("own", "symptoms", relation, "a", "fill_mask", "acc_at_1", 0.5, 0.4, 0.6, 9, None)
        for relation in (chf, "C2", "macro")
    ]
    rows.append(("other", *rows[0][1:]))
    scores = pd.DataFrame(rows, columns=COMPARISON)
    named = with_names(scores, ["own", "other"], text=text)
    assert named[named["benchmark"] == "own"]["relation"].tolist() == [*shown_names, "macro"]
    assert named[named["benchmark"] == "other"]["relation"].tolist() == [chf]
