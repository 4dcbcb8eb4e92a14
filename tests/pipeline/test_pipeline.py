"""The pipeline end to end, as a user runs it: DVC over a sample world made small."""

import json
import re
import shutil
from collections.abc import Iterable
from fnmatch import fnmatch
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from dvc.repo import Repo
from lxml import html
from mlflow import MlflowClient
from mlflow.entities import Run, RunData

from helpers.project import Project
from medprobe import methods
from medprobe.metrics import catalog
from medprobe.tracking.store import CURRENT

OURS = {  # what stages leave beside their outputs, and why DVC need not know it
    "outputs/parts/*": "finished parts, from which a stopped stage goes on; safe to delete",
    "mlruns/*": "MLflow's store, which `medprobe track` fills from the outputs at any time",
}
# What belongs to git, DVC and Python.
ASIDE = (".git/*", ".dvc/*", "*/__pycache__/*", "*.gitignore", "dvc.lock")


@pytest.fixture(scope="module")
def project(finished_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.copy(finished_project, tmp_path_factory.mktemp("pipeline") / "project")


def test_a_run_has_the_same_names_and_values_everywhere(project: Project) -> None:
    """All metrics of a run: in JSON, CSV, `dvc metrics`, the export, the page and MLflow."""
    benchmark, model, method, metric = "medlama", "taught", "mask_average", "acc_at_1"
    scores = json.loads((project.folder / f"metrics/scores/{model}/{method}.json").read_text())
    table = pd.read_csv(project.folder / "reports/comparison.csv")
    table = table[table["benchmark"].eq(benchmark) & table["relation"].eq("macro")]
    table = table[table["model"].eq(model) & table["method"].eq(method)]
    in_csv = table.set_index(["subset", "metric"])
    written = {}
    for subset, relations in scores[benchmark]["default"].items():
        for name, numbers in relations.get("macro", {}).items():  # parts have none
            for field, end in (("value", ""), ("low", "_low"), ("high", "_high")):
                value = pytest.approx(numbers[field], rel=1e-4)  # five digits
                assert in_csv.loc[(subset, name), field] == value
                written[("" if subset == "full" else f"{subset}/") + name + end] = value
    assert {"acc_at_1", "acc_at_10_high", "hard/acc_at_1", "hard/acc_at_10_low"} <= {*written}
    logged = tracked(project.folder, benchmark)[f"{model} · {method}"].metrics
    tested = {"above_shuffled", "p_above_shuffled"}
    late = {*tested, "to_best", "p_to_best"}
    assert {name: value for name, value in logged.items() if name not in late} == written

    versioned = json.loads(project.works("dvc", "metrics", "show", "--json"))[""]["data"]
    main = versioned["metrics/main.json"]["data"][benchmark][model]
    assert main.pop("method") == method and main.pop("subset") == "full"
    assert {*main} == {metric, f"{metric}_low", f"{metric}_high", *tested}
    assert {name: logged[name] for name in main} == pytest.approx(main, rel=1e-4)
    summary = versioned["metrics/summary.json"]["data"][benchmark][model][method]
    assert summary == main[metric]
    every = tracked(project.folder, "all benchmarks")[f"{model} · all"].metrics
    assert every[f"{benchmark}/{metric}"] == pytest.approx(main[metric], rel=1e-4)

    exported = project.works("medprobe", "export", "leaderboard", "--format", "csv")
    rows = pd.read_csv(StringIO(exported[exported.index("benchmark,subset") :]))
    [row] = rows[(rows["benchmark"] == benchmark) & (rows["model"] == model)].itertuples()
    assert (row.metric, row.value) == (metric, pytest.approx(main[metric], rel=1e-4))
    page = html.parse(project.folder / "reports/index.html")
    board = json.loads(page.xpath("string(//script[@id='board-data'])"))
    [column] = [column for column in board["benchmarks"] if column["name"] == benchmark]
    [place] = [at for at, of in enumerate(board["models"]) if of["name"] == model]
    assert column["metric"] == catalog()[metric].title
    shown = pytest.approx(100 * main[metric], abs=0.051)  # one digit
    assert column["cells"][place]["value"] == shown


@pytest.mark.parametrize(
    ("benchmark", "method"),
    [("medlama", "mask_average"), ("medlama", "contrastive"), ("diskne", "classifier")],
)
def test_all_settings_of_a_result_are_parameters(
    project: Project, benchmark: str, method: str
) -> None:
    """Those that params.yaml leaves out too."""
    logged = tracked(project.folder, benchmark)[f"taught · {method}"].params
    settings = {name.split(".")[1] for name in logged if name.startswith(f"{method}.")}
    assert settings == {*methods.find(method).Settings.model_fields}


def tracked(folder: Path, experiment: str) -> dict[str, RunData]:
    """What the current runs of MLflow's experiment hold, by the run's name."""
    client = MlflowClient(f"sqlite:///{folder}/mlruns/mlflow.db")
    [found] = client.search_experiments(filter_string=f"name = '{experiment}'")
    runs = client.search_runs([found.experiment_id], CURRENT)
    return {run.info.run_name: run.data for run in runs}


def test_a_second_run_does_nothing(project: Project) -> None:
    output = project.works("dvc", "repro")
    assert "Running stage" not in output
    assert "up to date" in output


def files(folder: Path) -> set[str]:
    """The names of a project's files."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return outside({path.relative_to(folder).as_posix() for path in paths}, ASIDE)


def outside(names: set[str], patterns: Iterable[str]) -> set[str]:
    """The names that no pattern fits."""
    return {name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)}


def all_runs(folder: Path) -> list[tuple[str, int, str]]:
    """MLflow's runs: the name, how many metrics, and when the result was made."""
    client = MlflowClient(f"sqlite:///{folder}/mlruns/mlflow.db")
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    return sorted(
        (run.info.run_name, len(run.data.metrics), origin(run))
        for run in client.search_runs(experiments, max_results=1000)
    )


def origin(run: Run) -> str:
    """When probing began, and by which libraries; empty of runs that are no results."""
    version = run.data.tags.get("made.version.torch", "")
    return f"{run.info.start_time} {version}" if version else ""


def test_every_file_that_a_stage_leaves_is_an_output_of_it(project: Project) -> None:
    before = project.works("git", "ls-tree", "-r", "--name-only", "HEAD~")  # the first run
    leftovers = outside(files(project.folder) - {*before.splitlines()}, ["data/*"])
    with Repo(project.folder) as repo:
        stages = {stage.name.partition("@")[0] for stage in repo.index.stages if stage.cmd}
        outputs = {Path(out.fs_path) for stage in repo.index.stages for out in stage.outs}
        ignored = {name for name in leftovers if repo.dvcignore.is_ignored_file(name)}
    paths = {name: project.folder / name for name in leftovers}
    named = {name for name, path in paths.items() if outputs & {path, *path.parents}}
    assert not outside(leftovers - named, OURS)
    assert not outside(ignored, OURS)
    assert "outputs/predictions/taught/classifier/diskne-curves.csv" in named
    kinds = ["check", "build-*", "validate-*", "train*", "fetch-folder", "rewire"]
    kinds += ["probe-*", "score", "track", "compare"]
    assert all(any(fnmatch(stage, kind) for stage in stages) for kind in kinds), stages


def test_what_is_pushed_is_whole_in_a_clone(project: Project, tmp_path: Path) -> None:
    remote = ("dvc", "remote", "add", "--default", "--local", "shared", str(tmp_path / "shared"))
    project.works(*remote)
    project.works("dvc", "push", "--quiet")
    clone = project.clone(tmp_path / "clone")
    clone.works(*remote)
    clone.works("dvc", "pull", "--quiet")
    assert outside(files(clone.folder), OURS) == outside(files(project.folder), OURS)
    assert "up to date" in clone.works("dvc", "status")
    clone.works("medprobe", "track")
    assert all_runs(clone.folder) == all_runs(project.folder)
    # A colleague changes a parameter, without the sources, too: only what it concerns runs.
    params = clone.params()
    clone.write_params(params | {"score": {**params["score"], "confidence": 0.9}})
    assert started(clone.works("dvc", "repro", "score")) == {"check", "score"}
    pulled = files(clone.folder)
    for name in ("data", "checkpoints/given"):
        shutil.rmtree(clone.folder / name)
    clone.write_params(params | {"score": {**params["score"], "confidence": 0.8}})
    printed = clone.works("medprobe", "repro")
    assert started(printed) == {"check", "score", "track", "compare"}
    clone.write_params(params | {"seed": 1})
    assert "is not here, and" in clone.run("medprobe", "repro").stdout
    assert {name for name in pulled if name.startswith("outputs/")} <= files(clone.folder)


def started(printed: str) -> set[str]:
    """The stages that ran."""
    return {*re.findall("Running stage '(.+)':", printed)}


def test_no_name_is_in_what_people_share(project: Project) -> None:
    names = (project.folder / "data/sample/names.txt").read_text().splitlines()
    pattern = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    shared = [
        path
        for place in ("mlruns", "metrics", "reports", "outputs/validation")
        for path in (project.folder / place).rglob("*")
        if path.suffix in {".csv", ".json", ".html", ".js", ".svg"}
        and "queries" not in path.parts  # where invented facts are named, and no licensed ones
    ]
    assert {"top_k.csv", "samples.csv", "index.html"} <= {path.name for path in shared}
    for path in shared:
        assert not (leak := pattern.search(path.read_text())), f"{path}: {leak}"


def test_a_failed_gate_leaves_its_page_and_stops_the_pipeline(project: Project) -> None:
    path = project.folder / "data/umls/MRREL.RRF"
    before = path.read_bytes()
    lines = before.split(b"\n")
    row = next(line for line in lines if b"|may_treat|" in line and b"|MED-RT|" in line)
    broken = b"C12X|" + row.split(b"|", 1)[1]
    path.chmod(0o644)
    path.write_bytes(before.replace(row, broken, 1))
    params = project.params()
    without_diskne = project.params()  # which is built of the same file
    del without_diskne["benchmarks"]["diskne"], without_diskne["methods"]["masked"]["classifier"]
    project.write_params(without_diskne)
    stopped = project.run("medprobe", "repro")
    project.write_params(params)
    path.write_bytes(before)
    assert stopped.returncode == 2
    assert "failed to reproduce 'build-medlama@medlama'" in stopped.stdout
    assert "a stage failed (see DVC's message above" in stopped.stdout
    assert "C12X" in stopped.stdout
    assert "Running stage 'rewire" not in stopped.stdout
    assert "Running stage 'probe" not in stopped.stdout


@pytest.fixture(scope="module")
def runs_before_experiment(project: Project) -> list[str]:
    """The runs before the experiment `warm`, which has other settings and runs until `score`."""
    before = runs(project)
    changes = ("-S", "rewire.temperature=0.5", "-S", "+rewire.learning_rate=0.05")
    project.works("dvc", "exp", "run", "--temp", "--name", "warm", *changes, "score")
    return before


def test_an_experiment_in_a_copy_logs_to_the_one_store_and_prints_what_it_moved(
    project: Project, runs_before_experiment: list[str]
) -> None:
    assert len(runs(project)) == len(runs_before_experiment) + 2  # Contrastive-Probe's, two models
    assert not list((project.folder / ".dvc/tmp/exps").rglob("mlflow.db"))
    output = project.works("dvc", "exp", "show", "--csv")
    assert "rewire.temperature" in output.splitlines()[0]
    assert "0.5" in re.findall(r"\b0\.\d\b", output)
    diff = project.works("dvc", "metrics", "diff", "HEAD", "warm")
    assert "contrastive" in diff
    assert "mask_average" not in diff
    assert diff.count("\n") < 40


def runs(project: Project) -> list[str]:
    """The results in the project's MLflow store."""
    client = MlflowClient(f"sqlite:///{project.folder}/mlruns/mlflow.db")
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    results = client.search_runs(experiments, "tags.`medprobe.role` = 'result'")
    return [run.info.run_id for run in results]


@pytest.mark.usefixtures("runs_before_experiment")
def test_another_lock_of_git_leaves_no_stage_to_run(project: Project) -> None:
    """By `dvc checkout` after a rebase, a merge, and the return to the first branch."""

    def commit(name: str) -> None:
        (project.folder / name).write_text("A file that no stage reads.\n")
        project.works("git", "add", name)
        project.works("git", "commit", "--quiet", "--message", name)

    branch = project.works("git", "branch", "--show-current").strip()
    project.works("git", "checkout", "--quiet", "--force", "-b", "notes")
    commit("NOTES.md")
    project.works("dvc", "exp", "branch", "warm", "warmer")
    project.works("git", "rebase", "--quiet", "warmer")
    project.works("dvc", "checkout", "--quiet")
    assert "Running stage" not in project.works("dvc", "repro", "score")
    project.works("git", "checkout", "--quiet", "--force", branch)
    project.works("dvc", "checkout", "--quiet")
    assert "Running stage" not in project.works("dvc", "repro")
    commit("OTHER.md")
    project.works("git", "merge", "--quiet", "--no-edit", "notes")
    project.works("dvc", "checkout", "--quiet")
    assert "Running stage" not in project.works("dvc", "repro", "score")
    project.works("git", "reset", "--quiet", "--hard", "HEAD~2")
    project.works("dvc", "checkout", "--quiet")


def test_losses_and_sweeps_can_be_plotted(project: Project) -> None:
    output = project.works("dvc", "plots", "show", "--json")
    assert "outputs/losses/taught/set-0.csv" in output
    assert "metrics/sweeps/medlama-taught-contrastive-step.csv" in output
