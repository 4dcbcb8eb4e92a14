"""Notes, articles and texts: no reader crashes, whatever a file holds."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from helpers.reader_tests import ReaderTests
from medprobe.core.errors import BadInput
from medprobe.papers.context import articles, notes
from papers.context.readers import READERS, write_files

CASES = [
    (
        "zipped notes",
        gzip.compress(b"ROW_ID,ISERROR,TEXT\n", mtime=0)[:-9],
        "after line 1: broken gzip",
    ),
    ("notes", b'ROW_ID,ISERROR,TEXT\n1,,"a\nb"\n2,,"c', "a quotation mark is never closed"),
]


class TestReaders(ReaderTests):
    readers = READERS
    cases = CASES
    may_be_empty = ("plain texts",)  # one of many; those left out are counted
    write_files = staticmethod(write_files)


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
