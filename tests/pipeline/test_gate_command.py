"""`medprobe gate`, by the commands of the workflow that `medprobe init` writes."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from helpers.project import environment
from medprobe.pipeline.init import WORKFLOW, init

GOOD = "subject,relation,object\naspirin,treats,fever\nadrenaline,treats,shock\n"
NO_OBJECT = "subject,relation,object\naspirin,treats,fever\nadrenaline,treats,\n"
ONE_PROMPT = "subject,subject_id,relation,object\nflu,A,treats,fever\nflu,B,treats,shock\n"
SUITE = Path("expectations/table/queries.json")

pytestmark = pytest.mark.dvc


def run(folder: Path, command: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=folder,
        env=environment() | {"GITHUB_BASE_REF": "main", "DVC_CONFIG_LOCAL": ""} | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def run_workflow(folder: Path) -> tuple[int, str]:
    """Type the workflow's commands, but for the one that installs; stop at the first that fails."""
    steps = yaml.safe_load((folder / WORKFLOW).read_text())["jobs"]["gate"]["steps"]
    commands = [step["run"] for step in steps if "run" in step and step.get("name") != "install"]
    assert commands[-1] == "medprobe gate"
    out = ""
    for command in commands:
        process = run(folder, command)
        out += process.stdout
        if process.returncode:
            return process.returncode, out
    return 0, out


def write_tables(folder: Path, **tables: str) -> None:
    """Write tables of facts, and name them as benchmarks."""
    path = folder / "data/tables"
    path.mkdir(parents=True, exist_ok=True)
    (path / "prompts.csv").write_text("relation,template\ntreats,[X] treats [Y] .\n")
    for name, text in tables.items():
        (path / f"{name}.csv").write_text(text)
    params = yaml.safe_load((folder / "params.yaml").read_text())
    entries = {
        name: {"facts": f"tables/{name}.csv", "prompts": "tables/prompts.csv"} for name in tables
    }
    params["benchmarks"] = {"table": entries}
    (folder / "params.yaml").write_text(yaml.safe_dump(params))


def commit(folder: Path) -> None:
    git = "git -c user.name=a -c user.email=a@b.c"
    process = run(folder, f"git add --all && {git} commit --quiet --message x")
    assert process.returncode == 0, process.stdout


def page(folder: Path, name: str) -> str:
    return (folder / f"outputs/validation/{name}/index.html").read_text()


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a good table, which the workflow has checked; in git, on the branch main."""
    folder = tmp_path_factory.mktemp("gate") / "project"
    init(folder)
    write_tables(folder, good=GOOD)
    code, out = run_workflow(folder)
    assert code == 0, out
    assert "all gates passed" in out
    assert run(folder, "dvc add data && git checkout --quiet -b main").returncode == 0
    commit(folder)
    return folder


@pytest.fixture
def project(checked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(checked, tmp_path / "project", symlinks=True))


def test_a_good_table_passes_and_is_built_once(project: Path) -> None:
    assert re.search(r"all \d+ required checks passed", page(project, "good"))
    code, out = run_workflow(project)
    assert code == 0, out
    assert "Running stage" not in out
    published, count, last = out.splitlines()
    assert published == "good: tables: unsigned"
    assert re.fullmatch(r"\d+ checks passed, 0 failed, 0 warnings", count)
    assert last == "all gates passed; their pages: outputs/validation/**/index.html"


def test_each_broken_benchmark_is_reported_and_the_good_one_checked(project: Path) -> None:
    shutil.rmtree(project / "outputs")
    shutil.rmtree(project / ".dvc/cache")
    good = GOOD + "zinc,treats,Fever\nquinine,treats,malaria\ncodeine,treats,cough\n"
    write_tables(project, good=good, empty=NO_OBJECT, twice=ONE_PROMPT)
    code, out = run_workflow(project)
    assert code == 2
    *_, last = lines = out.splitlines()
    assert re.fullmatch("Error: medprobe gate: stopped by build-.*, validate-.*; .*", last)
    [empty] = [line for line in lines if line.startswith("✗ build-table@empty: ")]
    assert "data/tables/empty.csv, line 3: object is " in empty
    [twice] = [line for line in lines if line.startswith("✗ twice: ")]
    assert "2 rows, the first is data/tables/twice.csv, line 2 (row 1, treats/A)" in twice
    [count] = [line for line in lines if " checks passed, 2 failed, " in line]
    assert max(map(lines.index, (empty, twice))) < lines.index(count)
    assert "good: another name looks the same: data/tables/good.csv, line 2 (row " in out
    assert "data/tables/empty.csv, line 3: object is " in page(project, "empty")
    assert "row 2, treats/B" in page(project, "twice")
    assert "required checks passed" in page(project, "good")
    assert (project / "outputs/passed/good").is_file()
    assert [path.name for path in project.glob("outputs/passed/*")] == ["good"]


def test_the_page_of_a_broken_row_takes_the_place_of_an_earlier_one(project: Path) -> None:
    write_tables(project, good=NO_OBJECT)
    code, out = run_workflow(project)
    assert code == 2
    assert "✗ build-table@good: data/tables/good.csv, line 3: object is " in out
    assert "data/tables/good.csv, line 3: object is " in page(project, "good")
    assert not (project / "outputs/passed/good").exists()
    write_tables(project, good=GOOD)
    code, out = run_workflow(project)
    assert code == 0, out
    assert re.search(r"all \d+ required checks passed", page(project, "good"))


def test_edited_suites_are_named(project: Path) -> None:
    assert run(project, "git checkout --quiet -b change").returncode == 0
    text = (project / SUITE).read_text()
    (project / SUITE).write_text(text.replace('"not empty"', '"some rows"'))
    commit(project)
    code, out = run_workflow(project)
    assert code == 0, out
    assert f"this change edits {SUITE}: read it" in out.splitlines()
    unknown = run(project, "medprobe gate --base nowhere")
    assert unknown.returncode == 0
    assert "git has no branch nowhere here" in unknown.stdout


@pytest.mark.parametrize("pinned", [True, False])
def test_a_lock_of_other_data_is_reported(project: Path, *, pinned: bool) -> None:
    """The change has its data in data.dvc or not, and the dvc.lock of the data before."""
    write_tables(project, good=GOOD.replace("shock", "chills"))
    if pinned:
        assert run(project, "dvc add data").returncode == 0
        commit(project)
    code, out = run_workflow(project)
    assert code == 0, out
    [line] = [line for line in out.splitlines() if line.startswith("dvc.lock and metrics/: ")]
    assert "made from other data, by the record of build-table@good; " in line
    assert line.endswith("run `medprobe repro`, and commit them with data.dvc")
    assert pinned != ("data.dvc: was out of date for data/" in out)


def test_a_pin_that_lost_a_source_is_not_to_be_committed(project: Path) -> None:
    (project / "data/tables/good.csv").unlink()
    out = run(project, "medprobe gate").stdout
    assert "data/tables/good.csv: missing" in out
    assert "data.dvc: written without what is missing; `git checkout data.dvc` takes " in out
    assert "commit it as it is now" not in out
    restored = run(project, "git checkout --quiet data.dvc && dvc checkout --quiet data.dvc")
    assert restored.returncode == 0
    assert (project / "data/tables/good.csv").read_text() == GOOD


def test_the_workflow_pulls_what_data_dvc_names(project: Path) -> None:
    add = "dvc remote add --default store ../store"
    assert run(project, f"{add} && dvc push --quiet data.dvc").returncode == 0
    shutil.rmtree(project / "data")
    shutil.rmtree(project / ".dvc/cache")
    without = run(project, "medprobe gate")
    assert without.returncode == 2
    assert without.stdout.startswith("Error: data: no such folder; `dvc pull data.dvc` fetches it")
    code, out = run_workflow(project)
    assert code == 0, out
    assert (project / "data/tables/good.csv").read_text() == GOOD
    shutil.rmtree(project / "data")
    shutil.rmtree(project / ".dvc/cache")
    shutil.rmtree(project.parent / "store")
    code, out = run_workflow(project)
    assert code != 0, "data that the remote does not have are a failure"


def test_a_project_without_benchmarks_has_nothing_to_check(tmp_path: Path) -> None:
    init(tmp_path)
    code, out = run_workflow(tmp_path)
    assert code == 0
    assert "params.yaml names no data that a gate checks" in out


def test_a_workflow_that_is_there_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / WORKFLOW).parent.mkdir(parents=True)
    (tmp_path / WORKFLOW).write_text("name: mine\n")
    init(tmp_path)
    assert (tmp_path / WORKFLOW).read_text() == "name: mine\n"
    assert f"{WORKFLOW}: left as it is" in capsys.readouterr().out
