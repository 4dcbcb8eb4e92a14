"""Every suite passes on sound tables; each expectation of ours fails on a table that is broken for
it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers import ROOT, broken_tables
from helpers.broken_tables import drop
from helpers.gate_helpers import check_mutation
from helpers.package_names import own_names
from medprobe import benchmarks
from medprobe.gate import run as gate
from medprobe.gate import suites
from medprobe.gate.suites import Suite
from papers.biolama import broken_tables as biolama
from papers.context import broken_tables as context
from papers.diskne import broken_tables as diskne
from papers.medlama import broken_tables as medlama
from papers.template_free import broken_tables as template_free
from sample_project.sound_tables import BUILT, BuiltTables, make

EXPECTATIONS = ROOT / "expectations"
BROKEN = (broken_tables, biolama, context, diskne, medlama, template_free)
MUTATIONS = {name: mutation for module in BROKEN for name, mutation in module.MUTATIONS.items()}


@pytest.fixture(scope="module")
def built_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltTables]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("world"))
        yield make()


@pytest.fixture(scope="module")
def loaded(
    built_tables: BuiltTables,
) -> dict[tuple[str, str], Suite]:
    """All suites of their own, by builder and table."""
    return {
        (builder, suite.table): suite
        for builder, (_, settings) in built_tables.items()
        for suite in suites.load(EXPECTATIONS / builder, [], {**settings, "negatives": 4})
    }


@pytest.mark.parametrize(
    "builder", [*BUILT, "medlama_released", "lipid_released", "diskne_released", "sentences"]
)
def test_sound_tables_pass_without_a_warning(
    built_tables: BuiltTables,
    loaded: dict[tuple[str, str], Suite],
    builder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables, _ = built_tables[builder]
    if builder in own_names("benchmarks"):  # the gate reads what dvc.yaml names, and no other file
        for source in benchmarks.find(builder).gate_sources:
            (tmp_path / "data" / source).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "data" / source).symlink_to(Path("data", source).resolve())
        monkeypatch.chdir(tmp_path)
    chosen = [suite for (of, table), suite in loaded.items() if of == builder and table in tables]
    reports = gate.run(chosen, tables, text=True)
    failed = [check for report in reports for check in report["checks"] if not check["success"]]
    assert failed == []
    if builder in BUILT:
        assert {suite.table for suite in chosen} == set(tables), "a table without a suite"


def test_every_builder_has_its_suites() -> None:
    for builder in own_names("benchmarks"):
        tables = {path.stem for path in (EXPECTATIONS / builder).glob("*.json")}
        assert {"queries", "candidates", "sources"} <= tables, builder


def test_a_suite_like_another_one_has_its_checks() -> None:
    for path in EXPECTATIONS.glob("*/*.json"):
        if like := json.loads(path.read_text()).get("like"):
            base = json.loads((EXPECTATIONS / like).read_text())
            assert base["expectations"], path
            assert (EXPECTATIONS / like).parent in suites.folders(path.parent), path


def test_what_a_check_of_rows_reads_is_never_missing(
    loaded: dict[tuple[str, str], Suite],
) -> None:
    """Such a check skips rows in which a value is missing, so that another one has to report it."""
    for path, suite in loaded.items():
        held = {
            entry.kwargs["column"]
            for entry in suite.entries
            if entry.type == "expect_column_values_to_not_be_null" and entry.severity == "critical"
        }
        for entry in suite.entries:
            if entry.type != "expect_compound_columns_to_be_unique":
                assert set(entry.kwargs.get("column_list", [])) <= held, (path, entry)


@pytest.mark.parametrize("name", MUTATIONS)
def test_an_expectation_passes_a_sound_table_and_reports_what_breaks_it(
    built_tables: BuiltTables, loaded: dict[tuple[str, str], Suite], name: str
) -> None:
    entries = [
        (builder, suite, number)
        for (builder, _), suite in loaded.items()
        for number, entry in enumerate(suite.entries)
        if entry.type == name
    ]
    builder, suite, number = min(
        entries, key=lambda entry: "mostly" in entry[1].entries[entry[2]].kwargs
    )
    tables = {name: rows.reset_index(drop=True) for name, rows in built_tables[builder][0].items()}
    if suite.table == "splits":  # to look for leaks takes time
        few = tables["splits"]["target"].isin(tables["splits"]["target"].unique()[:2])
        drop(tables, "splits", ~few)
    check_mutation(tables, suite, number, MUTATIONS[name])


def test_every_expectation_of_ours_is_tried(loaded: dict[tuple[str, str], Suite]) -> None:
    from medprobe.gate import checks

    assert set(MUTATIONS) == set(checks.expectations)
