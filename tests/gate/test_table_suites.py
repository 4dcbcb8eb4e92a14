"""The suites of the builder `table` pass its tables; each expectation of the kernel that they have
fails on a table that is broken for it."""

from pathlib import Path

import pytest

from helpers import ROOT
from helpers.broken_tables import MUTATIONS, Tables
from helpers.gate_helpers import check_mutation
from helpers.own_table import own_table
from medprobe.gate import run as gate
from medprobe.gate import suites

SUITES = suites.load(ROOT / "expectations/table", ["queries", "candidates", "sources"], {})
OURS = sorted({entry.type for suite in SUITES for entry in suite.entries} & {*MUTATIONS})


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    monkeypatch.chdir(tmp_path)
    return own_table()


def test_sound_tables_pass_without_a_warning(tables: Tables) -> None:
    reports = gate.run(SUITES, tables, text=True)
    assert [check for report in reports for check in report["checks"] if not check["success"]] == []
    assert {suite.table for suite in SUITES} == set(tables), "a table without a suite"


@pytest.mark.parametrize("name", OURS)
def test_an_expectation_passes_a_sound_table_and_reports_what_breaks_it(
    tables: Tables, name: str
) -> None:
    entries = [
        (suite, number)
        for suite in SUITES
        for number, entry in enumerate(suite.entries)
        if entry.type == name
    ]
    suite, number = min(entries, key=lambda entry: "mostly" in entry[0].entries[entry[1]].kwargs)
    check_mutation(tables, suite, number, MUTATIONS[name])


def of_a_table(objects: list[str], rows: int = 36) -> dict[str, str]:
    """The expectations that fail where the first rows of a table have these objects."""
    reports = gate.run(SUITES, own_table(objects, at_most=rows), text=True)
    failing = [check for report in reports for check in report["checks"] if not check["success"]]
    return {check["type"]: check["severity"] for check in failing}


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objects: list[str], failing: set[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = of_a_table(objects)
    assert {*found} - {"expect_relations_to_have_several_answers"} >= failing
    assert bool(failing) == bool(found)
    assert set(found.values()) <= {"warning"}


def test_two_odd_names_of_twenty_stop_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = of_a_table(["Anemia; iron deficiency", "ratio a<b;c\u00a0"], rows=20)
    assert found == {"expect_names_to_be_whole": "warning"}
