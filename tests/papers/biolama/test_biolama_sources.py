"""BioLAMA's files: odd ones that are right pass in silence. Its reader is the kernel's."""

from pathlib import Path

import pytest
from bench import broken_sources, gate


def test_odd_sources_that_are_right_pass_in_silence(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample_folder)
    outcomes = gate.run_sources("biolama", broken_sources.ODDITIES["biolama"])
    assert [outcome for outcome in outcomes if outcome.verdict != "missed"] == []
