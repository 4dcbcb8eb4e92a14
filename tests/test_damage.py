"""No reader crashes, whatever a file holds: it gives a table, or refuses in one line."""

import csv
import gzip
import random
from collections import Counter
from pathlib import Path

import pytest
from bench import damage
from hypothesis import given, settings
from hypothesis import strategies as st

from medprobe.core.errors import BadInput
from medprobe.sources import articles, notes, pubmed
from medprobe.sources.jsonl import Record, objects, records


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "data"
    damage.world(folder)
    return folder


@pytest.mark.parametrize("reader", damage.READERS)
def test_a_sound_file_is_read(data: Path, reader: str) -> None:
    damage.READERS[reader][1](data)


@pytest.mark.parametrize("reader", damage.READERS)
def test_a_damaged_file_is_read_or_refused_in_one_line(data: Path, reader: str) -> None:
    @settings(max_examples=25, deadline=None, derandomize=True, database=None)
    @given(seed=st.integers(0, 2**32))
    def one(seed: int) -> None:
        assert damage.tried(data, reader, random.Random(seed)) in ("read", "refused")

    one()


class Row(Record):
    name: str


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"name": "a"', "line 2: not JSON: EOF"),
        (b"[1]", "line 2: not a JSON object"),
        (b'{"name": ' + b"[" * 200_000, "line 2: not JSON: recursion limit exceeded"),
        (b'{"name": "\\ud800"}', "line 2: not JSON"),
        (b'{"name": NaN}', "line 2: not JSON"),
        (b'{"name": "\xff"}', "line 2: not JSON"),
        (b'{"name": 7}', "line 2: name: Input should be a valid string"),
        (b'{"name": ["secret"]}', "line 2: name: Input should be a valid string"),
        (b'{"other": "secret"}', "line 2: name: Field required"),
        (b'{"name": "' + b"x" * 100 + b'"}', "line 2: longer than 100 bytes"),
    ],
)
def test_a_line_of_json_is_refused_with_file_line_and_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: bytes, says: str
) -> None:
    if b"xxx" in line:
        monkeypatch.setattr("medprobe.sources.jsonl.LONGEST", 100)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"name": "a"}\n' + line + b"\n")
    with pytest.raises(BadInput) as caught:
        list(records(path, Row, "get it"))
    assert f"rows.jsonl, {says}" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("quote", [b"", b'"'])
def test_a_note_without_end_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quote: bytes
) -> None:
    """A small file may hold a gigabyte."""
    monkeypatch.setattr("medprobe.sources.notes.LONGEST_NOTE", 1000)
    path = tmp_path / "NOTEEVENTS.csv.gz"
    content = b'ROW_ID,ISERROR,TEXT\n1,0,"sound"\n2,0,' + quote + b"secret " * 10**6
    path.write_bytes(gzip.compress(content + quote, 1))
    seen = Counter[str]()
    before = csv.field_size_limit()
    try:
        with pytest.raises(BadInput, match=r"record [23] ") as caught:
            list(notes.read(path, seen))
    finally:
        csv.field_size_limit(before)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("tag", ["AbstractText", "p"])
def test_a_text_of_ten_million_characters_is_refused(tmp_path: Path, tag: str) -> None:
    """libxml2's own bound, which nothing here lifts."""
    path = tmp_path / "a.xml"
    text = f"<PubmedArticle><article><{tag}>{'x' * (10**7 + 1)}</{tag}></article></PubmedArticle>"
    path.write_text(text)
    with pytest.raises(BadInput, match="broken XML"):
        list(articles.read(tmp_path, Counter()) if tag == "p" else pubmed.records(path))


def test_a_file_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file; get it"):
        list(objects(tmp_path / "rows.jsonl", "get it"))
