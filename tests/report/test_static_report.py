"""`reports/` is a folder of static pages that everybody may read."""

import getpass
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from helpers.toy_project import NAMED, NAMES, project, score_once
from medprobe.core import lineage, places
from medprobe.core.params import Params, ScoreParams
from medprobe.core.tables import Metadata
from medprobe.pipeline.stages.compare import compare


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
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a project, in which a person's name is recorded."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(getpass, "getuser", lambda: "ada-lovelace")
        project(folder, monkeypatch)
        about = places.ABOUT / "made_up.json"
        replace(Metadata.read(about), invented=False).write(about)  # as of a licensed source
        path = places.PREDICTIONS / "taught/contrastive/made_up.parquet"
        record = places.RUNS / "taught/contrastive/made_up.json"
        with lineage.recorded(record, path, {}):
            pass
        assert "ada-lovelace" in record.read_text()
        params = Params(score=ScoreParams(bootstrap=100), **NAMED)
        score_once(params)
        compare(params)
    return folder / places.REPORTS


def test_no_link_is_dead_and_nothing_is_loaded_from_elsewhere(reports: Path) -> None:
    pages = {path: Links(path) for path in reports.rglob("*.html")}
    assert {*pages} >= {reports / "index.html", reports / "queries/made_up.html"}
    for page, links in pages.items():
        for address in links.addresses - {"data:,"}:
            path, _, anchor = address.partition("#")
            assert "//" not in path, f"{page} {address}"
            target = (page.parent / path).resolve() if path else page
            assert target.is_file() and target.is_relative_to(reports), f"{page} {address}"
            if anchor and "?" not in anchor:
                assert anchor in pages[target].ids, f"{page} {address}"


def test_it_shows_no_name_of_the_benchmark_and_nobodys_login(reports: Path) -> None:
    files = [path for path in reports.rglob("*") if path.is_file()]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    assert "contrastive" in text
    assert not re.search("|".join(["ada-lovelace", r"drug \d", *NAMES]), text)
