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
