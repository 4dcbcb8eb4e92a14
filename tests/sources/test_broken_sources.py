"""Broken files below data/ are refused, stopped or warned of; odd ones that are right pass."""

from pathlib import Path

import pytest
from bench import broken_sources, gate

BROKEN = {  # the benchmarks that build fastest
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
    "lama": ["objects in lower case, sentences not", "slots of the templates exchanged"],
    "lipid": ["all articles retracted", "all dates in the year 2099"],
    "diskne": ["labels exchanged in one split of MedNLI"],
    "medlama": [
        "MRREL cut in half, with MRFILES.RRF",
        "CUI1 and CUI2 of MRREL exchanged",
        "names of another language alone",
        "half of the relations withdrawn",
    ],
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        gate.write_data()
    return folder


@pytest.mark.parametrize(
    ("builder", "case"), [(builder, case) for builder, cases in BROKEN.items() for case in cases]
)
def test_a_broken_source_is_noticed(
    world: Path, monkeypatch: pytest.MonkeyPatch, builder: str, case: str
) -> None:
    monkeypatch.chdir(world)
    (outcome,) = gate.run_sources(builder, {case: broken_sources.SOURCES[builder][case]})
    assert outcome.verdict != "missed"


@pytest.mark.parametrize("builder", [name for name in broken_sources.ODDITIES if name != "context"])
def test_odd_sources_that_are_right_pass_in_silence(
    world: Path, monkeypatch: pytest.MonkeyPatch, builder: str
) -> None:
    monkeypatch.chdir(world)
    outcomes = gate.run_sources(builder, broken_sources.ODDITIES[builder])
    assert [outcome for outcome in outcomes if outcome.verdict != "missed"] == []
