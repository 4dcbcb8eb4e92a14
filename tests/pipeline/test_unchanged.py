"""A stage that would record other code or settings than it ran with ends in a line.

The project here is a clone with a benchmark of its own, which edits a file while it is built.
"""

import shutil
import subprocess
from contextlib import chdir
from copy import copy
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers import nightly
from helpers.project import NEEDED_SECTIONS, Project
from medprobe.cli import main
from medprobe.core.plugins import ROOT
from medprobe.pipeline.check import blocks

BUILDER = '''
"""A benchmark of one query, whose build edits a file of the project."""

from pathlib import Path

import pandas as pd

from medprobe.benchmarks import Benchmark, Metadata, counts
from medprobe.core.settings import Section
from medprobe.core.tables import BenchmarkTables

FACTS = [("q", "edited", "r", "aspirin", "a", "aspirin treats [Y] .", ["gout"], ["g"], "full")]
COLUMNS = "query_id benchmark relation subject subject_id prompt answers answer_ids subset"


class Settings(Section):
    file: str = ""


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    if settings.file:
        path = Path(settings.file)
        path.write_text(path.read_text() + "\\n")
    queries = pd.DataFrame(FACTS, columns=COLUMNS.split())
    queries = queries.assign(cluster="a", answer="g")
    candidates = pd.DataFrame({"name": ["gout"], "id": "g", "type": "", "subset": "full"})
    return BenchmarkTables(queries, candidates)


METADATA = Metadata("a query", "nobody", "none", ("edited",), "acc_at_1", cluster="subject_id")
BENCHMARK = Benchmark(METADATA, Settings, build)
'''
STAGE = "build-edited@edited"
CODE = "src/medprobe/core/tables.py"
PLUGIN = "plugins/benchmarks/edited.py"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A clone with a builder of its own, whose blocks are in dvc.yaml."""
    project = Project(tmp_path_factory.mktemp("made") / "clone")
    (project.folder / PLUGIN).parent.mkdir(parents=True)
    (project.folder / PLUGIN).write_text(BUILDER)
    sections = {name: project.params()[name] for name in NEEDED_SECTIONS}
    project.write_params({**sections, "benchmarks": {"edited": {"edited": {}}}})
    with chdir(project.folder):
        Path("data/edited").mkdir(parents=True)
        Path("data/edited/facts.csv").write_text("no facts\n")
        Path("outputs").mkdir()
        Path("outputs/checked").write_text("checked\n")
        with Path("dvc.yaml").open("a") as file:
            file.write(blocks("edited"))
    return project


@pytest.fixture
def project(made: Project, tmp_path: Path) -> Project:
    project = copy(made)
    project.folder = tmp_path / "clone"
    shutil.copytree(made.folder, project.folder)
    return project


def reproduce(project: Project, path: str = "src") -> "subprocess.CompletedProcess[str]":
    """Run the stage with the code of a folder, `src` or this clone's."""
    return project.run("dvc", "repro", "--single-item", STAGE, PYTHONPATH=path)


def refusal(project: Project, process: "subprocess.CompletedProcess[str]") -> str:
    """The one line of a stage that failed, and that DVC has not recorded."""
    assert process.returncode != 0
    assert not [*project.folder.rglob(".medprobe-*")]
    assert not (project.folder / "dvc.lock").exists()
    assert "Traceback" not in process.stdout
    [line] = [line for line in process.stdout.splitlines() if line.startswith("Error: ")]
    return line


@pytest.mark.parametrize(
    "file", [CODE, "params.yaml", *nightly(PLUGIN, "expectations/lama/queries.json")]
)
def test_an_edit_while_a_stage_runs_ends_it(project: Project, file: str) -> None:
    project.replace(benchmarks={"edited": {"edited": {"file": file}}})
    line = f"Error: {file}: was changed while the stage ran; "
    assert refusal(project, reproduce(project)).startswith(line)
    is_made = (project.folder / "outputs/benchmarks/edited").exists()
    assert is_made == (file not in (CODE, PLUGIN))  # of code nobody knows which part ran


def test_an_edit_of_anything_else_ends_no_stage(project: Project) -> None:
    project.replace(benchmarks={"edited": {"edited": {"file": "dvc.yaml"}}})
    assert reproduce(project).returncode == 0
    assert STAGE in (project.folder / "dvc.lock").read_text()


def test_a_worktree_with_the_environment_of_another_clone_is_refused(project: Project) -> None:
    with (project.folder / CODE).open("a") as file:
        file.write("# an edit\n")
    line = refusal(project, reproduce(project, path=""))
    assert line.startswith(f"Error: src/medprobe: Python runs other code, that in {ROOT}; run `pip")
    assert reproduce(project).returncode == 0


def test_the_same_code_in_another_folder_is_accepted(project: Project) -> None:
    """As in a copy in which `dvc exp run --temp` runs."""
    assert reproduce(project, path="").returncode == 0


def test_a_builder_without_blocks_is_refused_and_they_are_printed(project: Project) -> None:
    """What is printed can be pasted: the fixture did."""
    dvc_yaml = project.folder / "dvc.yaml"
    with chdir(project.folder):
        dvc_yaml.write_text(dvc_yaml.read_text().replace(blocks("edited"), ""))
        result = CliRunner().invoke(main, ["check"])
        assert f"{blocks('edited')}\nError: dvc.yaml: no stages" in result.output
    assert result.exit_code == 2
    line = "Error: dvc.yaml: no stages build the benchmarks of 'edited'; paste the lines above at"
    assert line in result.output
