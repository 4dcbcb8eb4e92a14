"""What an edit of params.yaml runs, and what is gone after it, by DVC over a small project."""

import copy
import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner
from mlflow import MlflowClient

from helpers.project import ROOT, Project
from medprobe.cli import main

COMPARING = ("score", "track", "compare")
COMPUTING = ("train", "rewire", "build")  # a model is probed again, from parts where there are


@pytest.fixture(scope="module")
def project(finished_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy without what the edits do not touch, which would be scored and drawn at each run."""
    project = Project.copy(finished_project, tmp_path_factory.mktemp("edits") / "project")
    params = project.params()
    del params["benchmarks"]["diskne"], params["methods"]["masked"]["classifier"]
    project.write_params(params)
    return project


@pytest.fixture(scope="module")
def stages_of_benchmarks(project: Project) -> set[str]:
    """The stages that ran for two new benchmarks: ratings, by the commands of
    docs/how-to/expert-evaluation.md in their order, and a table of drugs."""
    document = (ROOT / "docs/how-to/expert-evaluation.md").read_text()
    lines = re.findall(r"^(?:medprobe|dvc) .*$", document, re.MULTILINE)
    draw, _, *after = [shlex.split(line.partition("#")[0]) for line in lines]
    project.works(*draw)
    sheets = project.folder / "data/annotations/experts"
    for number, rater in enumerate(("anna", "ben")):
        table = pd.read_csv(sheets / f"{rater}.csv", dtype=str, keep_default_na=False)
        ratings = ["5" if (line + number) % 3 == 0 else "1" for line in range(len(table))]
        table.assign(rating=ratings).to_csv(sheets / f"{rater}.csv", index=False)
    add_drugs(project)
    params = project.params()
    [settings] = re.findall(r"^```yaml\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    params["benchmarks"] |= yaml.safe_load(settings)["benchmarks"]
    project.write_params(params)
    output = "".join(project.works(*command) for command in after)
    return set(re.findall(r"Running stage '([^']+)'", output))


def test_only_the_stages_of_what_is_new_run(stages_of_benchmarks: set[str]) -> None:
    # Every model is asked anew since a gate has passed, and keeps all other results.
    probed = {"probe-masked@taught", "probe-masked@untaught", "probe-causal@given"}
    ratings = {"build-ratings@experts", "validate-ratings@experts"}
    drugs = {"build-table@drugs", "validate-table@drugs"}
    assert stages_of_benchmarks == {"check", *ratings, *drugs, *probed, *COMPARING}


@pytest.mark.usefixtures("stages_of_benchmarks")
def test_a_filled_sheet_is_picked_up(project: Project) -> None:
    table = pd.read_csv(project.folder / "reports/comparison.csv")
    assert "full/rated:experts" in set(table["subset"])
    assert (project.folder / "reports/experts-agreement.csv").is_file()


def add_drugs(project: Project) -> None:
    """Name a table of a stranger's own: a CSV, two lines of params.yaml."""
    names = ["hepatitis", "influenza", "Karsten syndrome", "chronic pain"]
    facts = [f"drug {i},treats,{names[i % 4]}" for i in range(40)]
    folder = project.folder / "data/tables"
    folder.mkdir(exist_ok=True)
    (folder / "drugs.csv").write_text("\n".join(["subject,relation,object", *facts, ""]))
    (folder / "prompts.csv").write_text("relation,template\ntreats,[X] might treat [Y] .\n")
    params = project.params()
    drugs = {"facts": "tables/drugs.csv", "prompts": "tables/prompts.csv"}
    params["benchmarks"]["table"] = {"drugs": drugs}
    params["methods"]["masked"]["mask_average"]["drugs"] = {}
    project.write_params(params)


def stages_run(project: Project) -> set[str]:
    """Run `dvc repro`, and give the stages that it ran."""
    return set(re.findall(r"Running stage '([^']+)'", project.works("dvc", "repro")))


@pytest.mark.usefixtures("stages_of_benchmarks")
def test_forty_rows_and_two_lines_reach_the_leaderboard(project: Project) -> None:
    table = pd.read_csv(project.folder / "reports/comparison.csv")
    rows = table[(table["benchmark"] == "drugs") & (table["metric"] == "acc_at_10")]
    assert len(rows) and (rows["value"] == 1).all()  # four names, ten answers
    page = (project.folder / "reports/index.html").read_text()
    [title] = re.findall("<title>(.*)</title>", page)
    assert "drugs" in title
    assert "drugs (full), acc@1, %" in export(project, "markdown")


def export(project: Project, form: str) -> str:
    """The leaderboard as `medprobe export` prints it."""
    command = ["export", "leaderboard", "--format", form, "--project", str(project.folder)]
    return CliRunner().invoke(main, command, catch_exceptions=False).output


def result_texts(project: Project) -> dict[str, str]:
    """All that shows results, by what it is."""
    files = [
        path
        for place in ("metrics", "reports")
        for path in (project.folder / place).rglob("*.*")
        if path.suffix in {".json", ".csv", ".html", ".svg"}
    ]
    contents = {str(path.relative_to(project.folder)): path.read_text() for path in files}
    return contents | {"medprobe export": export(project, "csv")}


def records(project: Project, model: str) -> dict[str, str]:
    """When and how each result of a model was made."""
    folder = project.folder / "outputs/runs" / model
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.json")}


def states(project: Project, benchmark: str) -> set[str]:
    """The states of a benchmark's runs in MLflow."""
    client = MlflowClient(f"sqlite:///{project.folder}/mlruns/mlflow.db")
    experiment = client.get_experiment_by_name(benchmark).experiment_id
    runs = client.search_runs([experiment], "tags.`medprobe.role` = 'result'")
    return {run.data.tags["medprobe.state"] for run in runs}


def reduced(params: dict[str, Any]) -> dict[str, Any]:
    """The content of params.yaml without drugs, untaught, and Contrastive-Probe.

    MedLAMA has a new name, which is one more benchmark.
    """
    params = copy.deepcopy(params)
    del params["benchmarks"]["table"]["drugs"]
    del params["train"]["untaught"], params["models"]["masked"]["untaught"]
    methods = params["methods"]["masked"]
    del methods["contrastive"], methods["mask_average"]["drugs"]
    methods["mask_average"] = {"renamed": {}}
    medlama = params["benchmarks"]["medlama"]
    medlama["renamed"] = medlama.pop("medlama")
    return params


@pytest.mark.usefixtures("stages_of_benchmarks")
def test_what_is_taken_out_is_gone_and_returns_with_its_numbers(project: Project) -> None:
    """A benchmark, a model, a method, and the old name of a benchmark."""
    whole, before, made = project.params(), result_texts(project), records(project, "untaught")
    words = ("drugs", "untaught", "contrastive", "medlama,")
    for word in words:
        assert any(word in name + content for name, content in before.items()), word
    project.write_params(reduced(whole))
    computed = {name for name in stages_run(project) if name.startswith(COMPUTING)}
    assert computed and all("renamed" in name for name in computed)
    numbers = ("metrics/", "reports/comparison", "reports/significance", "medprobe export")
    for name, text in result_texts(project).items():
        assert "drugs" not in name + text, name
        if name.startswith(numbers):
            assert not [word for word in words if word in name + text], name
    assert states(project, "drugs") == {"gone"}
    assert "outputs/benchmarks/drugs" in project.works("medprobe", "doctor")
    assert "outputs/benchmarks/drugs" in project.works("medprobe", "clean", "--yes")
    files = (project.folder / "outputs").rglob("*drugs*")
    assert [path for path in files if "parts" not in path.parts] == []
    assert made and not records(project, "untaught")
    project.write_params(whole)
    computed = {name for name in stages_run(project) if name.startswith(COMPUTING)}
    assert computed == {"rewire@untaught"}  # which takes its checkpoints from DVC's cache
    assert records(project, "untaught") == made
    assert result_texts(project) == before
    assert "current" in states(project, "drugs")
    assert "gone" not in states(project, "drugs")
