"""The comparison: its table, its tests and its page."""

import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
import transformers

from made_up import METADATA, NAMES, project
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import ModelParams, Models, Params, ScoreParams
from medprobe.metrics.results import COMPARISON, comparison, sweep
from medprobe.metrics.significance import SIGNIFICANCE
from medprobe.report.blocks import Cell, Chapter, Links, Part, Table, drawings
from medprobe.report.explore import KEYS, VALUES, numbers
from medprobe.report.numbers import shown
from medprobe.report.page import chapters, render
from medprobe.report.results import Results, overlap
from medprobe.stages.compare import compare, with_names
from medprobe.stages.score import score
from medprobe.stages.significance import significance
from medprobe.tracking import lineage

MODELS = Models(
    masked={"taught": ModelParams(), "untaught": ModelParams(untaught_twin_of="taught")}
)
PARAMS = Params(score=ScoreParams(bootstrap=100), models=MODELS)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, tiny_model: Callable[[str], Path]) -> Path:
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as monkeypatch:
        project(folder, monkeypatch)
        lines = [
            f"S{i},drug {i},{relation},C{i % 5},x,{i % 3}"
            for relation in ("may_treat", "may_prevent")
            for i in range(10)
        ]
        header = "subject_cui,subject,relation,object_cui,object,times"
        statistics = Path("outputs/benchmarks/made_up/statistics.csv")
        statistics.write_text(
            "subset,relation,queries,answers_per_query,answer_characters\n"
            "full,all,20,1.0,13.2\nfull,may_treat,10,1.0,13.2\n"
        )
        shutil.copytree(tiny_model("bert"), places.MODELS / "taught")
        facts = places.MODELS / "taught" / "facts.csv"
        facts.write_text("\n".join([header, *lines]) + "\n")
        score(PARAMS)
        table = places.PREDICTIONS / "taught/contrastive/made_up.parquet"
        record = places.RUNS / "taught/contrastive/made_up.json"
        with lineage.recorded(record, table, {"device": "a quick one", "tokens": 1234}):
            pass
        significance(PARAMS)
        compare(PARAMS)
        compare(PARAMS, Path("again"))
    return folder / "reports"


def test_the_table_has_its_columns_and_every_number(reports: Path) -> None:
    table = pd.read_csv(reports / "comparison.csv")
    assert list(table) == COMPARISON
    where = table.set_index(["subset", "relation", "model", "method", "metric"])
    row = where.loc[("full", "macro", "taught", "contrastive", "acc_at_1")]
    assert (row["value"], row["n"]) == (0.75, 20)
    assert row["low"] < 0.75 < row["high"]
    assert ("full", "may_treat", "untaught", "contrastive:original", "acc_at_5") in where.index
    assert not table.duplicated(COMPARISON[:6]).any()


def test_the_benchmark_itself_is_counted(reports: Path, tiny_model: Callable[[str], Path]) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model("bert"))
    lengths = [len(tokenizer(name, add_special_tokens=False)["input_ids"]) for name in NAMES]
    own = pd.read_csv(reports / "statistics.csv")
    where = own.set_index(["subset", "relation", "model", "metric"])["value"]
    assert where["full", "all", "any", "queries"] == 20
    assert where["full", "may_treat", "any", "queries"] == 10
    assert where["full", "all", "any", "relations"] == 1
    assert where["full", "all", "any", "answer_characters"] == 13.2
    mean = sum(lengths) / len(NAMES)
    assert where["full", "all", "taught", "tokens_per_answer"] == pytest.approx(mean)
    share = lengths.count(1) / len(NAMES)
    assert where["full", "all", "taught", "single_token_share"] == pytest.approx(share)
    of_two = lengths.count(2) / len(NAMES)
    assert where["full", "all", "taught", "answers_of_2"] == pytest.approx(of_two)
    assert len([*(reports / "figures").glob("*-tokens.svg")]) == 1
    table = pd.read_csv(reports / "comparison.csv")
    assert set(table["model"]) == {"taught", "untaught"}
    assert "Distinct answers, in the tokens of each model" in (reports / "index.html").read_text()


def test_a_file_beside_the_page_says_how_and_when_the_results_were_made(reports: Path) -> None:
    told = (reports / "made.js").read_text()
    for text in ("tokens per second", "a quick one", "torch", "UTC", "medprobe "):
        assert text in told, text
    assert 'src="made.js"' in (reports / "index.html").read_text()
    ignored = Path(__file__).parents[1] / ".dvcignore"
    assert "/reports/made.js" in ignored.read_text().splitlines()


def test_paired_tests_are_made_and_corrected(reports: Path) -> None:
    table = pd.read_csv(reports / "significance.csv")
    assert list(table) == SIGNIFICANCE
    assert not table["method_a"].str.contains("step").any()
    both = table[(table["metric"] == "acc_at_1") & (table["method_a"] == "contrastive")]
    row = both[(both["model_a"] == "taught") & (both["model_b"] == "untaught")].iloc[0]
    assert row["difference"] == pytest.approx(14 / 20)
    assert row["low"] < 0.7 < row["high"]
    assert row["p"] < 0.01
    assert (table["p_holm"] >= table["p"]).all()


def test_the_same_input_gives_the_same_bytes(reports: Path) -> None:
    again = reports.parent / "again"
    files = {path.relative_to(reports) for path in reports.rglob("*") if path.is_file()}
    assert len(files) > 6
    files.remove(Path("made.js"))
    for name in files:
        assert (again / name).read_bytes() == (reports / name).read_bytes(), name


def test_the_page_is_whole_and_needs_no_network(reports: Path) -> None:
    page = (reports / "index.html").read_text()
    links = re.findall(r"""(?:src|href)=["']([^"'#]+)""", page)
    assert "queries/made_up.html" in links
    assert all(link == "data:," or (reports / link).is_file() for link in links), links
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


def test_the_page_says_what_the_numbers_say(reports: Path) -> None:
    page = (reports / "index.html").read_text()
    for title in [
        "Models side by side",
        "Query by query",
        "By setting of the method",
        "Calibration: against the truth of what was taught",
        "Differences and chance",
        "The benchmark in numbers",
    ]:
        assert f">{title}</h3>" in page, title
    assert (
        "75.0 %; untaught follows under the same method with 5.0 %, a difference that is "
        "significant (corrected" in page
    )
    assert "Rewiring takes taught from 50.0 % to 75.0 % acc@1" in page
    assert "Beside the published numbers" not in page
    figures = {path.stem for path in (reports / "figures").glob("*.svg")}
    assert {"made_up-full-models", "made_up-relations", "made_up-full-contrastive-step"} <= figures
    assert "<svg" not in page


def test_every_heading_has_an_address(reports: Path) -> None:
    page = (reports / "index.html").read_text()
    addresses = re.findall(r'<h[1-6] id="([^"]+)"', page)
    assert len(addresses) == len(set(addresses)) == len(re.findall(r"<h[1-6]\b", page)) > 8
    assert {"top", "made_up/made_up", "reading/all-metrics"} <= set(addresses)


def test_the_explorer_holds_the_numbers_of_the_table(reports: Path) -> None:
    page = (reports / "index.html").read_text()
    [found] = re.findall(
        r'<div class="explorer"><script type="application/json">(.*?)</script>', page
    )
    held = json.loads(found)
    keys = [held["keys"][key] for key in KEYS]
    rows = {
        tuple(names[place] for names, place in zip(keys, row, strict=False)): row[len(KEYS) :]
        for row in held["rows"]
    }
    table = pd.read_csv(reports / "comparison.csv").set_index(KEYS)
    assert len(rows) == len(held["rows"]) > 20
    for key, held_numbers in rows.items():
        *values, count = held_numbers
        assert values == [round(100 * value, 1) for value in table.loc[key, VALUES]]
        assert count == table.loc[key, "n"]
    assert not any("step" in key[3] or key[4].endswith("_tied") for key in rows)
    assert ("full", "may_treat", "taught", "contrastive", "acc_at_1") in rows
    assert "that is significant" in held["sentences"]["full"]["acc_at_1"]


def test_the_explorer_counts_more_queries_than_ten_thousand() -> None:
    rows = [("facts", "full", "macro", "mine", "x", "acc_at_1", 0.04, 0.03, 0.05, 19_003, None)]
    table = pd.DataFrame(rows, columns=COMPARISON)
    results = Results(comparison=table, benchmarks={"facts": METADATA})
    assert numbers(results, "facts")["rows"] == [[0, 0, 0, 0, 0, 4.0, 3.0, 5.0, 19_003]]


def test_how_large_a_benchmark_is_comes_from_its_own_count() -> None:
    rows = [("facts", "full", "macro", "mine", "x", "acc_at_1", 0.04, 0.03, 0.05, 100, None)]
    counted = {"relation": ["treats", "causes", "all"], "queries": [1200, 34, 1234]}
    results = Results(
        comparison=pd.DataFrame(rows, columns=COMPARISON),
        benchmarks={"facts": METADATA},
        statistics={"facts": pd.DataFrame({"subset": "full", **counted})},
    )
    assert chapters(results)[1].about[-1] == "Here: 1,234 queries of 2 relations (full)."


def test_nothing_of_the_prompts_is_on_the_page(reports: Path) -> None:
    pages = [*reports.rglob("*.html"), *reports.rglob("*.js")]
    assert len(pages) == 4
    for page in pages:
        assert "drug 1" not in page.read_text(), page
        assert "corvin" not in page.read_text(), page
    shown = reports.parent / places.QUERIES
    kept = (shown / "made_up.html").read_text() + (shown / "made_up" / "0.js").read_text()
    assert "drug 1 might treat" in kept and "corvin" in kept


def test_published_numbers_stand_beside_measured_ones() -> None:
    rows = [
        ("facts", "full", "macro", "mine", "contrastive", "acc_at_1", 0.04, 0.03, 0.05, 100, 0.01)
    ]
    results = Results(
        comparison=pd.DataFrame(rows, columns=COMPARISON),
        benchmarks={"facts": METADATA},
        builders={"facts": "medlama_released"},
        published={"mine": "BioBERT"},
    )
    page = render(results, chapters(results))
    assert "mine (BioBERT)" in page
    assert "3.28 ± 0.2" in page
    assert "4.0 ± 1.0 %" in page
    assert "+0.72" in page
    assert "ACL 2022, table 5" in page


def test_what_rules_left_out_stands_on_the_page() -> None:
    rows = [
        ("facts", "full", "macro", "mine", "fill_mask", "acc_at_1", 0.04, 0.03, 0.05, 100, None)
    ]
    dropped = pd.DataFrame({"set": ["t-rex"], "rule": ["object_twice"], "dropped": [2951]})
    counted = pd.DataFrame({"subset": ["full"], "relation": ["all"], "queries": [100]})
    results = Results(
        comparison=pd.DataFrame(rows, columns=COMPARISON),
        benchmarks={"facts": METADATA},
        statistics={"facts": counted},
        left_out={"facts": dropped},
    )
    page = render(results, chapters(results))
    assert "What its rules left out" in page
    assert "object_twice" in page and "2,951" in page


def test_every_text_is_escaped() -> None:
    name = "<b>&'\""
    blocks = [Table([name], [[name], [Cell(name, 1.0, 0.5)]], name), Links([("#" + name, name)])]
    results = Results(pd.DataFrame(columns=COMPARISON))
    page = render(results, [Chapter(name, name, [name], [Part(name, blocks)])])
    assert "<b>&'" not in page
    assert page.count("&lt;b&gt;&amp;&#39;&#34;") == 14


def test_an_untaught_twin_is_whatever_params_say(reports: Path) -> None:
    table = pd.read_csv(reports / "comparison.csv")
    results = Results(table, benchmarks={"made_up": METADATA}, twins={"taught": "untaught"})
    assert "<td>untaught / taught</td>" in render(results, chapters(results))
    alone = Results(table, benchmarks={"made_up": METADATA})
    assert "Calibration" not in render(alone, chapters(alone))
    assert not any("calibration" in name for name in drawings(chapters(alone)[0].parts))


def test_no_scores_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no scores"):
        comparison(tmp_path)


def test_small_questions() -> None:
    assert sweep("contrastive:step-50") == ("step", 50)
    assert sweep("contrastive:original") is None
    assert sweep("contrastive") is None
    assert shown("acc_at_1", float("nan")) == "–"
    a, b = pd.Series({"low": 0.1, "high": 0.2}), pd.Series({"low": 0.2, "high": 0.3})
    assert overlap(a, b)
    assert not overlap(a, b + 0.01)


@pytest.mark.parametrize(("text", "shown"), [(False, ["C2", "chf"]), (True, ["chf", "gout"])])
def test_a_concept_goes_by_a_name_that_a_paper_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bool, shown: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = places.BENCHMARKS / "own"
    folder.mkdir(parents=True)
    chf = "C0018802"
    names = [(chf, "Congestive heart failure", True), (chf, "CHF", False), ("C2", "gout", True)]
    pd.DataFrame(names, columns=["cui", "name", "preferred"]).to_parquet(folder / "names.parquet")
    rows = [
        ("own", "symptoms", relation, "a", "classifier", "f1", 0.5, 0.4, 0.6, 9, None)
        for relation in (chf, "C2", "macro")
    ]
    rows.append(("other", *rows[0][1:]))
    scores = pd.DataFrame(rows, columns=COMPARISON)
    named = with_names(scores, ["own", "other"], text=text)
    assert named[named["benchmark"] == "own"]["relation"].tolist() == [*shown, "macro"]
    assert named[named["benchmark"] == "other"]["relation"].tolist() == [chf]
