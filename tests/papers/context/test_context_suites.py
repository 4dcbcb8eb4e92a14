"""Steps of contexts that say something wrong, and the checks of the gate that derive it again."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from helpers import ROOT
from medprobe.gate import run as gate
from medprobe.gate import suites
from medprobe.papers.context.benchmarks import context
from papers.context.test_context import sample

Tables = dict[str, pd.DataFrame]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tables, suites.Suite]:
    """The tables of the sample world's contexts, and the suite of their steps."""
    data, _, settings = sample(tmp_path_factory.mktemp("sample"))
    few = settings.model_copy(update={"triples": 4, "documents": 1})
    built = context.build(data, few, seed=1)
    chosen = few.model_dump(mode="json")
    loaded = suites.load(ROOT / "expectations/context", ["queries"], chosen)
    [suite] = [suite for suite in loaded if suite.table == "queries"]
    return {"queries": built.queries, "candidates": built.candidates, **built.others}, suite


def _exchanged(column: str, first: str, second: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    values = {first: second, second: first}
    return lambda rows: rows.assign(**{column: rows[column].replace(values)})


def _once(column: str, where: str, value: object) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def change(rows: pd.DataFrame) -> pd.DataFrame:
        rows = rows.copy()
        rows.loc[rows.query(where).index[0], column] = value
        return rows

    return change


FAULTS = {  # changes of the steps of contexts, and the check that stops each
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


@pytest.mark.parametrize("fault", FAULTS)
def test_what_ucm_is_computed_from_is_derived_again(
    sound: tuple[Tables, suites.Suite], fault: str
) -> None:
    tables, suite = sound
    change, check = FAULTS[fault]
    chosen = [number for number, entry in enumerate(suite.entries) if entry.type == check]
    single = replace(
        suite,
        entries=[suite.entries[number] for number in chosen],
        expectations=[suite.expectations[number] for number in chosen],
    )
    [report] = gate.run([single], tables, text=False)
    assert report["success"]
    [report] = gate.run([single], {**tables, "queries": change(tables["queries"])}, text=False)
    assert not report["success"]
