"""BioLAMA's files: broken ones are noticed, odd ones pass. Its reader is the kernel's."""

from pathlib import Path

import pytest
from bench import broken_sources, gate

BROKEN = [
    "subjects shifted by one row",
    "ids of subjects shifted by one row",
    "test facts in train under a brand name",
]


@pytest.mark.parametrize("case", BROKEN)
def test_a_contradiction_within_the_files_stops(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(sample_folder)
    (outcome,) = gate.run_sources("biolama", {case: broken_sources.SOURCES["biolama"][case]})
    assert outcome.verdict == "stopped"


def test_odd_sources_that_are_right_pass_in_silence(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample_folder)
    outcomes = gate.run_sources("biolama", broken_sources.ODDITIES["biolama"])
    assert [outcome for outcome in outcomes if outcome.verdict != "missed"] == []
