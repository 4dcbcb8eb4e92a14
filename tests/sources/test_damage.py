"""No reader crashes, whatever a file holds: it gives a table, or refuses in one line."""

import gzip
import json
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import damage
from medprobe.core.errors import BadInput
from medprobe.papers.context import articles, notes
from medprobe.papers.template_free import pubmed
from medprobe.sources.records import Record, read_json_records, read_objects

EMPTY = {  # those that read a file without content, and what tells of it
    "plain texts",  # one of many: the count of documents left out
    "sentences",  # the gate
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "data"
    damage.write_world(folder)
    return folder


@pytest.mark.parametrize("reader", damage.READERS)
def test_a_sound_file_is_read(data: Path, reader: str) -> None:
    damage.READERS[reader][1](data)


@pytest.mark.parametrize("reader", damage.READERS)
def test_a_damaged_file_is_read_or_refused_in_one_line(data: Path, reader: str) -> None:
    @settings(settings.get_profile("few"), derandomize=True, database=None)
    @given(seed=st.integers(0, 2**32))
    def check_seed(seed: int) -> None:
        assert damage.try_reader(data, reader, random.Random(seed)) in ("read", "refused")

    check_seed()


@pytest.mark.parametrize("reader", sorted(damage.READERS.keys() - EMPTY))
def test_an_empty_file_is_refused(data: Path, reader: str) -> None:
    """So that no relation, set or source vanishes."""
    path = damage.find_target_file(data, reader)
    sound = path.read_bytes()
    try:
        path.write_bytes(gzip.compress(b"") if path.suffix == ".gz" else b"")
        with pytest.raises(BadInput) as caught:
            damage.READERS[reader][1](data)
    finally:
        path.write_bytes(sound)
        shutil.rmtree(data.parent / "cache", ignore_errors=True)
    assert path.name in str(caught.value)


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
        (b'{"name": "\xff"}', "line 2: not UTF-8 at byte 24"),
        (b'{"name": 7}', "line 2: name is a number, expected a valid string"),
        (b'{"name": ["secret"]}', "line 2: name is a list, expected a valid string"),
        (b'{"other": "secret"}', "line 2: no field 'name'"),
        (b'{"name": "' + b"x" * 100 + b'"}', "line 2: longer than 100 bytes"),
    ],
)
def test_a_line_of_json_is_refused_with_file_line_and_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: bytes, says: str
) -> None:
    if b"xxx" in line:
        monkeypatch.setattr("medprobe.sources.records.LONGEST", 100)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"name": "a"}\n' + line + b"\n")
    with pytest.raises(BadInput) as caught:
        list(read_json_records(path, Row, "get it"))
    assert f"rows.jsonl, {says}" in str(caught.value)
    assert "secret" not in str(caught.value)


NOTE = b'{"pairID": "p", "sentence1": "a", "sentence2": "b", "gold_label": "neutral"}'
TRIPLE = {
    **dict(uuid="u", predicate_id="r", sub_label="a", sub_uri="A", obj_labels=["b"]),
    **dict(obj_uris=["B"], obj_types=[], obj_aliases=[[]]),
}
VERSION = b"""<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID Version="x">7</PMID>
</MedlineCitation></PubmedArticle></PubmedArticleSet>"""
LONG = VERSION.replace(b"</PMID>", b"</PMID><Article>" + b"x" * 10_100_000 + b"</Article>")


def triple(**changes: object) -> bytes:
    return json.dumps(TRIPLE | changes).encode()


CASES = [
    ("LAMA's templates", b'{"relation": "P19"}', "line 1: no field 'template'"),
    ("LAMA's templates", b'{"relation": null, "template": ""}', "relation is empty"),
    ("BioLAMA", triple(obj_labels="abc"), "obj_labels is 'abc', expected a valid list"),
    ("BioLAMA", triple(obj_labels=["b", None], obj_uris=["B"]), "obj_uris must be as long"),
    ("BioLAMA", triple(obj_uris=[]), "obj_uris is empty"),
    ("BioLAMA", triple(obj_labels=None), "obj_labels is empty"),
    ("BioLAMA", triple(obj_labels=[7]), "obj_labels.0 is a number, expected a valid string"),
    ("BioLAMA", triple(obj_labels=[{}]), "obj_labels.0 is an object, expected"),
    ("BioLAMA", triple(obj_aliases=["abc"]), "obj_aliases.0 is 'abc', expected a valid list"),
    (
        "BioLAMA",
        triple(sub_label="\u200b \t"),
        "sub_label is '\\u200b \\t', expected visible",
    ),
    ("BioLAMA", triple(sub_label="a\0"), "expected visible text"),
    ("MedNLI", NOTE.replace(b'"p"', b'["p"]'), "line 1: pairID is a list, expected a valid"),
    ("MedNLI", NOTE + b"\n\n" + NOTE + b"\xff", "line 3: not UTF-8 at byte 154"),
    ("MEDIQA", b"pair_id,label\n" + b"x" * 200_000 + b",neutral\n", "a text of 200,000"),
    ("MEDIQA", b"pair_id,label\n" + b"x" * 5_000_000 + b",neutral\n", "line 2: not CSV: field"),
    ("the annotation", b"", "annotation.csv: empty"),
    ("the annotation", b"pair_id\n\xe9\n", "line 1: no column 'premise'"),
    ("cui2vec", b'"","V1"\n', "line 1: expected a header, then one concept per line"),
    ("cui2vec", b"C0000001,1\nC0000002,0\n", "line 1: expected a header, then one"),
    (
        "PubMed",
        gzip.compress(VERSION, mtime=0),
        "record 1, PMID 7: version is 'x', expected a valid",
    ),
    ("PubMed", gzip.compress(LONG, mtime=0), "broken XML after record 0"),
    ("facts in csv", b"", "facts.csv: empty"),
    ("facts in csv", b"subjekt,relation,object\na,b,c\n", "line 2: no field 'subject'"),
    ("facts in csv", b"subject,relation,object\na,b,\xe9\n", "line 2: not UTF-8 at byte 28"),
    ("facts in csv", b"subject,subject\na,b\n", "line 1: two columns have the same name"),
    (
        "zipped notes",
        gzip.compress(b"ROW_ID,ISERROR,TEXT\n", mtime=0)[:-9],
        "after line 1: broken gzip",
    ),
    ("notes", b'ROW_ID,ISERROR,TEXT\n1,,"a\nb"\n2,,"c', "line 4: not CSV: unexpected end"),
]


@pytest.mark.parametrize(
    ("reader", "content", "says"), CASES, ids=[f"{case[0]}: {case[2]}" for case in CASES]
)
def test_what_was_a_crash_or_silent_is_one_line(
    data: Path, reader: str, content: bytes, says: str
) -> None:
    path = damage.find_target_file(data, reader)
    sound = path.read_bytes()
    try:
        path.write_bytes(content)
        with pytest.raises(BadInput) as caught:
            damage.READERS[reader][1](data)
    finally:
        path.write_bytes(sound)
    assert says in str(caught.value) and path.name in str(caught.value)
    assert len(str(caught.value)) < 400


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


@pytest.mark.parametrize("tag", ["AbstractText", "p"])
def test_a_text_of_ten_million_characters_is_refused(tmp_path: Path, tag: str) -> None:
    """libxml2's own bound, which nothing here lifts."""
    path = tmp_path / "a.xml"
    text = f"<PubmedArticle><article><{tag}>{'x' * (10**7 + 1)}</{tag}></article></PubmedArticle>"
    path.write_text(text)
    with pytest.raises(BadInput, match="broken XML"):
        list(articles.read(tmp_path, Counter()) if tag == "p" else pubmed.read_records(path))


def test_a_file_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file; get it"):
        list(read_objects(tmp_path / "rows.jsonl", "get it"))
