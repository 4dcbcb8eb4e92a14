"""The comparison: its table, its tests and its page."""

import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
import transformers

from made_up import METADATA, NAMES, project
from medprobe.errors import BadInput
from medprobe.params import ModelParams, Models, Params, ScoreParams
from medprobe.report.page import render
from medprobe.report.results import Results, overlap, shown
from medprobe.report.tables import COMPARISON, SIGNIFICANCE, comparison, significance, sweep
from medprobe.stages.compare import compare
from medprobe.stages.score import score

MODELS = Models(masked={"taught": ModelParams(pretrain="taught")})
PARAMS = Params(score=ScoreParams(bootstrap=100), models=MODELS)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, tiny_model: Callable[[str], Path]) -> Path:
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as monkeypatch:
        project(folder, monkeypatch)
        facts = Path("data/sample/facts.csv")
        facts.parent.mkdir(parents=True)
        lines = [
            f"S{i},drug {i},{relation},C{i % 5},x,{i % 3}"
            for relation in ("may_treat", "may_prevent")
            for i in range(10)
        ]
        header = "subject_cui,subject,relation,object_cui,object,times"
        facts.write_text("\n".join([header, *lines]) + "\n")
        statistics = Path("outputs/benchmarks/made_up/statistics.csv")
        statistics.write_text(
            "subset,relation,queries,answers_per_query,answer_characters\n"
            "full,all,20,1.0,13.2\nfull,may_treat,10,1.0,13.2\n"
        )
        shutil.copytree(tiny_model("bert"), Path("outputs/models/taught"))
        score(Path("outputs/predictions"), Path("outputs/benchmarks"), Path("metrics"), PARAMS)
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
    table = pd.read_csv(reports / "comparison.csv")
    own = table[table["method"] == "statistics"]
    where = own.set_index(["subset", "relation", "model", "metric"])["value"]
    assert where["full", "all", "any", "queries"] == 20
    assert where["full", "may_treat", "any", "queries"] == 10
    assert where["full", "all", "any", "relations"] == 1
    assert where["full", "all", "any", "answer_characters"] == 13.2
    mean = sum(lengths) / len(NAMES)
    assert where["full", "all", "taught", "tokens_per_answer"] == pytest.approx(mean)
    share = lengths.count(1) / len(NAMES)
    assert where["full", "all", "taught", "single_token_share"] == pytest.approx(share)
    alone = pd.read_csv(reports / "statistics.csv")
    assert sorted(alone["value"]) == sorted(own["value"])
    assert "Distinct answers, in the tokens of each model" in (reports / "index.html").read_text()


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
    files = sorted(path.relative_to(reports) for path in reports.rglob("*") if path.is_file())
    assert len(files) > 5
    for name in files:
        assert (again / name).read_bytes() == (reports / name).read_bytes(), name


def test_the_page_is_whole_and_needs_no_network(reports: Path) -> None:
    page = (reports / "index.html").read_text()
    links = re.findall(r"""(?:src|href)=["']([^"']+)""", page)
    assert all(link.startswith("#") for link in links), links
    assert "url(http" not in page
    assert "@import" not in page

    open_tags: list[str] = []

    class Checker(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list) -> None:
            if tag not in ("meta", "br"):
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
        "By relation",
        "By setting of the method",
        "By answer length",
        "Calibration: against the truth of what was taught",
        "Differences and chance",
        "The benchmark in numbers",
    ]:
        assert f"<h3>{title}</h3>" in page, title
    assert (
        "75.0 %; under the same method untaught follows with 5.0 %: their intervals do not" in page
    )
    assert "Rewiring takes taught from 50.0 % to 75.0 % acc@1" in page
    assert "Beside the published numbers" not in page
    assert len(re.findall("<svg", page)) == len(list((reports / "figures").glob("*.svg")))


def test_nothing_of_the_prompts_is_on_the_page(reports: Path) -> None:
    page = (reports / "index.html").read_text()
    assert "drug 1" not in page
    assert "corvin" not in page


def test_published_numbers_stand_beside_measured_ones() -> None:
    rows = [("medlama", "full", "macro", "mine", "contrastive", "acc_at_1", 0.04, 0.03, 0.05, 100)]
    results = Results(
        comparison=pd.DataFrame(rows, columns=COMPARISON),
        significance=pd.DataFrame(columns=SIGNIFICANCE),
        benchmarks={"medlama": METADATA},
        published={"mine": "BioBERT"},
    )
    page = render(results)
    assert "mine (BioBERT)" in page
    assert "3.28 ± 0.2" in page
    assert "+0.72" in page
    assert "ACL 2022, table 5" in page


def test_one_model_alone_is_tested_against_nobody() -> None:
    values = pd.DataFrame({"subset": ["full"], "query_id": ["q"], "acc_at_1": [1.0]})
    assert significance({("m", "fill_mask"): values}, "b", PARAMS.score, 0).empty


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
