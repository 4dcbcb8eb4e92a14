"""Broken tables of facts are refused, stopped or warned of; odd ones that are right pass."""

from pathlib import Path

import pytest
from bench import broken_sources, gate

BROKEN = {
    "table": [
        "one relation in another case",
        "ids in scientific notation",
        "one id for all objects",
        "one id for all subjects",
        "two objects in one cell",
        "a relation copied under another name",
    ],
    "wordings": [
        "a wording of another relation",
        "a wording with slots exchanged",
        "two wordings that differ in a blank",
    ],
}


@pytest.mark.parametrize(
    ("builder", "case"), [(builder, case) for builder, cases in BROKEN.items() for case in cases]
)
def test_a_broken_source_is_noticed(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch, builder: str, case: str
) -> None:
    monkeypatch.chdir(sample_folder)
    (outcome,) = gate.run_sources(builder, {case: broken_sources.SOURCES[builder][case]})
    assert outcome.verdict != "missed"


@pytest.mark.parametrize("builder", BROKEN)
def test_odd_sources_that_are_right_pass_in_silence(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch, builder: str
) -> None:
    monkeypatch.chdir(sample_folder)
    outcomes = gate.run_sources(builder, broken_sources.ODDITIES[builder])
    assert [outcome for outcome in outcomes if outcome.verdict != "missed"] == []
