"""What scripts and shells rely on: `--json`, exit codes, completion."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from helpers import ROOT, FolderOf
from helpers.needed import NEEDED
from helpers.toy_project import NAMED, project, score_once
from medprobe.cli import main
from medprobe.core.papers import papers
from medprobe.core.params import Params, ScoreParams
from medprobe.pipeline import plan
from medprobe.pipeline.stale_stages import Stage

FACTS = "subject,relation,object\naspirin,treats,fever\nadrenaline,treats,shock\n"
PROMPT = "aspirin treats [Y] ."
PARAMS: dict[str, Any] = {
    **NEEDED,
    "track": {"text": True},
    "models": {"masked": {"taught": {}, "untaught": {}}},
    "benchmarks": {
        "table": {"made_up": {"facts": "tables/facts.csv", "prompts": "tables/prompts.csv"}}
    },
    "methods": {"masked": {"mask_average": {"made_up": {}}}},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with scores."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as monkeypatch:
        project(folder, monkeypatch)
        Path("params.yaml").write_text(yaml.safe_dump(PARAMS))
        params = Params(score=ScoreParams(bootstrap=100), **NAMED)
        score_once(params)
    return folder


def run(*arguments: str) -> Any:
    """The object that a command prints, with the keys that the documents name."""
    result = CliRunner().invoke(main, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    page = (ROOT / "docs/reference/scripts.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith(f"| `{arguments[0]}` |")]
    assert all(f"`{key}`" in row for key in content)
    return content


def test_a_table_of_results_is_an_object(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    best, common = run("export", "leaderboard", "--all")["columns"]
    assert common["head"].startswith(best["head"] + " by ")
    for column in (best, common):
        models = [cell["model"] for cell in column["cells"] if cell["model"] != "baseline"]
        assert models == ["taught", "untaught"]


def test_a_folder_needs_no_project(working_folder: Path, tiny_model: FolderOf) -> None:
    answer = run("ask", str(tiny_model("bert")), PROMPT)
    assert answer["method"] == "fill_mask"
    assert [row["rank"] for row in answer["answers"]] == [*range(1, 1 + len(answer["answers"]))]
    assert {row["right"] for row in answer["answers"]} == {None}
    Path("facts.csv").write_text(FACTS)
    Path("prompts.csv").write_text("relation,template\ntreats,[X] treats [Y] .\n")
    options = ["--benchmark", "facts.csv", "--prompts", "prompts.csv", "--method", "mask_average"]
    content = run("run", str(tiny_model("bert")), *options)
    assert "acc_at_1" in {row["metric"] for row in content["numbers"]}
    for baseline in ("majority", "letters"):
        assert {row["method"] for row in content[baseline]} == {baseline}


def test_the_state_of_a_project_is_an_object(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CliRunner().invoke(main, ["init", "mine"]).exit_code == 0
    monkeypatch.chdir("mine")
    state = run("doctor")
    assert state["missing"] == [] == state["models"] == state["leftovers"]
    assert {row["bytes"] for row in state["sources"]} == {None}
    assert {"source": "tables", "bytes": None, "enables": ["(table)"]} in state["sources"]
    stages = {
        "score": Stage("now", "medprobe score", ()),
        "compare": Stage("after score", "medprobe compare", ("score",)),
    }
    monkeypatch.setattr(plan, "find_stale_stages", lambda: stages)
    monkeypatch.setattr(plan, "order_by_first_result", lambda stage_names: [*stage_names])
    assert [(row["stage"], row["after"]) for row in run("plan")["stages"]] == [
        ("score", None),
        ("compare", "score"),
    ]


def test_an_error_is_on_standard_error_alone(home: Path) -> None:
    script = "from medprobe.cli import main; main()"
    process = subprocess.run(
        [sys.executable, "-c", script, "export", "none", "--json"],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith("Error: metrics/scores: no results on a benchmark 'none'")


@pytest.mark.parametrize(
    ("words", "text", "names"),
    [
        (["ask"], "ta", ["taught"]),
        (["run", "taught", "--benchmark"], "", ["made_up"]),
        (["run", "taught", "--method"], "mask", ["mask_average"]),
        (["show", "made_up", "--differ"], "un", ["untaught/contrastive"]),
        (["show"], "made", ["made_up"]),
        (["list"], "mo", ["models"]),
        (["probe", "--model"], "ta", ["taught"]),
        (["export"], "", ["leaderboard", "made_up"]),
    ],
)
def test_shells_complete_names(
    home: Path, words: list[str], text: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    items = ShellComplete(main, {}, "medprobe", "_MEDPROBE_COMPLETE").get_completions(words, text)
    assert [item.value for item in items] == names


def test_paths_are_left_to_the_shell_whatever_params_yaml_says(working_folder: Path) -> None:
    shell = ShellComplete(main, {}, "medprobe", "_MEDPROBE_COMPLETE")
    assert [item.type for item in shell.get_completions(["ask"], "~/mod")] == ["file"]
    assert {item.value for item in shell.get_completions(["adopt"], "")} == {*papers()}
    Path("params.yaml").write_text("seed:1")
    assert [item.type for item in shell.get_completions(["run"], "bert")] == ["file"]
