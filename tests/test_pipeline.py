"""The pipeline end to end, as a user runs it: DVC over a sample world made small."""

import ast
import copy
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from dvc.repo import Repo
from mlflow import MlflowClient

from medprobe import fork_server
from medprobe.testing.project import AUDIT, ROOT, SMALL, Project

COMPARING = ("score", "significance", "track", "compare")
MESSAGE_MODULES = {"errors.py", "progress.py"}  # `code.MESSAGE_MODULES`
# Of every command, for what is no number.
COMMAND = {"fork_server.py", "timings.py", "cli", "check.py", "lineage.py", *MESSAGE_MODULES}


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where each `medprobe` process writes which files it imported."""
    folder = tmp_path_factory.mktemp("audit")
    (folder / "sitecustomize.py").write_text(AUDIT)
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, audit: Path) -> Iterator[Project]:
    new_project = Project(tmp_path_factory.mktemp("project"))
    new_project.replace(**SMALL)
    new_project.works("medprobe", "sample")
    new_project.works("dvc", "add", "data", "--quiet")
    heard = os.pathsep.join([str(audit), os.environ.get("PYTHONPATH", "")])
    audited = {"MEDPROBE_AUDIT": str(audit), "PYTHONPATH": heard, fork_server.SOCKET: ""}
    new_project.works("medprobe", "repro", **audited)
    new_project.commit("The first numbers")
    yield new_project


def test_every_result_is_there(project: Project) -> None:
    scores = "metrics/scores/taught/contrastive.json"
    for name in ["reports/comparison.csv", "reports/index.html", scores, "metrics/summary.json"]:
        assert (project.folder / name).is_file(), name
    table = pd.read_csv(project.folder / "reports/comparison.csv")
    assert set(table["model"]) == {"taught", "untaught", "baseline"}
    assert {"contrastive", "mask_average"} <= set(table["method"])


def test_a_stage_names_every_file_that_it_imports(project: Project, audit: Path) -> None:
    """What the processes imported, held against dvc.yaml: the other end of `code.closure`."""
    src = project.folder / "src/medprobe"
    with Repo(project.folder) as repo:
        named = {
            tuple(line.split()): {Path(dep.fs_path) for dep in stage.deps}
            for stage in repo.index.stages
            for line in (stage.cmd if isinstance(stage.cmd, list) else [stage.cmd])
            if stage.cmd
        }
    audited = [json.loads(path.read_text()) for path in audit.glob("*.json")]
    assert len(audited) > 10
    for one in audited:
        command = ("medprobe", *one["command"][1:])
        if command not in named:
            continue
        root = Path(one["files"][0]).parent
        assert root.name == "medprobe"
        if command[1] == "probe":  # what it imports to log makes no output
            logging = str(root / "stages/track.py")
            end = one["files"].index(logging) if logging in one["files"] else None
            one["files"] = one["files"][:end]
        for file in one["files"]:
            own = src / Path(file).relative_to(root)
            place = {own.name, own.relative_to(src).parts[0]}
            told = not place.isdisjoint(COMMAND) or own == src / "__init__.py"
            if told or not runs_anything(own):
                continue  # the package's own __init__ hands names on that no stage uses
            assert named[command] & {own, *own.parents}, f"{command} does not name {own}"
        if command[1] == "probe":
            files = {Path(file) for file in one["files"]} - {root / "__init__.py"}
            files = {file for file in files if file.parent != root / "cli"}
            assert len([file for file in files if runs_anything(file)]) <= 24 + len(COMMAND)


def runs_anything(path: Path) -> bool:
    """Is there more in the file than a docstring?"""
    return len(ast.parse(path.read_text()).body) > 1


@pytest.mark.parametrize(
    ("stage", "out"),
    [
        (
            "probe --model taught --method contrastive --benchmark medlama",
            "predictions/taught/contrastive",
        ),
    ],
)
def test_a_process_of_its_own_gives_the_same_bytes(project: Project, stage: str, out: str) -> None:
    """`medprobe repro` ran all stages in forks."""
    folder = project.folder / "outputs" / out

    def content() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    forked = content()
    shutil.rmtree(folder)
    shutil.rmtree(project.folder / "outputs/parts")
    project.works("medprobe", *stage.split(), **{fork_server.SOCKET: ""})
    assert content() == forked


def test_no_name_is_in_what_people_share(project: Project) -> None:
    names = (project.folder / "data/sample/names.txt").read_text().splitlines()
    pattern = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    shared = [
        path
        for place in ("mlruns", "metrics", "reports", "outputs/validation")
        for path in (project.folder / place).rglob("*")
        if path.suffix in {".csv", ".json", ".html", ".js", ".svg"}
    ]
    assert {"top_k.csv", "samples.csv", "index.html"} <= {path.name for path in shared}
    for path in shared:
        assert not (leak := pattern.search(path.read_text())), f"{path}: {leak}"


def test_a_second_run_does_nothing(project: Project) -> None:
    assert "Running stage" not in project.works("dvc", "repro")
    assert "up to date" in project.works("dvc", "repro")


def test_a_failed_gate_leaves_its_page_and_stops_the_pipeline(project: Project) -> None:
    path = project.folder / "data/umls/MRREL.RRF"
    before = path.read_bytes()
    lines = before.split(b"\n")
    row = next(line for line in lines if b"|may_treat|" in line and b"|MED-RT|" in line)
    broken = b"C12X|" + row.split(b"|", 1)[1]
    path.chmod(0o644)
    path.write_bytes(before.replace(row, broken, 1))
    stopped = project.run("medprobe", "repro")
    path.write_bytes(before)
    assert stopped.returncode == 2
    assert "failed to reproduce 'build-medlama@medlama'" in stopped.stdout
    assert "a stage failed (see DVC's message above); fix it" in stopped.stdout
    assert "C12X" in stopped.stdout
    assert "Running stage 'rewire" not in stopped.stdout
    assert "Running stage 'probe" not in stopped.stdout


def test_metrics_diff_names_what_a_temperature_moved(project: Project) -> None:
    temperature = ["-S", "rewire.temperature=0.5", "-S", "+rewire.learning_rate=0.05"]
    project.works("dvc", "exp", "run", "--name", "warm", *temperature, "score")
    diff = project.works("dvc", "metrics", "diff", "HEAD")
    assert "contrastive" in diff
    assert "mask_average" not in diff
    assert diff.count("\n") < 40
    project.works("git", "checkout", "--quiet", ".")
    project.works("dvc", "checkout", "--quiet", "--force")


def test_an_experiment_in_a_copy_logs_to_the_one_store(project: Project) -> None:
    before = runs(project)
    one = "probe-contrastive@taught-medlama"
    project.works("dvc", "exp", "run", "--temp", "-S", "rewire.temperature=0.7", one)
    assert len(runs(project)) == len(before) + 1
    assert not list((project.folder / ".dvc/tmp/exps").rglob("mlflow.db"))
    output = project.works("dvc", "exp", "show", "--csv")
    assert "rewire.temperature" in output.splitlines()[0]
    assert "0.7" in re.findall(r"\b0\.\d\b", output)


def runs(project: Project) -> list[str]:
    """The results in the project's MLflow store."""
    client = MlflowClient(f"sqlite:///{project.folder}/mlruns/mlflow.db")
    experiments = [one.experiment_id for one in client.search_experiments()]
    found = client.search_runs(experiments, "tags.`medprobe.role` = 'result'")
    return [run.info.run_id for run in found]


def test_losses_and_sweeps_can_be_plotted(project: Project) -> None:
    output = project.works("dvc", "plots", "show", "--json")
    assert "outputs/losses/taught/set-0.csv" in output
    assert "metrics/sweeps/medlama-taught-contrastive-step.csv" in output


def test_a_filled_sheet_is_picked_up(project: Project) -> None:
    """The commands of docs/how-to/expert-evaluation.md, in their order."""
    document = (ROOT / "docs/how-to/expert-evaluation.md").read_text()
    lines = re.findall(r"^(?:medprobe|dvc) .*$", document, re.MULTILINE)
    draw, _, *after = [shlex.split(line.partition("#")[0]) for line in lines]
    project.works(*draw, "--form", "csv")
    sheets = project.folder / "data/annotations/experts"
    for number, rater in enumerate(("anna", "ben")):
        table = pd.read_csv(sheets / f"{rater}.csv", dtype=str, keep_default_na=False)
        said = ["5" if (line + number) % 3 == 0 else "1" for line in range(len(table))]
        table.assign(rating=said).to_csv(sheets / f"{rater}.csv", index=False)
    params = project.params()
    [settings] = re.findall(r"^```yaml\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    params["benchmarks"] |= yaml.safe_load(settings)["benchmarks"]
    project.write_params(params)
    said = "".join(project.works(*command) for command in after)
    ran = set(re.findall(r"Running stage '([^']+)'", said))
    first = {"check"}  # params.yaml has changed
    stages = {"build-ratings@experts", "validate-ratings@experts", *COMPARING}
    assert ran == first | stages
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


def without_drugs(params: dict[str, Any]) -> dict[str, Any]:
    """The content of params.yaml as it was before `add_drugs`."""
    params = copy.deepcopy(params)
    del params["benchmarks"]["table"]["drugs"]
    del params["methods"]["masked"]["mask_average"]["drugs"]
    return params


def stages_run(project: Project) -> set[str]:
    """Run `dvc repro`, and give the stages that it ran."""
    return set(re.findall(r"Running stage '([^']+)'", project.works("dvc", "repro")))


@pytest.fixture(scope="module")
def stages_of_drugs(project: Project) -> Iterator[set[str]]:
    """The stages that ran for a new benchmark, which params.yaml names until the end."""
    before = project.params()
    add_drugs(project)
    yield stages_run(project)
    project.write_params(before)


def test_forty_rows_and_two_lines_reach_the_leaderboard(
    project: Project, stages_of_drugs: set[str]
) -> None:
    """Then only `dvc repro`."""
    ran = stages_of_drugs
    probed = {f"probe-mask_average@{model}-drugs" for model in ("taught", "untaught")}
    built = {"check", "build-table@drugs", "validate-table@drugs"}
    assert built | probed | {*COMPARING} <= ran
    costly = {name for name in ran if name.startswith(("train", "rewire", "probe"))}
    assert costly == probed
    table = pd.read_csv(project.folder / "reports/comparison.csv")
    rows = table[(table["benchmark"] == "drugs") & (table["metric"] == "acc_at_10")]
    assert len(rows) and (rows["value"] == 1).all()  # four names, ten answers
    page = (project.folder / "reports/index.html").read_text()
    leaderboard = page[page.index('id="leaderboard"') : page.index('id="drugs"')]
    assert "<td>drugs<small>full, acc@1 (%)</small></td>" in leaderboard
    output = project.works("medprobe", "export", "leaderboard", "--format", "markdown")
    assert "drugs (full), acc@1 by mask_average" in output
    project.works("medprobe", "publish", "site")
    assert 'id="drugs"' in (project.folder / "site/index.html").read_text()


def shown(project: Project) -> dict[str, str]:
    """All that shows results, by what it is."""
    files = [
        path
        for place in ("metrics", "reports", "outputs/queries")
        for path in (project.folder / place).rglob("*.*")
        if path.suffix in {".json", ".csv", ".html", ".svg"}
    ]
    commands = (
        ("dvc", "metrics", "show"),
        ("medprobe", "export", "leaderboard", "--format", "csv"),
    )
    contents = {str(path.relative_to(project.folder)): path.read_text() for path in files}
    return contents | {" ".join(command): project.works(*command) for command in commands}


def states(project: Project, benchmark: str) -> set[str]:
    """The states of a benchmark's runs in MLflow."""
    client = MlflowClient(f"sqlite:///{project.folder}/mlruns/mlflow.db")
    experiment = client.get_experiment_by_name(benchmark).experiment_id
    found = client.search_runs([experiment], "tags.`medprobe.role` = 'result'")
    return {run.data.tags["medprobe.state"] for run in found}


@pytest.mark.usefixtures("stages_of_drugs")
def test_what_is_taken_out_is_gone_and_returns_without_being_computed(project: Project) -> None:
    with_drugs, before = project.params(), shown(project)
    assert sum("drugs" in name + content for name, content in before.items()) > 8
    project.write_params(without_drugs(with_drugs))
    ran = stages_run(project)
    assert {"score", "track"} <= ran <= {"check", *COMPARING}
    for name, content in shown(project).items():
        assert "drugs" not in name + content, name
    assert states(project, "drugs") == {"gone"}
    assert "outputs/benchmarks/drugs" in project.works("medprobe", "doctor", COLUMNS="200")
    assert "outputs/benchmarks/drugs" in project.works("medprobe", "clean", "--yes", COLUMNS="200")
    files = (project.folder / "outputs").rglob("*drugs*")
    assert [path for path in files if "parts" not in path.parts] == []
    project.write_params(with_drugs)
    ran = stages_run(project)
    assert {"track"} <= ran <= {"check", *COMPARING}
    assert shown(project) == before
    assert "current" in states(project, "drugs")
    assert "gone" not in states(project, "drugs")


def without_a_model_a_method_and_a_variant(params: dict[str, Any]) -> dict[str, Any]:
    """The content of params.yaml without untaught, Contrastive-Probe and the neutral prompts."""
    params = copy.deepcopy(params)
    del params["train"]["untaught"], params["models"]["masked"]["untaught"]
    del params["methods"]["masked"]["contrastive"]
    params["methods"]["masked"]["mask_average"]["medlama"] = {}
    return params


def test_a_model_a_method_a_variant_and_an_old_name_leave_and_return(project: Project) -> None:
    """Nothing is computed for their return; the new name of a benchmark is one more benchmark."""
    start = project.params()
    whole = copy.deepcopy(start)
    whole["methods"]["masked"]["mask_average"]["medlama"] = {"neutral": True}
    project.write_params(whole)
    stages_run(project)
    before = shown(project)
    for word in ("untaught", "contrastive", "neutral"):
        assert any(word in name + content for name, content in before.items()), word
    fewer = without_a_model_a_method_and_a_variant(whole)
    for section in (fewer["benchmarks"], fewer["methods"]["masked"]["mask_average"]):
        renamed = section["medlama"]
        if "medlama" in renamed:
            renamed["renamed"] = renamed.pop("medlama")
        else:
            section["renamed"] = section.pop("medlama")
    project.write_params(fewer)
    stages_run(project)
    reports = ("metrics/", "reports/comparison", "reports/significance", "dvc", "medprobe export")
    numbers = {name: text for name, text in shown(project).items() if name.startswith(reports)}
    assert any("renamed" in text for text in numbers.values())
    for name, text in numbers.items():
        for word in ("untaught", "contrastive", "neutral", "medlama,"):
            assert word not in name + text, f"{word} in {name}"
    project.write_params(whole)
    output = project.works("dvc", "repro")
    computed = re.findall(r"Running stage '((?:train|rewire|probe|build)[^']*)'", output)
    assert computed == []
    assert shown(project) == before
    project.write_params(start)
