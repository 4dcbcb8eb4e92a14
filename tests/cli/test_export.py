"""Results for papers: `medprobe export`."""

import csv
import itertools
import json
import re
import shutil
import subprocess
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from helpers import FolderOf
from helpers.toy_project import NAMED, project, score_once
from medprobe.cli import main
from medprobe.cli.export import FORMS, export
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Params, ScoreParams
from medprobe.library import Results, results
from medprobe.pipeline.stages.compare import compare
from medprobe.report.numbers import cell

PARAMS = Params(score=ScoreParams(bootstrap=100), **NAMED)


@pytest.fixture(scope="module")
def result_project(tmp_path_factory: pytest.TempPathFactory, tiny_model: FolderOf) -> Path:
    """A project with results."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as monkeypatch:
        project(folder, monkeypatch)
        shutil.copytree(tiny_model("bert"), places.MODELS / "taught")
        score_once(PARAMS)
        compare(PARAMS)
    return folder


@pytest.fixture
def page_results(result_project: Path) -> Results:
    return results(result_project)


def test_a_table_has_the_numbers_of_the_page(page_results: Results, result_project: Path) -> None:
    page = (result_project / places.REPORTS / "index.html").read_text(encoding="utf-8")
    rows = page_results.comparison.query("subset == 'full' and relation == 'macro'")
    rows = rows.query("metric == 'acc_at_1' and method == 'contrastive'")
    assert len(rows) == 2
    plain = {form: export(page_results, "made_up", form) for form in ("latex", "markdown")}
    for row in rows.to_dict("records"):
        numbers = [row[name] for name in ("value", "low", "high")]
        value, interval = cell("acc_at_1", *numbers).text.split("  ")
        assert cell("acc_at_1", *numbers, row["std"]).text in page
        for text in plain.values():
            [line] = [line for line in text.splitlines() if re.match(rf"\W*{row['model']}\b", line)]
            assert value in line and interval in line
    exact = pd.read_csv(StringIO(export(page_results, "made_up", "csv")))
    both = exact.merge(rows, on=["model", "method", "metric"], suffixes=("", "_known"))
    assert list(both["value"]) == list(both["value_known"])


def test_the_best_is_bold_and_what_is_worse_beyond_chance_is_marked(page_results: Results) -> None:
    table = pd.read_csv(StringIO(export(page_results, "made_up", "csv"))).set_index(
        ["model", "method"]
    )
    assert table.loc[("taught", "contrastive"), "best"]
    assert table.loc[("untaught", "contrastive"), "worse"]
    markdown = export(page_results, "made_up", "markdown")
    assert "**75.0** [" in markdown and "5.0†‡ [" in markdown
    latex = export(page_results, "made_up", "latex")
    assert r"\textbf{75.0}\\{\scriptsize [" in latex
    assert r"5.0$^\dagger$$^\ddagger$\\{\scriptsize [" in latex


def test_who_is_not_shown_to_be_above_shuffled_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, monkeypatch)
    score_once(PARAMS)
    monkeypatch.setattr("medprobe.pipeline.stages.compare.write_page", lambda *results: None)
    compare(PARAMS)
    markdown = export(results(tmp_path), "made_up", "markdown")
    assert "75.0** [" in markdown and "5.0†‡ [" in markdown and "†: not significantly" in markdown
    assert r"5.0$^\dagger$$^\ddagger$" in export(results(tmp_path), "made_up", "latex")
    table = pd.read_csv(StringIO(export(results(tmp_path), "made_up", "csv", every=True)))
    unbeaten = table.set_index(["model", "method"])["unbeaten"]
    assert unbeaten["untaught", "contrastive"] and not unbeaten["taught", "contrastive"]
    assert not unbeaten["baseline", "majority"]
    path = Path("reports/significance.csv")
    tests = pd.read_csv(path)
    tests.loc[tests["model_a"] == "taught", "p_holm"] = 0.06
    tests.to_csv(path, index=False)
    assert "75.0**† [" in export(results(tmp_path), "made_up", "markdown")


def test_latex_is_well_formed(page_results: Results) -> None:
    """As many cells in each row as columns, braces and environments closed, and nothing that TeX
    takes for a command."""
    lines = {("made_up", False): 3, ("made_up", True): 6}
    for view, every in itertools.product(("made_up", "leaderboard"), (False, True)):
        text = export(page_results, view, "latex", every=every)
        assert re.findall(r"\\(begin|end){(\w+)}", text) == [
            ("begin", "table"),
            ("begin", "tabular"),
            ("end", "tabular"),
            ("end", "table"),
        ]
        columns = len(re.findall(r"\\begin{tabular}{(l?r+)}", text)[0])
        body = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert len(body) == lines.get((view, every), 5)
        assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in body} == {columns}
        assert text.count("{") == text.count("}")
        assert not re.search(r"(?<!\\)[_%#]", text.replace("{%\n", "{\n"))
        assert text.isascii()


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex is installed")
def test_tex_sets_it(page_results: Results, tmp_path: Path) -> None:
    body = "\n".join(export(page_results, view, "latex") for view in ("made_up", "leaderboard"))
    head = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}"
    (tmp_path / "paper.tex").write_text(f"{head}\n{body}\n\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout[-2000:]
    assert "Overfull" not in process.stdout, "no table is wider than the text"
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000


def test_equal_values_are_both_best_and_a_diagnostic_has_no_best(page_results: Results) -> None:
    tied = page_results.comparison.assign(value=0.5)
    vars(page_results)["comparison"] = tied
    assert export(page_results, "made_up", "markdown").count("**50.0**") >= 2
    vars(page_results)["comparison"] = tied.assign(metric="subject_at_1")
    assert "**" not in export(page_results, "made_up", "markdown", "subject_at_1")


@pytest.mark.parametrize(
    ("view", "metric", "says"),
    [
        ("made", None, "no results on a benchmark 'made' .did you mean 'made_up'"),
        ("made_up/ful", None, "no means of acc_at_1 on ful .did you mean 'full, acc_at_1'"),
        ("made_up", "f1", "no means of f1 on full"),
        ("leaderboard", "acc_at_1", "the main metric of each benchmark"),
    ],
)
def test_a_view_that_is_none_is_refused(
    view: str, metric: str | None, says: str, page_results: Results
) -> None:
    for form in FORMS:
        with pytest.raises(BadInput, match=says):
            export(page_results, view, form, metric)


def test_the_command_prints_it(result_project: Path) -> None:
    command = ["export", "leaderboard", "--format", "csv", "--project", str(result_project)]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert {row["model"] for row in csv.DictReader(StringIO(result.output))} == {
        *("taught", "untaught", "baseline")
    }
    assert CliRunner().invoke(main, [*command, "--json"]).exit_code == 2
    plain = ["export", "leaderboard", "--project", str(result_project)]
    as_markdown = CliRunner().invoke(main, [*plain, "--format", "markdown"]).output
    assert CliRunner().invoke(main, plain).output == as_markdown
    assert as_markdown.startswith("| model")
    assert (
        "| majority baseline " in as_markdown
        and "| letters of the names |" in as_markdown
        and "by its main result" in as_markdown
    )
    assert as_markdown.splitlines()[0].count("|") == 3, "a column a benchmark"
    both = CliRunner().invoke(main, [*plain, "--all"]).output
    assert both.splitlines()[0].count("|") == 4 and "by contrastive, %" in both


def test_the_first_number_comes_without_variants_and_controls(page_results: Results) -> None:
    plain, every = (
        json.loads(export(page_results, "made_up", "json", every=every)) for every in (False, True)
    )
    heads = {column["head"] for column in plain["columns"]}
    assert (
        heads == {"contrastive"}
        and "Without a model: majority baseline 20.0 %, letters of the names 20.0 %."
        in plain["note"]
    )
    more = {column["head"] for column in every["columns"]} - heads
    assert "contrastive:shuffled" in more and "majority" in more
    titled = export(page_results, "made_up", "markdown", "acc@10")
    assert titled == export(page_results, "made_up", "markdown", "acc_at_10")
