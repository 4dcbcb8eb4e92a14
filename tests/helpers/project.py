"""A copy of the project in a separate folder, and the commands that a user types there."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from helpers import ROOT

NEEDED = ["dvc.yaml", "params.yaml", ".dvc/config", ".dvcignore", ".gitignore"]
NEEDED += ["expectations", "plugins", "src", "requirements.lock", "requirements-tools.lock"]

# Small models that learn almost nothing: tests check the pipeline, not the numbers.
SMALL: dict[str, Any] = {
    "sample": {"queries": 20, "reserve": 8},
    "train": {
        name: {"kind": "masked", "corpus": name, "steps": 5} for name in ("taught", "untaught")
    },
    "continued": {},
    "models": {"masked": {"taught": {}, "untaught": {"untaught_twin_of": "taught"}}},
    "sentence_sets": {"set-0": {}},
    "rewire": {"steps": 2, "checkpoint_every": 1, "batch": 16, "temperature": 0.04},
    "benchmarks": {
        "medlama": {"medlama": {"per_relation": 12, "relations": ["may_treat", "may_prevent"]}}
    },
    "methods": {
        "masked": {"mask_average": {"medlama": {}}, "contrastive": {"medlama": {"sets": ["set-0"]}}}
    },
    "score": {"bootstrap": 50},
}

# The sections that params.yaml must have.
NEEDED_SECTIONS = ("seed", "engine", "rewire", "score", "track")


@cache
def environment() -> dict[str, str]:
    """The environment of a project's commands."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "MLFLOW_TRACKING_URI": "", "COLUMNS": "200"}


def copy_project(source: Path, folder: Path) -> None:
    """Copy a project to a new folder, with the addresses in its MLflow store.

    Without them MLflow would count the copied runs as those of a store that was moved.
    """
    shutil.copytree(source, folder, symlinks=True)
    addresses = {
        "experiments": "artifact_location",
        "runs": "artifact_uri",
        "logged_models": "artifact_location",
    }
    with closing(sqlite3.connect(folder / "mlruns/mlflow.db")) as store, store:
        for table, column in addresses.items():
            edit = f"update {table} set {column} = replace({column}, ?, ?)"
            store.execute(edit, (source.as_uri(), folder.as_uri()))


def record_persistent(*outs: str) -> None:
    """Begin to use DVC in this folder, and record outputs that persist as those of one stage."""
    from dvc.repo import Repo

    stage = {"cmd": "medprobe", "outs": [{out: {"persist": True}} for out in outs]}
    Path("dvc.yaml").write_text(yaml.safe_dump({"stages": {"made": stage}}))
    with Repo.init(no_scm=True) as repo:
        repo.commit(force=True)


class Project:
    """The project's files without data and outputs, in a new git repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in NEEDED:
            source, target = ROOT / name, folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
                shutil.copytree(source, target, ignore=ignored)
            else:
                shutil.copy(source, target)
        self.run("git", "init", "--quiet")
        self.run("git", "config", "user.name", "someone")
        self.run("git", "config", "user.email", "someone@example.org")

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the project; `more` goes into its environment."""
        if command[0] == "dvc":
            command = (sys.executable, "-m", *command)
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment() | more,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )

    def works(self, *command: str, **more: str) -> str:
        """Run a command that must succeed; returns its output."""
        process = self.run(*command, **more)
        assert process.returncode == 0, f"{command}: {process.stdout[-4000:]}"
        return process.stdout

    def params(self) -> dict[str, Any]:
        """Read params.yaml."""
        content: dict[str, Any] = yaml.safe_load((self.folder / "params.yaml").read_text())
        return content

    def write_params(self, params: dict[str, Any]) -> None:
        """Write params.yaml."""
        (self.folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))

    def replace(self, **sections: Any) -> None:
        """Replace sections of params.yaml."""
        self.write_params(self.params() | sections)

    def clone(self, folder: Path) -> "Project":
        """Clone the project's git repository into another folder."""
        self.works("git", "clone", "--quiet", ".", str(folder))
        clone = copy(self)
        clone.folder = folder
        return clone

    @classmethod
    def copy(cls, source: Path, folder: Path) -> "Project":
        """Copy a project with all that it holds."""
        copy_project(source, folder)
        project = cls.__new__(cls)
        project.folder = folder
        return project

    def commit(self, message: str) -> None:
        """Commit all files to git."""
        self.works("git", "add", "--all")
        self.works("git", "commit", "--quiet", "--message", message)
