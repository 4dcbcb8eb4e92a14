"""Every suite passes on sound tables; each expectation of ours fails on a table that is broken for
it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from helpers import ROOT
from helpers.broken_tables import MUTATIONS, drop
from helpers.package_names import own_names
from helpers.sound_tables import BUILT, BuiltTables, make
from medprobe import benchmarks
from medprobe.gate import run as gate
from medprobe.gate import suites
from medprobe.gate.suites import Suite

EXPECTATIONS = ROOT / "expectations"


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
    entry = suite.entries[number]
    tables = {name: rows.reset_index(drop=True) for name, rows in built_tables[builder][0].items()}
    if suite.table == "splits":  # to look for leaks takes time
        few = tables["splits"]["target"].isin(tables["splits"]["target"].unique()[:2])
        drop(tables, "splits", ~few)
    single = replace(suite, entries=[entry], expectations=[suite.expectations[number]])
    [[sound]] = [report["checks"] for report in gate.run([single], tables, text=True)]
    assert sound["success"]
    MUTATIONS[name](tables, suite.table, entry.kwargs)
    [[broken]] = [report["checks"] for report in gate.run([single], tables, text=True)]
    assert broken["failing"] > 0
    assert not broken["success"]


def _exchanged(column: str, first: str, second: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    values = {first: second, second: first}
    return lambda rows: rows.assign(**{column: rows[column].replace(values)})


def _once(column: str, where: str, value: object) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def change(rows: pd.DataFrame) -> pd.DataFrame:
        rows = rows.copy()
        rows.loc[rows.query(where).index[0], column] = value
        return rows

    return change


CONTEXT_FAULTS = {  # changes of the steps of contexts, and the check that stops each
    "a correct object called incorrect": (
        _once("added_role", "added_role == 'correct'", "incorrect"),
        "expect_roles_to_follow_ids",
    ),
    "an incorrect entity called correct": (
        _once("added_role", "added_role == 'incorrect'", "correct"),
        "expect_roles_to_follow_ids",
    ),
    "targets called correct": (
        lambda rows: rows.assign(added_role=rows["added_role"].replace("target", "correct")),
        "expect_roles_to_follow_ids",
    ),
    "centres exchanged": (
        _exchanged("centre", "target", "negative"),
        "expect_centres_to_follow_ids",
    ),
    "one kind called another": (
        _once("kind", "kind == 'knowledge-random' and step == 4", "knowledge-only"),
        "expect_layouts_to_follow_kinds",
    ),
    "kinds only and sorted": (
        _exchanged("kind", "knowledge-only", "knowledge-sorted"),
        "expect_layouts_to_follow_kinds",
    ),
    "kinds random and sorted": (
        _exchanged("kind", "knowledge-random", "knowledge-sorted"),
        "expect_layouts_to_follow_kinds",
    ),
    "kinds real and only": (
        _exchanged("kind", "knowledge-only", "real"),
        "expect_layouts_to_follow_kinds",
    ),
    "one object each": (lambda rows: rows.assign(objects=1), "expect_objects_to_be_counted"),
    "rare objects": (lambda rows: rows.assign(frequency=1), "expect_objects_to_be_counted"),
    "frequent objects": (
        lambda rows: rows.assign(frequency=10**6),
        "expect_objects_to_be_counted",
    ),
}


@pytest.mark.parametrize("fault", CONTEXT_FAULTS)
def test_what_ucm_is_computed_from_is_derived_again(
    built_tables: BuiltTables, loaded: dict[tuple[str, str], Suite], fault: str
) -> None:
    change, check = CONTEXT_FAULTS[fault]
    tables = dict(built_tables["context"][0])
    tables["queries"] = change(tables["queries"])
    suite = loaded["context", "queries"]
    chosen = [number for number, entry in enumerate(suite.entries) if entry.type == check]
    single = replace(
        suite,
        entries=[suite.entries[number] for number in chosen],
        expectations=[suite.expectations[number] for number in chosen],
    )
    [report] = gate.run([single], tables, text=False)
    assert not report["success"]


def test_every_expectation_of_ours_is_tried(loaded: dict[tuple[str, str], Suite]) -> None:
    from medprobe.gate import checks

    assert set(MUTATIONS) == set(checks.expectations)
