"""MedLAMA's files: no reader crashes, whatever one holds, and a broken source is noticed."""

import random
from pathlib import Path

import pytest
from bench import broken_sources, gate
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import damage
from papers.medlama.readers import READERS, write_files

BROKEN = [  # the cases that build fastest
    "MRREL cut in half, with MRFILES.RRF",
    "CUI1 and CUI2 of MRREL exchanged",
    "names of another language alone",
    "half of the relations withdrawn",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "data"
    damage.write_world(folder)
    write_files(folder)
    return folder


@pytest.mark.parametrize("reader", READERS)
def test_a_sound_file_is_read(data: Path, reader: str) -> None:
    READERS[reader][1](data)


@pytest.mark.parametrize("reader", READERS)
def test_a_damaged_file_is_read_or_refused_in_one_line(data: Path, reader: str) -> None:
    @settings(settings.get_profile("few"), derandomize=True, database=None)
    @given(seed=st.integers(0, 2**32))
    def check_seed(seed: int) -> None:
        rng = random.Random(seed)
        assert damage.try_reader(data, READERS[reader], rng) in ("read", "refused")

    check_seed()


@pytest.mark.parametrize("reader", sorted({*READERS} - {"sentences"}))
def test_an_empty_file_is_refused(data: Path, reader: str) -> None:
    """So that no relation vanishes. Of sentences the gate tells."""
    assert damage.find_refusal_of_nothing(data, READERS[reader])


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
