"""The suites of the builder `table` pass its tables, and find what is broken in them."""

import csv
import shutil
from pathlib import Path

import pytest

from helpers import ROOT
from helpers.broken_facts import FILES, ODD, ODD_WORDINGS, TABLES, WORDINGS
from helpers.broken_files import build, find_in_files
from helpers.broken_tables import Tables, failing, find_in_tables
from medprobe.benchmarks import table
from medprobe.gate import suites
from medprobe.gate.suites import Suite

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


@pytest.mark.parametrize(
    ("builder", "case"),
    [*(("table", case) for case in ODD), *(("wordings", case) for case in ODD_WORDINGS)],
)
def test_files_that_are_odd_and_right_pass_in_silence(
    sample_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builder: str, case: str
) -> None:
    shutil.copytree(sample_folder / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    (ODD | ODD_WORDINGS)[case](Path("data"))
    assert failing(*build(builder)) == []


def of_a_table(objects: list[str], rows: int = 36) -> dict[str, str]:
    """The expectations that fail where the first rows of a table have these objects."""
    Path("data/tables").mkdir(parents=True)
    facts = [
        [f"drug {n}", relation, f"ailment {(n + shift) % 12}", f"drug {n} {relation} [Y] ."]
        for shift, relation in enumerate(("treats", "prevents", "causes"))
        for n in range(12)
    ][:rows]
    for row, name in zip(facts, objects, strict=False):
        row[2] = name
    with Path("data/tables/facts.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["subject", "relation", "object", "prompt"], *facts])
    made = table.build(Path("data"), table.Settings(facts=Path("tables/facts.csv")), 0)
    checks = failing(
        SUITES, {"queries": made.queries, "candidates": made.candidates, **made.others}
    )
    return {check["type"]: check["severity"] for check in checks}


@pytest.mark.parametrize(
    ("objects", "failing"),
    [
        (["Anemia; iron deficiency"], set()),
        (["Sep-15"], set()),
        (["gout;fever", "gout|fever"], {"expect_names_to_be_whole"}),
        (["fe\u0301ver\u200b", "cystic \ufb01brosis"], {"expect_names_to_be_whole"}),
        (["unknown"], {"expect_names_to_name_something"}),
        (["=A2&B2"], {"expect_names_to_name_something"}),
        (["drug 0"], {"expect_answers_not_to_be_the_subject"}),
        (
            [f"ailment {number} (finding)" for number in range(36)],
            {"expect_texts_to_have_no_frame"},
        ),
    ],
)
def test_how_a_name_looks_warns_from_a_share_and_a_count_on(
    working_folder: Path, objects: list[str], failing: set[str]
) -> None:
    found = of_a_table(objects)
    assert {*found} - {"expect_relations_to_have_several_answers"} >= failing
    assert bool(failing) == bool(found)
    assert set(found.values()) <= {"warning"}


def test_two_odd_names_of_twenty_stop_nothing(working_folder: Path) -> None:
    found = of_a_table(["Anemia; iron deficiency", "ratio a<b;c\u00a0"], rows=20)
    assert found == {"expect_names_to_be_whole": "warning"}
