"""Without one folder of `papers/` or `extensions/` everything else works.

`python -m bench.taken_out` runs the tests of the kernel on each of these packages as well.
"""

import importlib
import multiprocessing
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.architecture import DOCUMENT

from helpers import ROOT as REPOSITORY
from medprobe.core.plugins import ROOT, own_folders

FOLDERS = [path.relative_to(ROOT).as_posix() for path in own_folders()]

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
run("check"); run("pipeline")
run("run", "model", "--benchmark", "data/tables/facts.csv", "--method", "mask_average")
run("build", "--benchmark", "facts"); run("validate", "--benchmark", "facts")
run("fetch", "--model", "mine"); run("baseline", "--benchmark", "facts")
for method in ("mask_average", "fill_mask"):
    run("probe", "--model", "mine", "--method", method, "--benchmark", "facts")
run("score"); run("significance"); run("compare")
assert "mask_average" in Path("reports/index.html").read_text()
run("track")
"""


def copy_without(folder: str, target: Path) -> Path:
    """A copy of the package without a folder, and without those that need it."""
    shutil.copytree(ROOT, target / "medprobe", ignore=shutil.ignore_patterns("__pycache__"))
    needs = re.findall(r"`(\w+)` \(which needs `(\w+)`\)", DOCUMENT.read_text(encoding="utf-8"))
    kind, _, name = folder.partition("/")
    for taken in [name, *(other for other, needed in needs if needed == name)]:
        shutil.rmtree(target / "medprobe" / kind / taken)
    return target


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_all_else_works_without(
    folder: str, tmp_path: Path, tiny_model: Callable[[str], Path]
) -> None:
    package = copy_without(folder, tmp_path / "package")
    project = tmp_path / "project"
    (project / "data/tables").mkdir(parents=True)
    rewire = "" if folder == "papers/medlama" else "rewire: {}"
    (project / "params.yaml").write_text(PARAMS % rewire)
    (project / "data/tables/facts.csv").write_text(FACTS)
    shutil.copytree(tiny_model("bert"), project / "model")
    shutil.copytree(REPOSITORY / "expectations", project / "expectations")
    errors = tmp_path / "errors.txt"
    child = multiprocessing.get_context("fork").Process(target=run, args=(package, project, errors))
    child.start()
    child.join()
    assert child.exitcode == 0, errors.read_text()[-3000:]


@pytest.fixture(autouse=True, scope="module")
def _libraries() -> None:
    """What forks share: the libraries, of which each would import its own for seconds."""
    for name in ("torch", "transformers", "mlflow", "great_expectations", "sklearn", "matplotlib"):
        importlib.import_module(name)


def run(package: Path, project: Path, errors: Path) -> None:
    """In a fork: run SCRIPT in the project, with this package in place of ours."""
    for name in [name for name in sys.modules if name.split(".")[0] == "medprobe"]:
        del sys.modules[name]
    sys.path.insert(0, os.fspath(package))
    os.chdir(project)
    try:
        exec(compile(SCRIPT, "script", "exec"), {"__name__": "script"})
    except BaseException:
        errors.write_text(traceback.format_exc())
        os._exit(1)
    os._exit(0)
