"""A stage that would run other code or libraries than DVC has recorded ends in a line.

The project here is a clone with a benchmark of its own, which edits a file while it is built.
"""

import os
import shutil
import subprocess
from contextlib import chdir
from copy import copy
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from dvc.repo import Repo

from helpers.project import NEEDED_SECTIONS, Project
from medprobe.cli import main
from medprobe.core import places
from medprobe.core.code import ROOT, closure, package_files
from medprobe.core.errors import BadInput
from medprobe.core.libraries import differing_versions
from medprobe.core.parts import package_fingerprint
from medprobe.core.stage_checks import check_libraries, checked_code, named_inputs
from medprobe.pipeline import dvc_yaml as pipeline

BUILDER = '''
"""A benchmark of one query, whose build edits files of the project."""

from pathlib import Path

import pandas as pd

from medprobe.benchmarks import Benchmark, Metadata, counts
from medprobe.core.settings import Section
from medprobe.core.tables import BenchmarkTables

FACTS = [("q", "edited", "r", "aspirin", "a", "aspirin treats [Y] .", ["gout"], ["g"], "full")]
COLUMNS = "query_id benchmark relation subject subject_id prompt answers answer_ids subset"


class Settings(Section):
    file: str = ""
    back: bool = False
    number: int = 1


def build(data: Path, settings: Settings, seed: int) -> BenchmarkTables:
    if settings.file:
        path = Path(settings.file)
        text = path.read_text()
        edited = text.replace("number: 1", "number: 2").replace("bootstrap: ", "bootstrap: 1")
        path.write_text(edited + "# an edit\\n")
        if settings.back:
            path.write_text(text)
    queries = pd.DataFrame(FACTS, columns=COLUMNS.split())
    queries = queries.assign(cluster="a", answer="g")
    candidates = pd.DataFrame({"name": ["gout"], "id": "g", "type": "", "subset": "full"})
    return BenchmarkTables(queries, candidates)


METADATA = Metadata("a query", "nobody", "none", ("edited",), "acc_at_1", cluster="subject_id")
BENCHMARK = Benchmark(METADATA, Settings, build)
'''
STAGE = "build-edited@edited"
OUT = Path("outputs/benchmarks/edited")
CODE = "src/medprobe/core/tables.py"
PLUGIN = "plugins/benchmarks/edited.py"


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A clone whose code is listed."""
    project = Project(tmp_path_factory.mktemp("listed") / "clone")
    (project.folder / PLUGIN).parent.mkdir(parents=True)
    (project.folder / PLUGIN).write_text(BUILDER)
    sections = {name: project.params()[name] for name in NEEDED_SECTIONS}
    project.write_params({**sections, "benchmarks": {"edited": {"edited": {}}}})
    with chdir(project.folder):
        Path(SOURCE).parent.mkdir(parents=True)
        Path(SOURCE).write_text("no facts\n")
        places.CODE.parent.mkdir()
        places.CHECKED.write_text("checked\n")
        pipeline.write()
        pipeline.write_code_lists()
    return project


@pytest.fixture
def project(listed: Project, tmp_path: Path) -> Project:
    project = copy(listed)
    project.folder = tmp_path / "clone"
    shutil.copytree(listed.folder, project.folder)
    return project


def run(
    project: Project, *command: str, path: str = "src", **more: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command with the code of a folder, `src` or this clone's."""
    return project.run(*command, **{"PYTHONPATH": path, **more})


def build(project: Project, path: str = "src", **more: str) -> "subprocess.CompletedProcess[str]":
    return run(project, "medprobe", "build", "--benchmark", "edited", path=path, **more)


def reproduce(project: Project, path: str = "src") -> "subprocess.CompletedProcess[str]":
    return run(project, "dvc", "repro", "--single-item", STAGE, path=path)


def set_settings(project: Project, **settings: object) -> None:
    project.replace(benchmarks={"edited": {"edited": settings}})


def refusal(project: Project, process: "subprocess.CompletedProcess[str]") -> str:
    """The one line of a command that failed and left nothing."""
    assert process.returncode != 0
    assert not [*project.folder.rglob(".medprobe-*"), *(project.folder / OUT).rglob("*")]
    assert not (project.folder / "dvc.lock").exists()
    assert "Traceback" not in process.stdout
    [line] = [line for line in process.stdout.splitlines() if line.startswith("Error: ")]
    return line


@pytest.mark.parametrize("back", [True, False])
@pytest.mark.parametrize("file", [CODE, PLUGIN])
def test_an_edit_while_a_stage_runs_ends_it(project: Project, file: str, back: bool) -> None:
    """Even if the edit is taken back: a file can have been imported in between."""
    set_settings(project, file=file, back=back)
    again = "run `medprobe repro` again; finished parts are kept"
    line = f"Error: {file}: was written while the stage ran; {again}"
    assert refusal(project, build(project)) == line
    if back and file == CODE:
        assert refusal(project, reproduce(project)) == line


SOURCE = "data/edited/facts.csv"


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("params.yaml", "params.yaml: benchmarks.edited.edited.number"),
        (SOURCE, SOURCE),
        ("requirements.lock", "requirements.lock"),
        ("dvc.yaml", ""),
    ],
)
def test_an_input_that_changes_while_a_stage_runs_ends_it(
    project: Project, file: str, named: str
) -> None:
    """DVC would record it, as it reads inputs at the end. dvc.yaml is an input of no stage."""
    set_settings(project, file=file, number=1)
    process = reproduce(project)
    if named:
        again = "was changed while the stage ran; run `medprobe repro` again"
        assert refusal(project, process).startswith(f"Error: {named}: {again}")
    else:
        assert process.returncode == 0, process.stdout


def test_an_edit_of_parameters_of_another_stage_ends_none(project: Project) -> None:
    """Here `score.bootstrap`."""
    set_settings(project, file="params.yaml", number=3)
    project.replace(score={"bootstrap": 50})
    assert reproduce(project).returncode == 0
    assert project.params()["score"] == {"bootstrap": 150}


def test_inputs_are_those_that_dvc_resolves() -> None:
    with chdir(ROOT.parents[1]), Repo() as repo:
        params = yaml.safe_load(Path("params.yaml").read_text())
        stages = {stage.addressing: stage for stage in repo.index.stages if stage.cmd}
        assert {name.partition("@")[0] for name in stages} > {"train-continued", "score", "check"}
        for name, stage in stages.items():
            paths, names = named_inputs(name, params)
            of_params = [dep for dep in stage.deps if hasattr(dep, "params")]
            assert {*paths} == {dep.def_path for dep in stage.deps if dep not in of_params}
            assert {*names} == {of for dep in of_params for of in dep.params}


def test_a_stage_of_a_name_that_is_gone_is_a_line(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DVC_STAGE", "validate-medlama@renamed")
    with chdir(project.folder):
        result = CliRunner().invoke(main, ["validate", "--benchmark", "renamed"])
    assert (result.exit_code, result.output.partition(":")[0]) == (2, "Error")
    assert "for the stage validate-medlama@renamed" in result.output


@pytest.mark.parametrize("name", ["queries.json", "new.json"])
def test_a_suite_that_changes_while_the_gate_runs_ends_it(
    project: Project, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command that DVC runs compares what its stage names."""
    suite = places.EXPECTATIONS / "medlama" / name
    monkeypatch.setenv("DVC_STAGE", "validate-medlama@medlama")
    monkeypatch.setattr("medprobe.pipeline.stages.validate.validate", lambda *_: edit(suite))
    project.replace(benchmarks={"medlama": {"medlama": {}}})
    with chdir(project.folder):
        result = CliRunner().invoke(main, ["validate", "--benchmark", "medlama"])
    assert result.exit_code == 2
    assert result.output.startswith(f"Error: {suite}: was changed while the stage ran")


def edit(path: Path) -> None:
    with path.open("a") as file:
        file.write("\n")


def test_an_edit_after_the_list_was_made_is_refused(project: Project) -> None:
    """As with `--single-item`, or where the edit comes between two stages of one run."""
    with (project.folder / CODE).open("a") as file:
        file.write("# an edit\n")
    line = refusal(project, build(project))
    assert line.startswith(f"Error: {CODE}: was changed after outputs/code/build-edited.txt listed")
    assert run(project, "medprobe", "code").returncode == 0
    assert build(project).returncode == 0


def test_a_worktree_with_the_environment_of_another_clone_is_refused(project: Project) -> None:
    with (project.folder / CODE).open("a") as file:
        file.write('raise RuntimeError("this code runs")\n')
    with chdir(project.folder):
        pipeline.write_code_lists()
    used = ROOT / "core/tables.py"
    assert refusal(project, reproduce(project, path="")) == (
        f"Error: {CODE}: Python runs {used}, which outputs/code/build-edited.txt does not list; "
        "run `pip install --no-deps --editable .` here, or set PYTHONPATH=src"
    )
    assert "this code runs" in build(project).stdout


def test_the_same_code_in_another_folder_is_accepted(project: Project) -> None:
    assert reproduce(project, path="").returncode == 0
    assert STAGE in (project.folder / "dvc.lock").read_text()


def test_another_version_of_a_library_is_refused(project: Project) -> None:
    folder = project.folder / "upgraded/polars-0.0.1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: polars\nVersion: 0.0.1\n")
    path = f"src{os.pathsep}upgraded"
    line = refusal(project, reproduce(project, path))
    assert line.startswith("Error: requirements.lock: polars ")
    assert "is required, 0.0.1 is installed; `pip install -r requirements.lock`, or" in line
    assert refusal(project, run(project, "medprobe", "check", path=path)) == line


def test_what_a_lock_says_of_versions_is_compared(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lines = [
        "# comment",
        "click==0.1 \\",
        "    --hash=sha256:00",
        'numpy==0.1; sys_platform == "none"',
        "nowhere-to-be==1  # via x",
        "torch==2.13.0",
    ]
    lock.write_text("\n".join(lines))
    differing = differing_versions(lock)
    assert differing.keys() == {"click", "nowhere-to-be"}  # torch is 2.13.0+cpu, or of a GPU
    assert differing["nowhere-to-be"] == ("1", "none")


def test_outside_a_clone_the_hash_of_the_package_is_compared(working_folder: Path) -> None:
    with checked_code("fetch"):
        pass  # nothing is recorded
    Path("requirements.lock").write_text(pipeline.libraries_lock())
    check_libraries()
    assert package_fingerprint()[:32] in pipeline.libraries_lock()
    Path("requirements.lock").write_text("medprobe==0.1 # code 0123456789abcdef\n")
    problem = "other code than the installed medprobe; run `medprobe pipeline`"
    with pytest.raises(BadInput, match=problem), checked_code("fetch"):
        pytest.fail("the stage runs")


def test_files_of_editors_are_in_no_list(tmp_path: Path) -> None:
    package = tmp_path / "medprobe"
    shutil.copytree(ROOT, package, ignore=shutil.ignore_patterns("__pycache__"))

    def counted() -> tuple[list[Path], list[Path]]:
        return closure("medprobe.pipeline.stages.compare", root=package), package_files(package)

    before = counted()
    for folder in ("methods", "papers/diskne/metrics", "pipeline", "report/page"):
        for name in (".x.py.swp", "x~", "x.orig", "x.rej", "#x#", ".#x.py", "._x.py", "README.md"):
            (package / folder / name).write_text("x = 1\n")
    assert counted() == before
