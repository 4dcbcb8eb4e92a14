"""DisKnE's files: no reader crashes, whatever one holds, and a broken source is noticed."""

import random
from pathlib import Path

import pytest
from bench import broken_sources, gate
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import damage
from papers.diskne.readers import READERS, write_files

NOTE = b'{"pairID": "p", "sentence1": "a", "sentence2": "b", "gold_label": "neutral"}'
CASES = [
    ("MedNLI", NOTE.replace(b'"p"', b'["p"]'), "line 1: pairID is a list, expected a valid"),
    ("MedNLI", NOTE + b"\n\n" + NOTE + b"\xff", "line 3: not UTF-8 at byte 154"),
    ("MEDIQA", b"pair_id,label\n" + b"x" * 200_000 + b",neutral\n", "a text of 200,000"),
    ("MEDIQA", b"pair_id,label\n" + b"x" * 5_000_000 + b",neutral\n", "line 2: not CSV: field"),
    ("the annotation", b"", "annotation.csv: empty"),
    ("the annotation", b"pair_id\n\xe9\n", "line 1: no column 'premise'"),
    ("cui2vec", b'"","V1"\n', "line 1: expected a header, then one concept per line"),
    ("cui2vec", b"C0000001,1\nC0000002,0\n", "line 1: expected a header, then one"),
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


@pytest.mark.parametrize("reader", READERS)
def test_an_empty_file_is_refused(data: Path, reader: str) -> None:
    """So that no relation, set or source vanishes."""
    assert damage.find_refusal_of_nothing(data, READERS[reader])


@pytest.mark.parametrize(
    ("reader", "content", "says"), CASES, ids=[f"{case[0]}: {case[2]}" for case in CASES]
)
def test_what_was_a_crash_or_silent_is_one_line(
    data: Path, reader: str, content: bytes, says: str
) -> None:
    refusal = damage.find_refusal(data, READERS[reader], content)
    assert says in refusal
    assert len(refusal) < 400


def test_a_broken_source_is_noticed(sample_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = "labels exchanged in one split of MedNLI"
    monkeypatch.chdir(sample_folder)
    (outcome,) = gate.run_sources("diskne", {case: broken_sources.SOURCES["diskne"][case]})
    assert outcome.verdict != "missed"


def test_odd_sources_that_are_right_pass_in_silence(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample_folder)
    outcomes = gate.run_sources("diskne", broken_sources.ODDITIES["diskne"])
    assert [outcome for outcome in outcomes if outcome.verdict != "missed"] == []
