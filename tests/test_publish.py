"""`medprobe publish`: pages that everybody may read, of one project and of several."""

import getpass
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from medprobe.cli import main
from medprobe.core import places
from medprobe.core.params import Params, ScoreParams
from medprobe.core.tables import Metadata
from medprobe.stages.significance import significance
from medprobe.tracking import lineage
from toy_project import NAMED, NAMES, project, score_once

PAGES = {"index.html", "results.json", "comparison.csv", "README.md", ".nojekyll"}
PARAMS = """seed: 1
engine: {precision: float32}
rewire: {}
score: {}
track: {text: true}
models: {masked: {taught: {}, untaught: {}}}
benchmarks: {table: {made_up: {facts: tables/facts.csv, prompts: tables/prompts.csv}}}
methods: {masked: {contrastive: {made_up: {}}}}
"""


class Links(HTMLParser):
    """The addresses that a page refers to, and those that it loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: set[str] = set()
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses |= {value for name, value in attrs if name in ("href", "src") and value}
        self.ids |= {value for name, value in attrs if name == "id" and value}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose parameters show texts, with the pages `site` of it, and pages of merges."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(getpass, "getuser", lambda: "ada-lovelace")
        project(folder, monkeypatch)
        Path("params.yaml").write_text(PARAMS)
        about = places.ABOUT / "made_up.json"
        replace(Metadata.read(about), invented=False).write(about)  # as of a licensed source
        path = places.PREDICTIONS / "taught/contrastive/made_up.parquet"
        with lineage.recorded(places.RUNS / "taught/contrastive/made_up.json", path, {}):
            pass
        params = Params(score=ScoreParams(bootstrap=50), **NAMED)
        score_once(params)
        significance(params)
        for command in (["site"], ["again", "site"], ["one", "site", "."]):
            result = CliRunner().invoke(main, ["publish", *command])
            assert result.exit_code == 0, result.output
    return folder


def run(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", "from medprobe.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("site", ["site", "again", "one"])
def test_the_folder_has_pages_results_and_a_workflow(home: Path, site: str) -> None:
    files = {str(path.relative_to(home / site)) for path in (home / site).rglob("*")}
    assert files >= PAGES | {".github/workflows/pages.yml"}
    assert "made_up" in (home / site / "README.md").read_text()
    assert ("queries/made_up.html" in files) == (site == "site")
    assert "units/taught/contrastive/made_up.parquet" in files


@pytest.mark.parametrize("site", ["site", "one"])
def test_no_link_is_dead_and_nothing_is_loaded_from_elsewhere(home: Path, site: str) -> None:
    pages = {path: Links(path) for path in (home / site).rglob("*.html")}
    assert pages
    for page, links in pages.items():
        for address in links.addresses - {"data:,"}:
            path, _, anchor = address.partition("#")
            assert "//" not in path, f"{page} {address}"
            target = (page.parent / path).resolve() if path else page
            assert target.is_file(), f"{page} {address}"
            if anchor and "?" not in anchor:
                assert anchor in pages[target].ids, f"{page} {address}"


@pytest.mark.parametrize("site", ["site", "one"])
def test_it_shows_no_name_of_the_benchmark_and_nobodys_login(home: Path, site: str) -> None:
    page_text = "".join(
        path.read_text(encoding="utf-8")
        for path in (home / site).rglob("*")
        if path.suffix in (".html", ".js", ".csv", ".json", ".md", ".svg")
    )
    assert "contrastive" in page_text
    assert "ada-lovelace" in (home / places.RUNS / "taught/contrastive/made_up.json").read_text()
    assert not re.search("|".join(["ada-lovelace", r"drug \d", *NAMES]), page_text)


def test_results_of_several_have_the_numbers_of_one(home: Path) -> None:
    merged = (home / "one/comparison.csv").read_text()
    assert merged == (home / "again/comparison.csv").read_text()
    assert "0" in merged and (home / "one/units").is_dir()


def test_a_folder_that_is_there_is_left_alone(home: Path) -> None:
    process = run(home, "publish", "site")
    assert process.returncode == 2
    assert process.stderr == "Error: site: already exists; choose another folder\n"
