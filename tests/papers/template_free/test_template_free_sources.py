"""The files of LAMA and LIPID: no reader crashes."""

import gzip
from pathlib import Path

import pytest

from helpers.reader_tests import ReaderTests
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


class TestReaders(ReaderTests):
    readers = READERS
    cases = CASES
    write_files = staticmethod(write_files)


def test_an_abstract_of_ten_million_characters_is_refused(tmp_path: Path) -> None:
    """libxml2's own bound, which nothing here lifts."""
    path = tmp_path / "a.xml"
    text = "x" * (10**7 + 1)
    path.write_text(f"<PubmedArticle><AbstractText>{text}</AbstractText></PubmedArticle>")
    with pytest.raises(BadInput, match="broken XML"):
        list(pubmed.read_records(path))
