"""Every command of the documents runs: here, as a reader types it, or where ELSEWHERE says.

Here means a copy of a small project that has run a stage of each kind, page by page in the page's
order. What the page says that its reader has or does is in BEFORE.
"""

import re
import shlex
import shutil
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from documents.test_docs import PAGES, blocks, settings, words
from helpers.project import ROOT, Project, environment
from papers.diskne import test_import_annotation
from papers.medlama.test_import_medlama import clone

# CHANGELOG.md has the commands of the past, too.
DOCUMENTS = [page for page in PAGES if page.name != "CHANGELOG.md"]
PROGRAMS = r"(?:medprobe|dvc|git|make|pip|cp|lm-eval|python -m) "

OWN_DATA = ROOT / "docs/how-to/own-data.md"
TUTORIAL = ROOT / "docs/tutorial.md"

# The beginning of a command, then the file that runs it and a text of that file.
ELSEWHERE = {
    "dvc remove data.dvc": (
        "tests/pipeline/test_stale_stages.py",
        '"remove", "--quiet", "data.dvc"',
    ),
    "dvc add data/umls data/sample": ("tests/pipeline/test_stale_stages.py", '"data/facts"'),
    "git add data/*.dvc": ("tests/pipeline/test_stale_stages.py", '"data/facts"'),
    "dvc add checkpoints/mine": ("tests/helpers/finished_project.py", '"checkpoints/given"'),
    "dvc push": ("tests/pipeline/test_pipeline.py", '"push", "--quiet"'),
    "git push": ("tests/pipeline/test_pipeline.py", "project.clone"),
    "dvc exp run": ("tests/pipeline/test_pipeline.py", '"exp", "run"'),
    "dvc pull data.dvc": ("tests/pipeline/test_gate_command.py", "workflow_pulls"),
    "dvc pull": ("tests/pipeline/test_pipeline.py", '"pull", "--quiet"'),
    "lm-eval run": ("tests/extensions/exchange/test_lm_eval.py", "MEDPROBE_LM_EVAL"),
    "make lint": (".ci/run", "lint verify"),
    "make kernel": (".github/workflows/tests.yml", "make kernel"),
    "make repro": ("Makefile", "verify: repro"),
    "make test": (".ci/run", "make test site"),
    "medprobe gate": ("tests/pipeline/test_gate_command.py", "medprobe gate"),
    "medprobe init ../drugs": ("tests/documents/test_tutorial.py", 'command("medprobe init")'),
    "medprobe sample": ("tests/documents/test_tutorial.py", 'command("medprobe sample")'),
}
# A long command of one page, and the file that runs it with the others of its page.
ONCE = {("expert-evaluation.md", "medprobe repro"): "tests/pipeline/test_edits.py"}
# No test runs these: they need a hub, a cluster or a GPU, or take long.
BY_HAND = ("dvc queue", "dvc get", "dvc import", "make", "pip", "python -m")
NEEDS_RELEASED_DATA = {"results.md"}  # a page's commands, with checkpoints of real models too

# What stands for the files and models of the page's reader.
STAND_INS = {
    "dmis-lab/biobert-base-cased-v1.2": "outputs/models/taught",
    "~/": "../home/",
    "biobert/": "taught/",
    " bert/": " untaught/",
    "ask biobert": "ask taught",
}


def is_whole(prose: str) -> bool:
    """Whether a text in backticks is a command that can be typed, and not a command's name."""
    has_arguments = re.match(rf"{PROGRAMS}\S+ \S", prose)
    return bool(has_arguments) and not re.search(r"\b[A-Z]{3,}\b", prose)


def commands_of_blocks(page: Path) -> list[str]:
    scripts = [*blocks(page, ""), *blocks(page, "bash")]
    lines = [line for script in scripts for line in script.replace("\\\n", " ").splitlines()]
    commands = [re.sub(r"\s# .*", "", line).strip() for line in lines]
    return [command for command in commands if re.match(PROGRAMS, command)]


IN_BLOCKS = {command for page in DOCUMENTS for command in commands_of_blocks(page)}


def commands(page: Path) -> list[str]:
    """The commands of a page's blocks, then those of its prose that no page's block has."""
    of_prose = [text for text in words(page) if is_whole(text) and text not in IN_BLOCKS]
    return list(dict.fromkeys([*commands_of_blocks(page), *of_prose]))


def commands_to_run(page: Path) -> list[str]:
    """`medprobe ui`, which changes nothing, runs for the first page that has it."""
    serving = next(page for page in DOCUMENTS if "medprobe ui" in commands(page))
    return [
        line
        for line in commands(page)
        if page.name not in NEEDS_RELEASED_DATA
        if (line != "medprobe ui" or page == serving)
        and not line.startswith((*ELSEWHERE, *BY_HAND))
        and (page.name, line) not in ONCE
    ]


def replace_names(command: str) -> str:
    for name, stand_in in STAND_INS.items():
        command = command.replace(name, stand_in)
    return command


def write_drugs(project: Project) -> None:
    facts = pd.read_csv(project.folder / "data/sample/facts.csv")
    drugs = facts[facts["relation"].isin(["may_treat", "may_prevent"])]
    (project.folder / "data/tables").mkdir(exist_ok=True)
    for folder in (project.folder, project.folder / "data/tables"):
        drugs[["subject", "relation", "object"]].to_csv(folder / "drugs.csv", index=False)
        templates = "may_treat,[X] might treat [Y] .\nmay_prevent,[X] prevents [Y] .\n"
        (folder / "prompts.csv").write_text(f"relation,template\n{templates}")


def clone_medlama(project: Project) -> None:
    clone(project.folder / "../home/medlama")


def write_annotation(project: Project) -> None:
    shutil.move(project.folder / "data/diskne/annotation.csv", project.folder / "../sample.csv")
    (project.folder / "../home").mkdir(exist_ok=True)
    test_import_annotation.released(
        project.folder / "../home/DisKnE", *test_import_annotation.RIGHT
    )


def take_apart_lama(project: Project) -> None:
    """LAMA's archive, without one of its sets."""
    home = project.folder / "../home/LAMA"
    home.mkdir()
    shutil.move(project.folder / "data/lama", home / "data")
    shutil.rmtree(home / "data/ConceptNet")
    add_benchmarks(project, lama=settings(OWN_DATA)["benchmarks"]["lama"])


def add_benchmarks(project: Project, **builders: Any) -> None:
    project.replace(benchmarks=project.params()["benchmarks"] | builders)


def build_lipid(project: Project) -> None:
    add_benchmarks(project, lipid={"lipid": {}})
    project.works("medprobe", "build", "--benchmark", "lipid")


def use_the_table(project: Project) -> None:
    write_drugs(project)
    sections = settings(TUTORIAL)
    methods = {kind: {} for kind in project.params()["methods"]} | sections["methods"]
    project.replace(benchmarks=sections["benchmarks"], methods=methods, sweeps={})


def leave_out_sweeps(project: Project) -> None:
    project.replace(sweeps={})


def restore_params(project: Project) -> None:
    """A paper's models are on the hub, which tests do without."""
    project.works("git", "checkout", "--", "params.yaml")
    if (sample := project.folder / "../sample.csv").exists():
        shutil.move(sample, project.folder / "data/diskne/annotation.csv")


# Page and beginning of a command: what its reader has done or has by then.
BEFORE: dict[tuple[str, str], Callable[[Project], None]] = {
    ("README.md", "medprobe adopt"): leave_out_sweeps,
    ("README.md", "medprobe import annotation"): write_annotation,
    ("README.md", "medprobe import medlama"): clone_medlama,
    ("README.md", "medprobe repro"): restore_params,
    ("README.md", "medprobe run"): write_drugs,
    ("expert-evaluation.md", "medprobe annotate prompts"): build_lipid,
    ("library.md", "medprobe run"): write_drugs,
    ("own-data.md", "medprobe adopt"): leave_out_sweeps,
    ("own-data.md", "medprobe import annotation"): write_annotation,
    ("own-data.md", "medprobe import lama"): take_apart_lama,
    ("own-data.md", "medprobe import medlama"): clone_medlama,
    ("own-data.md", "medprobe clean"): restore_params,
    ("own-data.md", "medprobe run taught --benchmark data/tables"): write_drugs,
    ("papers.md", "medprobe annotate prompts"): build_lipid,
    ("tutorial.md", "dvc add data"): use_the_table,
}


def open_ui(project: Project) -> None:
    """Start `medprobe ui` on a free port, open the address that it prints, and stop it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    process = subprocess.Popen(
        ["medprobe", "ui", "--port", port],
        cwd=project.folder,
        env=environment() | {"http_proxy": "http://127.0.0.1:9"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            if address := re.match(r"MLflow: (http\S+);", line):
                break
        assert address, lines
        with urllib.request.urlopen(address[1]) as response:
            assert "MLflow" in response.read().decode()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.mark.dvc
@pytest.mark.slow
@pytest.mark.parametrize("page", filter(commands_to_run, DOCUMENTS), ids=lambda page: page.name)
def test_commands_run(page: Path, finished_project: Path, tmp_path: Path) -> None:
    project = Project.copy(finished_project, tmp_path / "project")
    for command in commands_to_run(page):
        for (name, start), prepare in BEFORE.items():
            if page.name == name and command.startswith(start):
                prepare(project)
        if command == "medprobe ui":
            open_ui(project)
        elif command == "medprobe doctor":  # which names what the sample world lacks of a paper
            assert "params.yaml is valid" in project.run("medprobe", "doctor").stdout
        elif command.startswith("dvc "):
            project.works(*shlex.split(command))
        else:
            project.works("bash", "-c", f"yes | {replace_names(command)}")  # to what it asks


@pytest.mark.parametrize("start", ELSEWHERE)
def test_what_runs_elsewhere_stands_there(start: str) -> None:
    path, text = ELSEWHERE[start]
    assert any(line.startswith(start) for page in DOCUMENTS for line in commands(page))
    assert text in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(("page", "command"), ONCE)
def test_a_command_that_runs_once_is_of_its_page(page: str, command: str) -> None:
    [path] = [path for path in DOCUMENTS if path.name == page]
    assert command in commands(path)
    assert f"how-to/{page}" in (ROOT / ONCE[page, command]).read_text(encoding="utf-8")
