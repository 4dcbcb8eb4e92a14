"""The files of LAMA and LIPID: no reader crashes, and a broken source is noticed."""

import gzip
import random
from pathlib import Path

import pytest
from bench import broken_sources, gate
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import damage
from medprobe.core.errors import BadInput
from medprobe.papers.template_free import pubmed
from papers.template_free.readers import READERS, write_files

VERSION = b"""<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID Version="x">7</PMID>
</MedlineCitation></PubmedArticle></PubmedArticleSet>"""
LONG = VERSION.replace(b"</PMID>", b"</PMID><Article>" + b"x" * 10_100_000 + b"</Article>")
CASES = [
    ("LAMA's templates", b'{"relation": "P19"}', "line 1: no field 'template'"),
    ("LAMA's templates", b'{"relation": null, "template": ""}', "relation is empty"),
    (
        "PubMed",
        gzip.compress(VERSION, mtime=0),
        "record 1, PMID 7: version is 'x', expected a valid",
    ),
    ("PubMed", gzip.compress(LONG, mtime=0), "broken XML after record 0"),
]
BROKEN = [  # the cases that build fastest
    ("lama", "objects in lower case, sentences not"),
    ("lama", "slots of the templates exchanged"),
    ("lipid", "all articles retracted"),
    ("lipid", "all dates in the year 2099"),
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


def test_an_abstract_of_ten_million_characters_is_refused(tmp_path: Path) -> None:
    """libxml2's own bound, which nothing here lifts."""
    path = tmp_path / "a.xml"
    text = "x" * (10**7 + 1)
    path.write_text(f"<PubmedArticle><AbstractText>{text}</AbstractText></PubmedArticle>")
    with pytest.raises(BadInput, match="broken XML"):
        list(pubmed.read_records(path))


@pytest.mark.parametrize(("builder", "case"), BROKEN)
def test_a_broken_source_is_noticed(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch, builder: str, case: str
) -> None:
    monkeypatch.chdir(sample_folder)
    (outcome,) = gate.run_sources(builder, {case: broken_sources.SOURCES[builder][case]})
    assert outcome.verdict != "missed"


@pytest.mark.parametrize("builder", ["lama", "lipid"])
def test_odd_sources_that_are_right_pass_in_silence(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch, builder: str
) -> None:
    monkeypatch.chdir(sample_folder)
    outcomes = gate.run_sources(builder, broken_sources.ODDITIES[builder])
    assert [outcome for outcome in outcomes if outcome.verdict != "missed"] == []
