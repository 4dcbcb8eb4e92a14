"""Without folders of `papers/` and `extensions/` everything else works.

`python -m bench.taken_out` runs the tests of the kernel on such a package as well.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from bench.architecture import declared_needs

from helpers import ROOT as REPOSITORY
from helpers import FolderOf
from medprobe.core.plugins import ROOT, own_folders
from medprobe.pipeline.init import FILES

FOLDERS = [path.relative_to(ROOT).as_posix() for path in own_folders()]
NEEDS = declared_needs()
TAKEN_OUT = {**{folder: [folder] for folder in FOLDERS}, "all": FOLDERS}

PARAMS = """
seed: 1
engine: {precision: float32}
score: {bootstrap: 20}
track: {}
%s
folders: {mine: model}
models: {masked: {mine: {}}}
benchmarks: {table: {facts: {facts: tables/facts.csv}}}
methods: {masked: {mask_average: {facts: {}}, fill_mask: {facts: {}}}}
"""
FACTS = """subject,relation,object,prompt
aspirin,treats,pain,[X] treats [Y] .
insulin,treats,diabetes,[X] treats [Y] .
adrenaline,treats,shock,[X] treats [Y] .
"""
# Everything in one process: the imports take most of the time.
SCRIPT = """
import importlib, os, pkgutil, subprocess
from contextlib import chdir
from pathlib import Path
from click.testing import CliRunner
import medprobe
for module in pkgutil.walk_packages(medprobe.__path__, "medprobe."):
    importlib.import_module(module.name)
for folder in Path(medprobe.__path__[0]).rglob("*.py"):  # folders of plugins are no packages
    name = ".".join(folder.relative_to(Path(medprobe.__path__[0]).parent).with_suffix("").parts)
    importlib.import_module(name.removesuffix(".__init__"))
from medprobe.cli import main
def run(*arguments):
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, (arguments, result.output)
    return result.output
run("--help")
for what in ("methods", "benchmarks", "metrics", "papers", "checkpoints", "models"):
    run("list", what)
run("init", "new")
with chdir("new"):
    run("check")
run("check")
run("run", "model", "--benchmark", "data/tables/facts.csv", "--method", "mask_average")
run("build", "--benchmark", "facts"); run("validate", "--benchmark", "facts")
run("fetch", "--model", "mine")
run("probe", "--model", "mine")
run("score"); run("compare")
assert "mask_average" in Path("reports/index.html").read_text()
run("track")
"""


def with_dependants(folders: Collection[str]) -> set[str]:
    """These folders, and those that need them."""
    taken = {*folders}
    while more := {folder for folder, needed in NEEDS if needed in taken} - taken:
        taken |= more
    return taken


def copy_without(folders: Collection[str], target: Path) -> Path:
    """The package as it is installed, without folders and without those that need them."""
    shutil.copytree(ROOT, target / "medprobe")  # what is compiled, too: it holds for the copy
    for name in FILES:
        (path := target / "medprobe/project" / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copyfile
        copy(REPOSITORY / name, path)
    for folder in with_dependants(folders):
        shutil.rmtree(target / "medprobe" / folder)
    return target


# A process of its own imports the libraries and makes MLflow's tables once, and forks for each
# package.
HOST = """
import importlib, json, os, sys, traceback
for name in ("torch", "transformers", "mlflow", "great_expectations", "sklearn", "matplotlib"):
    importlib.import_module(name)
import shutil
from mlflow import MlflowClient
script, tables, *jobs = json.load(sys.stdin)
MlflowClient("sqlite:///" + tables).search_experiments()
for package, project in jobs:
    os.mkdir(project + "/mlruns")
    shutil.copy(tables, project + "/mlruns/mlflow.db")
    if not (child := os.fork()):
        sys.path.insert(0, package)
        os.chdir(project)
        with open("errors.txt", "w") as errors:
            try:
                exec(compile(script, "script", "exec"), {"__name__": "script"})
                errors.write("all works")  # a process that is killed writes nothing
            except BaseException:
                errors.write(traceback.format_exc())
        os._exit(0)
    os.waitpid(child, 0)
"""


def run_without(names: Collection[str], root: Path, model: Path) -> dict[str, str]:
    """What goes wrong in SCRIPT without each of these folders, or without all of them."""
    projects, jobs = {}, []
    for name in names:
        folders = TAKEN_OUT[name]
        package = copy_without(folders, root / name / "package")
        project = projects[name] = root / name / "project"
        (project / "data/tables").mkdir(parents=True)
        rewire = "" if "papers/medlama" in folders else "rewire: {}\nsentence_sets: {}"
        (project / "params.yaml").write_text(PARAMS % rewire)
        (project / "data/tables/facts.csv").write_text(FACTS)
        shutil.copytree(model, project / "model")
        shutil.copytree(REPOSITORY / "expectations", project / "expectations")
        jobs.append((os.fspath(package), os.fspath(project)))
    tables = os.fspath(root / "mlflow.db")
    subprocess.run(
        [sys.executable, "-c", HOST], input=json.dumps([SCRIPT, tables, *jobs]), text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, capture_output=True,
    )  # fmt: skip
    said = {name: (path / "errors.txt").read_text() for name, path in projects.items()}
    return {name: text[-3000:] for name, text in said.items() if text != "all works"}


@pytest.mark.slow
def test_the_kernel_works_by_itself(tmp_path: Path, tiny_model: FolderOf) -> None:
    assert run_without(["all"], tmp_path, tiny_model("bert")) == {}


def test_all_else_works_without_a_folder(tmp_path: Path, tiny_model: FolderOf) -> None:
    assert run_without(FOLDERS, tmp_path, tiny_model("bert")) == {}
