"""The package outside a clone: its wheel, `medprobe init`, and a model on a table at once."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from helpers import ROOT, FolderOf
from medprobe.cli import main
from medprobe.core.errors import BadInput
from medprobe.core.params import load_params
from medprobe.pipeline import check
from medprobe.pipeline.init import FILES, WORKFLOW, init

SOURCES = ("src", "setup.py", "pyproject.toml", "README.md", "LICENSE")
FACTS = "subject,relation,object\naspirin,treats,fever\nadrenaline,treats,shock\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheel is installed, without what it requires, which this environment has."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in (*SOURCES, *FILES):
        source, target = ROOT / name, folder / "clone" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignored)
        else:
            shutil.copyfile(source, target)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    target = ["--no-compile", "--target", "libs", "--find-links", "dist", "medprobe"]
    for command in (
        ["wheel", *options, "--wheel-dir", "dist", "./clone"],
        ["install", *options, *target],
    ):
        process = subprocess.run(
            [*pip, *command], cwd=folder, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, process.stderr
    return folder / "libs"


@pytest.fixture(scope="module")
def bare(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheel and what it requires without extras are installed, and no other library."""
    folder = tmp_path_factory.mktemp("bare")
    [wheel] = metadata.distributions(name="medprobe", path=[str(installed)])
    distributions = {"medprobe": wheel}
    required = [Requirement(line) for line in wheel.requires or ()]
    while required:
        requirement = required.pop()
        name = canonicalize_name(requirement.name)
        unmet = requirement.marker and not requirement.marker.evaluate({"extra": ""})
        if name not in distributions and not unmet:
            distributions[name] = metadata.distribution(name)
            required += [Requirement(line) for line in distributions[name].requires or ()]
    for distribution in distributions.values():
        for top in {file.parts[0] for file in distribution.files or ()} - {".."}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(distribution.locate_file(top))))
    return folder


def medprobe(libs: Path, folder: Path, *arguments: str) -> str:
    """What a command of the installed package says that must succeed."""
    process = subprocess.run(
        [sys.executable, "-c", "from medprobe.cli import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(libs), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout
    return process.stdout


@pytest.mark.slow
def test_the_wheel_makes_a_project_and_probes_a_table(
    installed: Path, tmp_path: Path, tiny_model: FolderOf
) -> None:
    medprobe(installed, tmp_path, "init", "project")
    project = tmp_path / "project"
    assert (project / ".git").is_dir()
    suites = [path.relative_to(ROOT) for path in (ROOT / "expectations").rglob("*.json")]
    assert suites
    for path in suites:
        assert (project / path).read_bytes() == (ROOT / path).read_bytes()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"medprobe=={version}\n" in (project / "requirements.lock").read_text()
    deps = yaml.safe_load((project / "dvc.yaml").read_text())["stages"]["probe-masked"]["deps"]
    assert "requirements.lock" in deps and not any("src/" in dependency for dependency in deps)
    (project / "data/facts.csv").write_text(FACTS)
    (project / "data/prompts.csv").write_text("relation,template\ntreats,[X] treats [Y] .\n")
    run_options = ["--benchmark", "data/facts.csv", "--prompts", "data/prompts.csv"]
    command = ["run", str(tiny_model("bert")), "--method", "mask_average", *run_options]
    output = medprobe(installed, project, *command)
    assert "acc@1 on 2 queries (full)" in output


def python(libs: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Python with the libraries of one folder alone."""
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        cwd=libs.parent,
        env={**os.environ, "PYTHONPATH": str(libs)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_example_of_the_library_needs_no_extra(bare: Path, tiny_model: FolderOf) -> None:
    page = (ROOT / "docs/how-to/library.md").read_text(encoding="utf-8")
    example = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    example = example.replace("outputs/models/taught", str(tiny_model("bert")))
    lines = example.splitlines()
    assert "results(" in lines.pop()  # needs a project
    rows = [line.split(",") for line in FACTS.splitlines()]
    facts = f"import pandas\nfacts = pandas.DataFrame({rows[1:]}, columns={rows[0]})"
    process = python(bare, "-c", "\n".join([facts, *lines, "print(len(model.methods))"]))
    assert process.returncode == 0, process.stderr
    assert process.stdout == "10\n"


@pytest.mark.parametrize("command", ["init mine", "repro"])
def test_a_command_that_needs_an_extra_names_it(bare: Path, command: str) -> None:
    shutil.copyfile(ROOT / "params.yaml", bare.parent / "params.yaml")
    process = python(bare, "-c", "from medprobe.cli import main; main()", *command.split())
    assert process.returncode == 2
    assert re.search(r"needs \w+; pip install 'medprobe\[project\]'$", process.stderr.strip())
    assert process.stderr.count("Error") == 1 and "Traceback" not in process.stderr
    assert not (bare.parent / "mine").exists()


def test_a_new_projects_params_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    check.check(load_params())
    assert "is required" not in CliRunner().invoke(main, ["doctor"]).output
    Path("requirements.lock").write_text("medprobe==0.1.0\n")
    assert "medprobe 0.1.0 is required" in CliRunner().invoke(main, ["doctor"]).output


@pytest.mark.full
def test_an_upgrade_probes_again_by_methods_of_a_higher_version_alone(
    installed: Path, tmp_path: Path, tiny_model: FolderOf
) -> None:
    """Two methods; the upgrade edits the engine, and then raises the version of one."""
    libs, project = tmp_path / "libs", tmp_path / "project"
    shutil.copytree(installed, libs)
    medprobe(libs, tmp_path, "init", "project")
    shutil.copytree(tiny_model("bert"), project / "model")
    (project / "data/tables").mkdir()
    (project / "data/tables/facts.csv").write_text(FACTS)
    prompts = "relation,template\ntreats,[X] treats [Y] .\n"
    (project / "data/tables/prompts.csv").write_text(prompts)
    params = yaml.safe_load((project / "params.yaml").read_text())
    params |= {
        "folders": {"mine": "model"},
        "models": {"masked": {"mine": {}}},
        "benchmarks": {
            "table": {"facts": {"facts": "tables/facts.csv", "prompts": "tables/prompts.csv"}}
        },
        "methods": {"masked": {"mask_average": {"facts": {}}, "fill_mask": {"facts": {}}}},
    }
    (project / "params.yaml").write_text(yaml.safe_dump(params))

    def upgrade(file: str, *edit: str) -> set[str]:
        """The methods that probe after an edit of the package, whose version is another one."""
        code, lock = libs / "medprobe" / file, project / "requirements.lock"
        code.write_text(code.read_text().replace(*edit) + "# an upgrade\n")
        lock.write_text(f"{lock.read_text()}# {file}\n")
        before = runs()
        medprobe(libs, project, "repro", "--jobs", "1")
        return {name for name, run in runs().items() if before.get(name) != run}

    def runs() -> dict[str, str]:
        records = (project / "outputs/runs").rglob("*.json")
        return {path.parent.name: path.read_text() for path in records}

    assert upgrade("engine/masked.py", "", "") == {"mask_average", "fill_mask"}
    assert upgrade("engine/masked.py", "", "") == set()
    raised = ("    KINDS =", "    VERSION = 2\n    KINDS =")
    assert upgrade("methods/fill_mask.py", *raised) == {"fill_mask"}


@pytest.mark.parametrize("has_wheel", [True, False])
def test_the_workflow_installs_what_the_project_pins(
    installed: Path, tmp_path: Path, *, has_wheel: bool
) -> None:
    """The wheel that medprobe came from is in wheels/; without one a line asks for it."""
    libs, project = tmp_path / "libs", tmp_path / "project"
    shutil.copytree(installed, libs)
    [wheel] = (installed.parent / "dist").glob("medprobe-*.whl")
    [record] = libs.glob("medprobe-*.dist-info")
    origin = wheel.as_uri() if has_wheel else installed.as_uri()
    (record / "direct_url.json").write_text(json.dumps({"url": origin}))
    printed = medprobe(libs, tmp_path, "init", "project")
    assert ("put its wheel there" in printed) is not has_wheel
    if not has_wheel:
        (project / "wheels").mkdir()
        shutil.copy(wheel, project / "wheels")
    steps = yaml.safe_load((project / WORKFLOW).read_text())["jobs"]["gate"]["steps"]
    [command] = [step["run"] for step in steps if step.get("name") == "install"]
    lock = project / "requirements.lock"
    [pin] = [line for line in lock.read_text().splitlines() if line.startswith("medprobe==")]
    lock.write_text(f"{pin}\n")  # no test asks an index
    offline = ["--no-index", "--no-deps", "--dry-run", "--ignore-installed"]
    pip = f"{sys.executable} -m pip install {' '.join(offline)} "
    process = subprocess.run(
        command.replace("pip install ", pip),
        shell=True,
        check=False,
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert f"Would install {pin.replace('==', '-')}" in process.stdout, process.stderr


def test_a_new_project_has_nothing_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    result = CliRunner().invoke(main, ["repro"])
    assert result.exit_code == 2
    assert result.output.startswith("Error: params.yaml: no method probes a model; fill in models")
    assert "no method probes a model" in CliRunner().invoke(main, ["doctor"]).output


@pytest.mark.parametrize("setting", ["autocrlf=true", "eol=crlf"])
def test_a_clone_has_the_same_bytes(tmp_path: Path, setting: str) -> None:
    """Git for Windows changes line ends where nothing forbids it, and DVC hashes bytes."""
    project, clone = tmp_path / "mine", tmp_path / "clone"
    init(project)
    (project / "plugins/own.csv").write_bytes(b"of Windows\r\nof Unix\n")
    name = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"]
    for command in (
        ["add", "--all"],
        [*name, "commit", "--quiet", "--message", "all"],
        ["clone", "--quiet", "--config", f"core.{setting}", ".", str(clone)],
    ):
        subprocess.run(["git", *command], cwd=project, check=True)
    files = subprocess.run(["git", "ls-files"], cwd=project, check=True, capture_output=True)
    for path in files.stdout.decode().split():
        assert (clone / path).read_bytes() == (project / path).read_bytes(), path


def test_sources_and_models_that_are_pinned_alone_travel(tmp_path: Path) -> None:
    """DVC finds no file in a folder that git ignores whole."""
    project, clone = tmp_path / "mine", tmp_path / "clone"
    init(project)
    name = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"]
    pinned = ("data/umls", "data/notes", "models/mine")
    for folder in pinned:
        (project / folder).mkdir(parents=True)
        (project / folder / "file").write_text(folder)
    for command in (
        ["dvc", "add", "--quiet", *pinned],
        ["dvc", "remote", "add", "--quiet", "--default", "store", str(tmp_path / "store")],
        ["dvc", "push", "--quiet"],
        ["git", "add", "--all"],
        ["git", *name, "commit", "--quiet", "--message", "all"],
        ["git", "clone", "--quiet", ".", str(clone)],
        ["dvc", "--cd", str(clone), "pull", "--quiet", "--allow-missing"],
    ):
        subprocess.run(command, cwd=project, check=True)
    assert all((clone / folder / "file").read_text() == folder for folder in pinned)
    tracked = subprocess.run(["git", "ls-files"], cwd=project, check=True, capture_output=True)
    assert b"/file" not in tracked.stdout


def test_nothing_that_is_there_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("seed: 1\n")
    with pytest.raises(BadInput, match=r"params\.yaml: already exists"):
        init(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["params.yaml"]
