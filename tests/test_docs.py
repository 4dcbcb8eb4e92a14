"""The documents tell the truth: their code runs; their commands, paths, settings, links exist."""

import functools
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from medprobe import check
from medprobe.cli import main
from medprobe.commands import imports
from medprobe.core import places
from medprobe.core.params import Params, parse_section

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
EXTENDING = ROOT / "docs/how-to/extending.md"
GENERATED = {ROOT / "docs/reference/params.md", ROOT / "docs/reference/commands.md"}  # by the site
MADE = ("data", "outputs", "reports", "metrics", "mlruns", ".venv")  # by people and stages


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text(page), re.DOTALL | re.MULTILINE)
    return [content for name, content in fenced if name == language]


def words(page: Path) -> list[str]:
    """What stands between backticks, code blocks aside."""
    prose = re.sub(r"^```.*?^```$", "", text(page), flags=re.DOTALL | re.MULTILINE)
    return [re.sub(r"\s+", " ", word) for word in re.findall(r"`([^`]+)`", prose)]


def typed(page: Path) -> Iterator[list[str]]:
    """All commands of a page, in words."""
    lines = [line for block in blocks(page, "") for line in block.splitlines()]
    for line in [*lines, *words(page)]:
        command = line.partition("#")[0].strip()
        if re.match(r"(medprobe|dvc|make)\b [a-z-]", command):
            yield shlex.split(command)


def plugins() -> dict[Path, str]:
    """The files that extending.md has a reader write, by their paths below src."""
    named = re.findall(
        r"`src/(medprobe/\w+/\w+\.py)`[^`]*```python\n(.*?)```", text(EXTENDING), re.S
    )
    return {Path(path): code for path, code in named}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_exists_and_takes_its_arguments(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("theirs").touch()  # results of others, which must exist
    for program, *arguments in typed(page):
        if program == "make":
            targets = re.findall(r"^([a-z-]+):", text(ROOT / "Makefile"), re.MULTILINE)
            assert arguments[0] in targets, arguments
        elif program == "medprobe":
            command = main.get_command(click.Context(main), arguments[0])
            assert command, f"medprobe {arguments[0]}"
            known = {name for param in command.params for name in param.opts}
            options = {word.partition("=")[0] for word in arguments if word.startswith("--")}
            assert options <= known | {"--help"}, arguments
            if len(arguments) > 1:  # `medprobe track` alone is a name, and may be
                context = click.Context(command, info_name=arguments[0])
                command.parse_args(context, arguments[1:])  # raises UsageError
            if arguments[0] == "import" and len(arguments) > 1:
                assert arguments[1] in [*imports.names(), "results", "WHAT"]


def test_every_command_stands_in_a_document() -> None:
    said = {arguments[1] for page in PAGES for arguments in typed(page) if len(arguments) > 1}
    assert set(main.commands) - {"stages"} <= said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_exists(page: Path) -> None:
    roots = {path.name for path in ROOT.iterdir()}
    made = [str(path) for name, path in vars(places).items() if name.isupper()]
    for word in words(page):
        if not re.fullmatch(r"[\w.*<>{}@/-]+", word) or "/" not in word:
            continue
        first = word.split("/")[0]
        if first in MADE:
            ours = [path for path in made if word.startswith(path) or path.startswith(word)]
            assert ours or word.startswith(("mlruns/", "reports/", ".venv")), word
        elif first in roots and "<" not in word:
            new = Path(word).relative_to("src") in plugins() if first == "src" else False
            theirs = any(path.stem in word for path in plugins())  # expectations of the example
            assert new or theirs or [*ROOT.glob(word.rstrip("/"))], word


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", text(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_documents_resolve(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", text(page)):
        if not link.startswith(("https://", "mailto:")):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            assert target.exists() or target in GENERATED, link
            assert not anchor or anchor in anchors(target), link


def merged(*contents: dict[str, Any]) -> dict[str, Any]:
    """Settings in one, as a reader has them who follows a page to its end."""
    whole: dict[str, Any] = {}
    for content in contents:
        for key, value in content.items():
            both = isinstance(value, dict) and isinstance(whole.get(key), dict)
            whole[key] = merged(whole[key], value) if both else value
    return whole


def settings(page: Path) -> dict[str, Any]:
    """All settings of a page's YAML."""
    return merged(*(yaml.safe_load(block) for block in blocks(page, "yaml")))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != EXTENDING], ids=lambda p: p.name
)
def test_every_setting_is_one(page: Path) -> None:
    """The YAML of a page is held against the code as params.yaml is."""
    check.check(parse_section(Params, settings(page), page.name))


def tried(page: Path) -> Iterator[list[str]]:
    """The settings of each `dvc exp run` of a page."""
    for command in typed(page):
        if command[:3] == ["dvc", "exp", "run"]:
            yield [value for flag, value in itertools.pairwise(command) if flag == "-S"]


def test_experiments_set_what_can_be_set() -> None:
    """In the project's own params.yaml."""
    for overrides in itertools.chain.from_iterable(map(tried, PAGES)):
        params = yaml.safe_load(text(ROOT / "params.yaml"))
        for override in overrides:
            keys, _, value = override.partition("=")
            *parents, last = keys.split(".")
            functools.reduce(dict.__getitem__, parents, params)[last] = yaml.safe_load(value)
        check.check(parse_section(Params, params, "params.yaml"))


def test_single_settings_in_the_text_are_ones() -> None:
    """Such as `track: {text: true}`."""
    for page in PAGES:
        for word in words(page):
            if re.fullmatch(r"(seed|engine|track|score|rewire|fetch|folders): \{.*\}", word):
                check.check(parse_section(Params, yaml.safe_load(word), page.name))


TRY = """
from pathlib import Path
import pandas as pd
from medprobe import check, metrics
from medprobe.core import places
from medprobe.commands import pipeline
from medprobe.core.code import ROOT
from medprobe.core.tables import Metadata
from medprobe.metrics import Scoring
from medprobe.stages.build import build
from medprobe.stages.probe import probe

assert Path.cwd() in ROOT.parents, ROOT
assert "probe-shortest_first:" in pipeline.text() and "build-side_effects:" in pipeline.text()
params = check.loaded()
build("side_effects", params)
probe("biobert", "shortest_first", "side_effects", params)
path = places.PREDICTIONS / "biobert/shortest_first/side_effects.parquet"
predictions = pd.read_parquet(path)
print(list(predictions["prediction"][:3]), list(predictions["hit"][:3]))
metadata = Metadata.read(places.ABOUT / "side_effects.json")
scoring = Scoring.for_model(places.MODELS / "biobert", metadata, params)
scorer = metrics.find("reciprocal_rank")
scores = scorer.score(predictions, places.BENCHMARKS / "side_effects", scoring)
print(scores["default"]["full"]["macro"]["mrr"]["value"])
"""


@pytest.fixture
def copy(tmp_path: Path, tiny_model: Callable[[str], Path]) -> Path:
    """A copy of the package with all files that extending.md has a reader write, and a project with
    its settings."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    for path, code in plugins().items():
        (tmp_path / "src" / path).write_text(code, encoding="utf-8")
    shutil.copytree(tiny_model("bert"), tmp_path / "outputs/models/biobert")
    (tmp_path / "data").mkdir()
    table = "drug,effect\nvelotrine,rash\nvelotrine,fever\nbrantol,dry mouth\n"
    (tmp_path / "data/side_effects.csv").write_text(table, encoding="utf-8")
    content = yaml.safe_load(text(ROOT / "params.yaml"))
    used: dict[str, Any] = {"methods": {"masked": {"shortest_first": {"side_effects": {}}}}}
    params = merged(content, settings(EXTENDING), used)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_the_files_that_extend_it_work_as_they_stand(copy: Path) -> None:
    assert {path.parts[1] for path in plugins()} == {"methods", "benchmarks", "metrics"}
    process = subprocess.run(
        [sys.executable, "-c", TRY],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-4000:]
    assert process.stdout.splitlines() == [
        "['rash', 'fever', 'dry mouth'] [False, False, True]",  # of brantol
        str(round((1 / 3 + 1) / 2, 6)),
    ]


def test_the_citation_is_whole() -> None:
    content = yaml.safe_load(text(ROOT / "CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= content.keys()
    assert all(author.keys() & {"name", "family-names"} for author in content["authors"])
    for reference in content["references"]:
        assert {"type", "title", "authors"} <= reference.keys()
    project = text(ROOT / "pyproject.toml")
    assert f'version = "{content["version"]}"' in project
    assert f'license = "{content["license"]}"' in project


def test_the_changelog_has_its_sections() -> None:
    unreleased, release = text(ROOT / "CHANGELOG.md").split("\n## ")[1:3]
    assert unreleased.startswith("[Unreleased]")
    project = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]
    assert release.startswith(f"[{project['version']}] - 20")
    assert "### Numbers changed" in release


def test_the_readme_draws_the_stages_that_there_are() -> None:
    [drawing] = blocks(ROOT / "README.md", "mermaid")
    stages = {path.stem for path in (ROOT / "src/medprobe/stages").glob("[a-z]*.py")}
    assert stages <= set(re.findall(r"\w+", drawing))


def test_the_readmes_result_is_the_recorded_one() -> None:
    recorded = json.loads(text(ROOT / "metrics/summary.json"))["medlama"]
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) % \| ([\d.]+) % \|$", text(PAGES[0]), re.MULTILINE)
    assert len(rows) == 3
    for method, *values in rows:
        expected = [f"{100 * recorded[model][method]:.1f}" for model in ("taught", "untaught")]
        assert values == expected, method
