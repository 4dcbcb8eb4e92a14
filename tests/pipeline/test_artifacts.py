"""Trained models are in DVC's model registry: listed, and got by their name and version."""

import subprocess
from contextlib import chdir
from pathlib import Path

import pytest
import yaml
from dvc.api import artifacts_show
from dvc.repo import Repo

from helpers import ROOT
from helpers.project import environment
from medprobe.core.params import Params, load_params
from medprobe.pipeline import dvc_yaml as pipeline
from medprobe.pipeline.dvc_yaml import artifacts, write_outdated
from medprobe.pipeline.init import params_text

SMALL = Params(
    train={"taught": {"kind": "masked", "corpus": "read"}},
    continued={"more": {"base": "taught", "corpus": "others", "steps": 3}},
    folders={"mine": Path("elsewhere")},
)
STAGE = (
    "stages: {train: {cmd: cp -r trained/. outputs, deps: [trained], "
    "outs: [outputs/models/taught]}}"
)


def test_each_model_that_the_project_trains_is_an_artifact_of_a_stage() -> None:
    params = load_params(ROOT / "params.yaml")
    with chdir(ROOT), Repo(ROOT) as repo:
        entries = repo.artifacts.read()["dvc.yaml"]
        outputs = {Path(out.fs_path) for stage in repo.index.stages for out in stage.outs}
    assert {*entries} == {*params.train, *params.continued}
    assert {ROOT / entry.path for entry in entries.values()} <= outputs
    assert {entry.type for entry in entries.values()} == {"model"}


def test_an_entry_says_what_the_model_is() -> None:
    entries = yaml.safe_load(artifacts(SMALL))["artifacts"]
    assert [entry["desc"] for entry in entries.values()] == [
        "masked model, trained on the corpus read",
        "taught, trained further on the corpus others",
    ]
    assert yaml.safe_load(artifacts(Params())) == {"artifacts": {}}


@pytest.mark.dvc
def test_a_version_is_got_by_its_tag(tmp_path: Path) -> None:
    project, model = tmp_path / "project", Path("trained/models/taught/weights")
    (project / model).parent.mkdir(parents=True)
    (project / "dvc.yaml").write_text(f"{STAGE}\n{artifacts(SMALL)}")
    run(project, "git init --quiet", "dvc init --quiet")
    for text, tag in (("old", "taught@v1.0.0"), ("new", "taught@v2.0.0")):
        (project / model).write_text(text)
        run(project, "dvc repro --quiet", "git add dvc.yaml dvc.lock .dvc")
        run(project, "git commit --quiet -m trained", f"git tag -a {tag} -m {tag}")
    run(tmp_path, "dvc artifacts get project taught --rev v1.0.0 --out first")
    assert (tmp_path / "first/weights").read_text() == "old"
    assert artifacts_show("taught", repo=str(project))["path"] == "outputs/models/taught"


def run(folder: Path, *commands: str) -> None:
    names = {
        f"GIT_{role}_{key}": "a@b" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
    }
    for command in commands:
        subprocess.run(command.split(), cwd=folder, env=environment() | names, check=True)


def test_a_model_that_is_added_gets_its_entry(working_folder: Path) -> None:
    """By `medprobe repro` and `plan`, without `medprobe pipeline`."""
    content = yaml.safe_load(params_text())
    Path("params.yaml").write_text(yaml.safe_dump(content))
    Path("dvc.yaml").write_text("# Written by `medprobe pipeline`\n")
    assert write_outdated([]) and not write_outdated([])
    content["train"] = {"small": {"kind": "masked", "corpus": "read"}}
    Path("params.yaml").write_text(yaml.safe_dump(content))
    assert write_outdated([]) and not write_outdated([])
    assert [*yaml.safe_load(Path("dvc.yaml").read_text())["artifacts"]] == ["small"]


def test_stages_of_your_own_stay(working_folder: Path) -> None:
    """Below the line verbatim; one that was added above it is moved there."""
    Path("params.yaml").write_text(params_text())
    pipeline.write()
    text = Path("dvc.yaml").read_text()
    below = "  # mine\n  copy:\n    cmd: medprobe export leaderboard\n"
    above = "  upload:\n    cmd: ./upload reports\n\n    deps: [reports]\n"
    edited = text.replace("  # The checkpoints.\n", f"{above}  # The checkpoints.\n") + below
    Path("dvc.yaml").write_text(edited)
    for _ in range(2):
        pipeline.write()
        assert Path("dvc.yaml").read_text() == text + above + below
    assert {"upload", "copy"} < {*yaml.safe_load(Path("dvc.yaml").read_text())["stages"]}
