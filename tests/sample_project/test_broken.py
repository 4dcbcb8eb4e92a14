"""Every suite passes on sound data, and finds what is broken in them."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers import ROOT, broken_facts
from helpers.broken_files import Damage, build, find_in_files
from helpers.broken_tables import Cases, failing, find_in_tables
from helpers.package_names import own_names
from medprobe import benchmarks
from medprobe.gate import checks, suites
from medprobe.gate.suites import Suite
from papers.biolama import broken as biolama
from papers.context import broken as context
from papers.diskne import broken as diskne
from papers.medlama import broken as medlama
from papers.template_free import broken as template_free
from sample_project.sound_tables import BUILT, BuiltTables, make

EXPECTATIONS = ROOT / "expectations"
TABLES: dict[str, Cases] = {
    "medlama": medlama.TABLES,
    "biolama": biolama.TABLES,
    "lama": template_free.LAMA_TABLES,
    "lipid": template_free.LIPID_TABLES,
    "context": context.TABLES,
    "diskne": diskne.TABLES,
    "diskne_released": diskne.RELEASED,
}
FILES: dict[str, Cases] = {
    "medlama": medlama.FILES,
    "biolama": biolama.FILES,
    "lama": template_free.LAMA_FILES,
    "lipid": template_free.LIPID_FILES,
    "context": context.FILES,
    "diskne": diskne.FILES,
}
ODD: dict[str, dict[str, Damage]] = {
    "medlama": medlama.ODD,
    "biolama": biolama.ODD,
    "lama": template_free.LAMA_ODD,
    "lipid": template_free.LIPID_ODD,
    "context": context.ODD,
    "diskne": diskne.ODD,
}


@pytest.fixture(scope="module")
def built_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltTables]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("world"))
        yield make()


@pytest.fixture(scope="module")
def loaded(built_tables: BuiltTables) -> dict[tuple[str, str], Suite]:
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
    assert failing(chosen, tables) == []
    if builder in BUILT:
        assert {suite.table for suite in chosen} == set(tables), "a table without a suite"


@pytest.mark.parametrize(
    ("builder", "case"), [(builder, case) for builder, cases in TABLES.items() for case in cases]
)
def test_what_is_broken_in_tables_is_found(
    built_tables: BuiltTables, loaded: dict[tuple[str, str], Suite], builder: str, case: str
) -> None:
    chosen = [suite for (of, _), suite in loaded.items() if of == builder]
    find_in_tables(chosen, built_tables[builder][0], TABLES[builder][case])


@pytest.mark.full
@pytest.mark.parametrize(
    ("builder", "case"), [(builder, case) for builder, cases in FILES.items() for case in cases]
)
def test_what_is_broken_in_files_is_found(sample_folder: Path, builder: str, case: str) -> None:
    find_in_files(builder, sample_folder / "data", FILES[builder][case])


@pytest.mark.full
@pytest.mark.parametrize("builder", ODD)
def test_files_that_are_odd_and_right_pass_in_silence(
    sample_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builder: str
) -> None:
    """In all these ways at once."""
    shutil.copytree(sample_folder / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for change in ODD[builder].values():
        change(Path("data"))
    assert failing(*build(builder)) == []


def test_every_expectation_of_ours_is_in_a_case() -> None:
    lists = [*TABLES.values(), *FILES.values(), broken_facts.TABLES, broken_facts.FILES]
    lists.append(broken_facts.WORDINGS)
    tried = {
        f"expect_{check}" for cases in lists for case in cases.values() for check in case.checks
    }
    assert set(checks.expectations) <= tried


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


def test_what_a_check_of_rows_reads_is_never_missing(loaded: dict[tuple[str, str], Suite]) -> None:
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
