"""MedLAMA's files: no reader crashes, whatever one holds, and a broken source is noticed."""

from pathlib import Path

import pytest
from bench import broken_sources, gate

from helpers.reader_tests import ReaderTests
from papers.medlama.readers import READERS, write_files

BROKEN = [  # the cases that build fastest
    "MRREL cut in half, with MRFILES.RRF",
    "CUI1 and CUI2 of MRREL exchanged",
    "names of another language alone",
    "half of the relations withdrawn",
]


class TestReaders(ReaderTests):
    readers = READERS
    may_be_empty = ("sentences",)  # the gate tells of them
    write_files = staticmethod(write_files)
    test_what_was_a_crash_or_silent_is_one_line = None  # none is known


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_source_is_noticed(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(sample_folder)
    (outcome,) = gate.run_sources("medlama", {case: broken_sources.SOURCES["medlama"][case]})
    assert outcome.verdict != "missed"


def test_odd_sources_that_are_right_pass_in_silence(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample_folder)
    outcomes = gate.run_sources("medlama", broken_sources.ODDITIES["medlama"])
    assert [outcome for outcome in outcomes if outcome.verdict != "missed"] == []
