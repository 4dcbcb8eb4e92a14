"""The suites of the builder `table` pass its tables, and find what is broken in them."""

import shutil
from pathlib import Path

import pytest

from helpers import ROOT
from helpers.broken_facts import FILES, ODD, ODD_WORDINGS, TABLES, WORDINGS
from helpers.broken_files import Damage, build, find_in_files
from helpers.broken_tables import Tables, failing, find_in_tables
from medprobe.gate import suites
from medprobe.gate.suites import Suite

Odd = dict[str, Damage]
SUITES = suites.load(ROOT / "expectations/table", ["queries", "candidates", "sources"], {})


@pytest.fixture(scope="module")
def built(sample_folder: Path) -> tuple[list[Suite], Tables]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(sample_folder)
        return build("table")


def test_sound_tables_pass_without_a_warning(built: tuple[list[Suite], Tables]) -> None:
    assert failing(*built) == []
    assert {suite.table for suite in SUITES} == set(built[1]), "a table without a suite"


@pytest.mark.parametrize("case", TABLES)
def test_what_is_broken_in_tables_is_found(built: tuple[list[Suite], Tables], case: str) -> None:
    find_in_tables(*built, TABLES[case])


@pytest.mark.parametrize(
    ("builder", "case"),
    [*(("table", case) for case in FILES), *(("wordings", case) for case in WORDINGS)],
)
def test_what_is_broken_in_files_is_found(sample_folder: Path, builder: str, case: str) -> None:
    find_in_files(builder, sample_folder / "data", (FILES | WORDINGS)[case])


@pytest.mark.parametrize(("builder", "odd"), [("table", ODD), ("wordings", ODD_WORDINGS)])
def test_files_that_are_odd_and_right_pass_in_silence(
    sample_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builder: str, odd: Odd
) -> None:
    """In all these ways at once."""
    shutil.copytree(sample_folder / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for change in odd.values():
        change(Path("data"))
    assert failing(*build(builder)) == []
