"""No reader crashes, whatever a file holds: it gives a table, or refuses in one line."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import damage
from helpers.reader_tests import ReaderTests
from medprobe.core.errors import BadInput, without_quotes
from medprobe.sources.records import Record, read_json_records, read_objects, validate


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


TRIPLE = {
    **dict(uuid="u", predicate_id="r", sub_label="a", sub_uri="A", obj_labels=["b"]),
    **dict(obj_uris=["B"], obj_types=[], obj_aliases=[[]]),
}


def triple(**changes: object) -> bytes:
    return json.dumps(TRIPLE | changes).encode()


CASES = [
    ("triples", triple(obj_labels="abc"), "obj_labels is 'abc', expected a valid list"),
    ("triples", triple(obj_labels=["b", None], obj_uris=["B"]), "obj_uris must be as long"),
    ("triples", triple(obj_uris=[]), "obj_uris is empty"),
    ("triples", triple(obj_labels=None), "obj_labels is empty"),
    ("triples", triple(obj_labels=[7]), "obj_labels.0 is a number, expected a valid string"),
    ("triples", triple(obj_labels=[{}]), "obj_labels.0 is an object, expected"),
    ("triples", triple(obj_aliases=["abc"]), "obj_aliases.0 is 'abc', expected a valid list"),
    ("triples", triple(sub_label="\u200b \t"), "sub_label is '\\u200b \\t', expected visible"),
    ("triples", triple(sub_label="a\0"), "expected visible text"),
    ("facts in csv", b"", "facts.csv: empty"),
    ("facts in csv", b'[{"subject": "a"}]', "line 1: JSON or HTML, not CSV; save or download"),
    ("facts in csv", b'[\n{"subject": "a"}\n]', "line 1: JSON or HTML, not CSV"),
    ("facts in csv", b"<!DOCTYPE html><p>Not found", "line 1: JSON or HTML, not CSV"),
    ("facts in csv", b"subjekt,relation,object\na,b,c\n", "line 2: no field 'subject'"),
    ("facts in csv", b"subject,relation,object\na,b,\xe9\n", "line 2: not UTF-8 at byte 28"),
    ("facts in csv", b"subject,subject\na,b\n", "line 1: two columns have the same name"),
    (
        *("facts in csv", b"subject,relation,object,obj_label\na,b,c,d\n"),
        "line 2: 'object' and 'obj_label' are one field; leave one of them",
    ),
    ("facts in csv", b"subject|relation|object\na|b|c\n", "by commas, not by bars"),
    ("facts in csv", "subject,relation\n".encode("utf-16-le"), "in UTF-16; save it as UTF-8"),
]


class TestReaders(ReaderTests):
    readers = damage.READERS
    cases = CASES


def test_a_file_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file; get it"):
        list(read_objects(tmp_path / "rows.jsonl", "get it"))


@given(st.dictionaries(st.from_regex(r"secret[a-z]{1,9}", fullmatch=True), st.text(), min_size=1))
def test_a_file_without_a_header_shows_none_of_its_first_row(row: dict[str, str]) -> None:
    """Its texts are then the names of columns."""
    with without_quotes(), pytest.raises(BadInput) as caught:
        validate("facts.csv, line 2", row, Row)
    assert not any(text in str(caught.value) for text in row)
