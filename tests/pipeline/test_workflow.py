"""The data gate of a pull request, by the workflow's own commands: pinned data that are broken, or
that the DVC remote does not have, are stopped."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest
import yaml
from dvc.repo import Repo

from helpers import ROOT
from helpers.canaries import compile_canaries, find_leaks, plant_canaries
from helpers.project import NEEDED_SECTIONS
from medprobe.pipeline.sample import sample

WORKFLOW = ROOT / ".github/workflows/data-quality.yml"
BINARIES = Path(sys.executable).parent
PIPELINE = """\
stages:
  build-biolama:
    cmd: medprobe build --benchmark biolama
    deps: [data/biolama]
    outs: [outputs/benchmarks/biolama]
  validate-biolama:
    cmd: medprobe validate --benchmark biolama
    deps: [outputs/benchmarks/biolama, expectations]
    outs: [outputs/passed/biolama]
"""
TRAIN = Path("data/biolama/ctd/triples_processed/CD1/train.jsonl")
Project = Callable[..., Path]


def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A command as the workflow's shell runs it; what stands in .venv is not made anew."""
    environment = {
        **os.environ,
        "PATH": f"{BINARIES}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    return subprocess.run(
        ["bash", "-e", "-c", command.replace("make ", "make -o .venv/ready ")],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def command() -> str:
    """The target of the Makefile that the workflow runs."""
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["gate"]["steps"]
    (make,) = [step["run"] for step in steps if step.get("run", "").startswith("make ")]
    return str(make)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample world with a word in every text, which no gate may tell."""
    data = tmp_path_factory.mktemp("world") / "data"
    sample(data, {"queries": 20, "reserve": 8}, seed=1)
    plant_canaries(data)
    return data


@pytest.fixture
def project(tmp_path: Path, world: Path) -> Project:
    def make_clone(*, remote: bool = True, pushed: bool = True, leak: bool = False) -> Path:
        """A fresh clone of a project of one benchmark, whose data are where `data.dvc` says."""
        for name in ("expectations", ".ci"):
            shutil.copytree(ROOT / name, tmp_path / name)
        for name in ("Makefile", "requirements.lock", "pyproject.toml"):
            shutil.copy(ROOT / name, tmp_path / name)
        (tmp_path / ".venv").symlink_to(BINARIES.parent)
        (tmp_path / "dvc.yaml").write_text(PIPELINE)
        params = yaml.safe_load((ROOT / "params.yaml").read_text())
        small = {
            "sample": {"queries": 20, "reserve": 8},
            "benchmarks": {"biolama": {"biolama": {}}},
        }
        few = {key: params[key] for key in NEEDED_SECTIONS}
        (tmp_path / "params.yaml").write_text(yaml.safe_dump({**few, **small}))
        shutil.copytree(world, tmp_path / "data")
        if leak:
            test = (tmp_path / TRAIN).with_name("test.jsonl").read_text().splitlines()[0]
            with (tmp_path / TRAIN).open("a") as stream:
                stream.write(test + "\n")
        store = f"['remote \"store\"']\nurl = {tmp_path / 'store'}\n"
        core = "[core]\nno_scm = true\nanalytics = false\n"
        (tmp_path / ".dvc").mkdir()
        config = core + ("remote = store\n" + store if remote else "")
        (tmp_path / ".dvc/config").write_text(config)
        with chdir(tmp_path), Repo() as repo:
            repo.add("data")
            if remote and pushed:
                repo.push(["data.dvc"])
        shutil.rmtree(tmp_path / "data")
        shutil.rmtree(tmp_path / ".dvc/cache")
        return tmp_path

    return make_clone


def gate(folder: Path) -> tuple[int, str]:
    result = run(folder, command())
    return result.returncode, result.stdout


def test_pinned_data_that_are_broken_are_fetched_and_stopped(project: Project) -> None:
    code, out = gate(folder := project(leak=True))
    assert code != 0
    assert "expect_facts_to_be_absent_from_table" in out
    assert not (folder / "outputs/passed/biolama").exists()
    page = (folder / "outputs/validation/biolama/index.html").read_text()
    leaked = json.loads((folder / TRAIN).read_text().splitlines()[-1])
    assert leaked["uuid"] in out and leaked["uuid"] in page
    assert "expect_facts_to_be_absent_from_table" in (folder / "summary.md").read_text()
    words = compile_canaries(folder / "data")
    assert words.search(leaked["sub_label"])
    shutil.rmtree(folder / "store")
    assert not list(find_leaks(folder, words)), "of the page, the log and the summary"


def test_data_that_the_remote_does_not_have_are_a_failure(project: Project) -> None:
    code, out = gate(folder := project(pushed=False))
    assert code != 0
    assert "::error file=data.dvc::the DVC remote does not give" in out
    assert not (folder / "outputs").exists()


def test_without_a_remote_the_gate_says_so_and_checks_the_sample_world(project: Project) -> None:
    code, out = gate(folder := project(remote=False, leak=True))
    assert code == 0, out
    assert "::notice::no DVC remote" in out
    assert "data.dvc: was out of date for data/" in out
    assert (folder / "outputs/passed/biolama").is_file()


def test_workflows_are_well_formed() -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    paths = [str(path) for path in (ROOT / ".github/workflows").glob("*.yml")]
    subprocess.run([*check, "vendor.github-workflows", *paths], check=True)


def test_workflows_run_targets_of_the_makefile() -> None:
    """But for the secret of a DVC remote, which only GitHub has."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            for step in job["steps"]:
                if "run" in step and "env" not in step:
                    program, target, *_ = step["run"].split()
                    assert program == "make" and target in targets, step["run"]


def test_metrics_that_moved_are_in_the_summary(tmp_path: Path) -> None:
    """Of a pull request of one commit, whose gate passes."""
    (tmp_path / ".venv").symlink_to(BINARIES.parent)
    (tmp_path / "dvc.yaml").write_text("metrics: [summary.json]\n")
    (tmp_path / "Makefile").write_text("gate:\n\ttrue\n")
    git = "git -c user.name=a -c user.email=a@b.c"
    commit = f"git add -A . && {git} commit --quiet -m x"
    result = run(
        tmp_path,
        "git init --quiet -b main && dvc init --quiet && printf '.venv\n' > .gitignore"
        f" && echo '{{\"a\": 1.0}}' > summary.json && {commit}"
        f" && git update-ref refs/remotes/origin/main HEAD"
        f" && echo '{{\"a\": 2.0}}' > summary.json && {commit}"
        f" && export GITHUB_BASE_REF=main && {ROOT / '.ci/pull-request'}",
    )
    assert result.returncode == 0, result.stdout
    assert "| summary.json | a" in (tmp_path / "summary.md").read_text()
