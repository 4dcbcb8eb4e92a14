"""Notes, articles and texts: no reader crashes, whatever a file holds."""

import gzip
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import damage
from medprobe.core.errors import BadInput
from medprobe.papers.context import articles, notes
from papers.context.readers import READERS, write_files

CASES = [
    (
        "zipped notes",
        gzip.compress(b"ROW_ID,ISERROR,TEXT\n", mtime=0)[:-9],
        "after line 1: broken gzip",
    ),
    ("notes", b'ROW_ID,ISERROR,TEXT\n1,,"a\nb"\n2,,"c', "line 4: not CSV: unexpected end"),
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


@pytest.mark.parametrize("reader", sorted({*READERS} - {"plain texts"}))
def test_an_empty_file_is_refused(data: Path, reader: str) -> None:
    """So that no source vanishes. A plain text is one of many; those left out are counted."""
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


@pytest.mark.parametrize("quote", [b"", b'"'])
def test_a_note_without_end_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quote: bytes
) -> None:
    """A small file may hold a gigabyte."""
    monkeypatch.setattr("medprobe.sources.records.LONGEST", 1000)
    path = tmp_path / "NOTEEVENTS.csv.gz"
    content = b'ROW_ID,ISERROR,TEXT\n1,0,"sound"\n2,0,' + quote + b"secret " * 10**6
    path.write_bytes(gzip.compress(content + quote, 1))
    seen = Counter[str]()
    with pytest.raises(BadInput, match=r"line [23]") as caught:
        list(notes.read(path, seen))
    assert "secret" not in str(caught.value)


def test_an_article_of_ten_million_characters_is_refused(tmp_path: Path) -> None:
    """libxml2's own bound, which nothing here lifts."""
    text = f"<PubmedArticle><article><p>{'x' * (10**7 + 1)}</p></article></PubmedArticle>"
    (tmp_path / "a.xml").write_text(text)
    with pytest.raises(BadInput, match="broken XML"):
        list(articles.read(tmp_path, Counter()))
