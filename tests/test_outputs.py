"""DVC knows every file that a stage leaves: what is pushed can be pulled, and nothing is left to
run."""

from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

import pytest
from dvc.repo import Repo
from mlflow import MlflowClient
from mlflow.entities import Run

from medprobe.testing import tiny
from medprobe.testing.project import SMALL, Project

TRAINED = {"steps": 3, "layers": 1, "hidden": 64, "vocabulary": 300}
# Of each block of dvc.yaml one, but for `fetch`, which asks the hub, and `train-continued`, which
# leaves what `train` leaves.
EVERY_STAGE = {
    **SMALL,
    "train": {"taught": {"kind": "masked", "corpus": "taught", **TRAINED}},
    "folders": {"given": "given"},
    "models": {"masked": {"taught": {}}, "encoder": {}, "causal": {"given": {}}},
    "sweeps": {"models": {"taught": None}, "sets": {"set-0": None}, "temperature": {"0.05": None}},
    "methods": {
        "masked": {
            "contrastive": {
                "medlama": {"sets": ["set-0"], "sweeps": {"temperature": {"0.05": None}}},
            },
            "classifier": {"diskne": {"variants": ["", "always-true"], "seeds": [0], "epochs": 1}},
        }
    },
}
OURS = {  # what stages leave beside their outputs, and why DVC need not know it
    "outputs/parts/*": "finished parts, from which a stopped stage goes on; safe to delete",
    "mlruns/*": "MLflow's store, which `medprobe track` fills from the outputs at any time",
}
# What belongs to git, DVC and Python.
ASIDE = (".git/*", ".dvc/*", "*/__pycache__/*", "*.gitignore", "dvc.lock")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with all its sources, before any stage has run."""
    new_project = Project(tmp_path_factory.mktemp("project"))
    params = new_project.params()
    diskne = params["benchmarks"]["diskne"]
    tiny.model("gpt2", new_project.folder / "given")
    new_project.replace(**EVERY_STAGE | {"benchmarks": SMALL["benchmarks"] | {"diskne": diskne}})
    new_project.works("medprobe", "sample")
    new_project.works("dvc", "add", "--quiet", "data")
    new_project.commit("Before the first run")
    return new_project


def files(folder: Path) -> set[str]:
    """The names of a project's files."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return outside({path.relative_to(folder).as_posix() for path in found}, ASIDE)


def outside(names: set[str], patterns: Iterable[str]) -> set[str]:
    """The names that no pattern fits."""
    return {name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)}


def runs(folder: Path) -> list[tuple[str, int, str]]:
    """MLflow's runs: the name, how many metrics, and when the result was made."""
    client = MlflowClient(f"sqlite:///{folder}/mlruns/mlflow.db")
    experiments = [one.experiment_id for one in client.search_experiments()]
    return sorted(
        (run.info.run_name, len(run.data.metrics), made(run))
        for run in client.search_runs(experiments, max_results=1000)
    )


def made(run: Run) -> str:
    """When probing began, and by which libraries; empty of runs that are no results."""
    version = run.data.tags.get("made.version.torch", "")
    return f"{run.info.start_time} {version}" if version else ""


def test_every_file_that_a_stage_leaves_is_an_output_of_it(project: Project) -> None:
    before = files(project.folder)
    project.works("medprobe", "repro")
    left = files(project.folder) - before
    with Repo(project.folder) as repo:
        stages = {stage.name.partition("@")[0] for stage in repo.index.stages if stage.cmd}
        outputs = {Path(out.fs_path) for stage in repo.index.stages for out in stage.outs}
        ignored = {name for name in left if repo.dvcignore.is_ignored_file(name)}
    paths = {name: project.folder / name for name in left}
    named = {name for name, path in paths.items() if outputs & {path, *path.parents}}
    assert not outside(left - named, OURS)
    assert not outside(ignored, OURS)
    assert "outputs/predictions/taught/classifier/diskne-curves.csv" in named
    kinds = ["check", "build-*", "validate-*", "train*", "fetch-folder", "rewire", "rewire-*"]
    kinds += ["probe-*", "score", "significance", "track", "compare"]
    assert all(any(fnmatch(stage, kind) for stage in stages) for kind in kinds), stages


def test_what_is_pushed_is_whole_in_a_clone(project: Project, tmp_path: Path) -> None:
    remote = ("dvc", "remote", "add", "--default", "--local", "shared", str(tmp_path / "shared"))
    project.works(*remote)
    project.works("dvc", "push", "--quiet")
    project.commit("The first numbers")
    clone = project.clone(tmp_path / "clone")
    clone.works(*remote)
    clone.works("dvc", "pull", "--quiet")
    assert outside(files(clone.folder), OURS) == outside(files(project.folder), OURS)
    assert "up to date" in clone.works("dvc", "status")
    clone.works("medprobe", "track")
    assert runs(clone.folder) == runs(project.folder)
