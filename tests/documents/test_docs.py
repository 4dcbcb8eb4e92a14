"""The documents tell the truth: their code runs; their commands, paths, settings, links exist."""

import functools
import itertools
import re
import shlex
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from bench import folder_pages
from bench import reference as generated

from helpers import ROOT
from helpers.needed import NEEDED
from medprobe.cli import main
from medprobe.core import places
from medprobe.core.params import Params
from medprobe.core.plugins import find_plugins
from medprobe.core.settings import parse_section
from medprobe.papers.medlama import rewired
from medprobe.pipeline import check

FOLDER_PAGES = folder_pages.list_pages()
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted({*(ROOT / "docs").rglob("*.md")} - {generated.PAGE}),
    *FOLDER_PAGES,
]
EXTENDING = ROOT / "docs/how-to/extending.md"
PROJECT_FOLDERS = ("data", "outputs", "reports", "metrics", "mlruns", ".venv")

CONTEXT = click.Context(main)


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a language, those in lists included."""
    fenced = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text(page), re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(content) for name, content in fenced if name == language]


def words(page: Path) -> list[str]:
    """What stands between backticks, code blocks aside."""
    prose = re.sub(r"^ *```.*?^ *```$", "", text(page), flags=re.DOTALL | re.MULTILINE)
    return [re.sub(r"\s+", " ", word) for word in re.findall(r"`([^`]+)`", prose)]


def typed(page: Path) -> Iterator[list[str]]:
    """All commands of a page, in words, without the variables that are set before them."""
    scripts = [*blocks(page, ""), *blocks(page, "bash")]
    lines = [line for script in scripts for line in script.replace("\\\n", " ").splitlines()]
    for line in [*lines, *words(page)]:
        command = re.sub(r"^([A-Z_]+=\S* )+", "", line.partition("#")[0].strip())
        if re.match(r"(medprobe|dvc|make)\b [a-z-]|python -m bench\.", command):
            yield shlex.split(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_links_paths_and_settings_of_a_page_exist(
    page: Path, working_folder: Path
) -> None:
    check_commands(page)
    check_links(page)
    check_paths(page)
    if page != EXTENDING:  # held against the code as params.yaml is
        written = settings(page)
        rest = NEEDED | {"methods": {kind: {} for kind in written.get("models", {})}}
        check.check(parse_section(Params, merged(rest, written), page.name))


def check_commands(page: Path) -> None:
    """Every command exists and takes its arguments."""
    names_the_past = page.name == "CHANGELOG.md"
    for program, *arguments in typed(page):
        if program == "make":
            targets = re.findall(r"^([a-z-]+):", text(ROOT / "Makefile"), re.MULTILINE)
            assert arguments[0] in targets, arguments
        elif program == "python" and not names_the_past:
            assert (ROOT / arguments[1].replace(".", "/")).with_suffix(".py").is_file(), arguments
        elif program == "medprobe":
            command = main.get_command(CONTEXT, arguments[0])
            if names_the_past and not command:
                continue
            assert command, f"medprobe {arguments[0]}"
            if isinstance(command, click.Group) and len(arguments) > 1 and arguments[1] != "WHAT":
                if names_the_past and arguments[1] not in command.list_commands(CONTEXT):
                    continue
                command = command.get_command(CONTEXT, arguments[1])
                assert command, f"medprobe {arguments[0]} {arguments[1]}"
                arguments = arguments[1:]  # noqa: PLW2901
            known_options = {name for param in command.params for name in param.opts}
            options = {word.partition("=")[0] for word in arguments if word.startswith("--")}
            assert options <= known_options | {"--help"}, arguments
            if len(arguments) > 1:  # `medprobe track` alone is a name, and may be
                context = click.Context(command, info_name=arguments[0])
                command.parse_args(context, arguments[1:])  # raises UsageError


def test_every_command_stands_in_a_document() -> None:
    documented = {arguments[1] for page in PAGES for arguments in typed(page) if len(arguments) > 1}
    by_hand = {
        name
        for name in main.list_commands(CONTEXT)
        if (command := main.get_command(CONTEXT, name))
        and command.callback
        and name.replace("-", "_") not in {*find_plugins("stages"), "check", "code"}
    }
    assert by_hand and by_hand <= documented


def check_paths(page: Path) -> None:
    roots = {path.name for path in ROOT.iterdir()}
    folders = [vars(module) for module in (places, rewired)]
    made_paths = [str(path) for names in folders for name, path in names.items() if name.isupper()]
    for word in words(page):
        if not re.fullmatch(r"[\w.*<>{}@/-]+", word) or "/" not in word:
            continue
        first = word.split("/")[0]
        if page in FOLDER_PAGES and (page.parent / word).exists():  # relative to its folder
            continue
        if first in PROJECT_FOLDERS:
            ours = [path for path in made_paths if word.startswith(path) or path.startswith(word)]
            assert ours or word.startswith(("mlruns/", "reports/", ".venv")), word
        elif first in roots and "<" not in word:
            example = first == "plugins" or (page == EXTENDING and "side_effects" in word)
            assert example or [*ROOT.glob(word.rstrip("/"))], word


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", text(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def check_links(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", text(page)):
        if not link.startswith(("https://", "mailto:")):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            assert target.exists(), link
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


def tried(page: Path) -> Iterator[list[str]]:
    """The settings of each `dvc exp run` of a page, and those that its text names alone."""
    alone = [shlex.split(word) for word in words(page) if word.startswith("-S ")]
    runs = [command for command in typed(page) if command[:3] == ["dvc", "exp", "run"]]
    for command in [*runs, *alone]:
        yield [value for flag, value in itertools.pairwise(command) if flag == "-S"]


def test_experiments_set_what_can_be_set() -> None:
    """In the project's own params.yaml."""
    for overrides in itertools.chain.from_iterable(map(tried, PAGES)):
        params = yaml.safe_load(text(ROOT / "params.yaml"))
        for override in overrides:
            keys, _, value = override.partition("=")
            is_new = keys.startswith("+")
            *parents, last = keys.lstrip("+").split(".")
            section = functools.reduce(dict.__getitem__, parents, params)
            assert is_new == (last not in section), f"{override}: DVC refuses it"
            section[last] = yaml.safe_load(value)
        check.check(parse_section(Params, params, "params.yaml"))


def test_git_ignores_what_is_licensed() -> None:
    """By the table of files."""
    table = text(ROOT / "docs/reference/files.md").partition("| path | content | in git |")[2]
    rows = re.findall(r"^\| `([^`]+)`[^|]*\|.*\| (yes|no) \|$", table, re.MULTILINE)
    files = {path: f"{path}x" if path.endswith("/") else path for path, _ in rows}
    command = ["git", "check-ignore", "--no-index", *files.values()]
    ignored = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = [
        (path, "no" if file in ignored.splitlines() else "yes") for path, file in files.items()
    ]
    assert rows and found == rows
