"""Clinical notes: what is read, what is left out, and how broken files are named."""

import csv
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from medprobe.core.errors import BadInput
from medprobe.papers.context import notes
from medprobe.papers.context.texts import Document


def row(number: int, text: str, error: str = "") -> list[str]:
    return [str(number), "7", "8", "2150-01-02", "", "", "Report", "Report", "1", error, text]


def write(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([notes.COLUMNS, *rows])
    return path


def test_a_note_keeps_its_quotes_and_loses_its_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "NOTEEVENTS.csv", [row(1, 'He says "it hurts".\n\nNo   fever,\nok.')])
    note = Document("1", 'He says "it hurts". No fever, ok.', "Report")
    assert list(notes.read(path, Counter())) == [note]


def test_errors_and_empty_notes_are_counted(tmp_path: Path) -> None:
    rows = [row(1, "kept"), row(2, "wrong", error="1"), row(3, " \n ")]
    skipped: Counter[str] = Counter()
    notes_read = list(notes.read(write(tmp_path / "notes.csv", rows), skipped))
    assert [note.id for note in notes_read] == ["1"]
    assert skipped == {"marked as an error": 1, "empty": 1}


@pytest.mark.parametrize("flag", ["1", "1.0", "t", "True", " 1", "yes"])
def test_a_flag_is_read_by_its_meaning(tmp_path: Path, flag: str) -> None:
    rows = [row(1, "wrong", error=flag)]
    rows += [row(2 + n, "kept", error=x) for n, x in enumerate(("", "0", "0.0", "nan", "False"))]
    skipped: Counter[str] = Counter()
    documents = list(notes.read(write(tmp_path / "notes.csv", rows), skipped))
    assert [document.text for document in documents] == ["kept"] * 5
    assert skipped == {"marked as an error": 1}


def test_a_flag_without_meaning_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "notes.csv", [row(1, "text", error="maybe")])
    with pytest.raises(BadInput, match=r"line 2: ISERROR is .*, expected 1 or 0"):
        list(notes.read(path, Counter()))


def test_columns_in_lower_case_are_read(tmp_path: Path) -> None:
    """As MIMIC-III's demo has them."""
    path = write(tmp_path / "notes.csv", [row(1, "one"), row(2, "wrong", error="1")])
    expected, skipped = list(notes.read(path, Counter())), Counter[str]()
    header, _, rest = path.read_text("utf-8").partition("\n")
    path.write_text(f"{header.lower()}\n{rest}", encoding="utf-8")
    assert list(notes.read(path, skipped)) == expected == [Document("1", "one", "Report")]
    assert skipped == {"marked as an error": 1}


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "folders"])
@pytest.mark.parametrize("edition", ["III", "IV"])
def test_both_editions_of_mimic_are_read_in_each_form(
    tmp_path: Path, edition: str, form: str
) -> None:
    columns = {"ROW_ID": ["1", "2"], "CATEGORY": ["Radiology"] * 2, "ISERROR": [None, 1.0]}
    if edition == "IV":
        columns = {"note_id": ["1", "2-RR-1"], "note_type": ["RR"] * 2}
    name = "TEXT" if edition == "III" else "text"
    table = pd.DataFrame({**columns, "subject_id": [7, 8], name: ["first", "second"]})
    path = tmp_path / f"notes.{form}"
    if form == "folders":
        table.to_parquet(path, partition_cols=["CATEGORY" if edition == "III" else "note_type"])
    else:
        table.to_parquet(path) if form == "parquet" else table.to_csv(path, index=False)
    expected = [Document("1", "first", "Radiology"), Document("2-RR-1", "second", "Radiology")]
    assert list(notes.read(path, Counter())) == expected[: 1 if edition == "III" else 2]


def test_blank_lines_between_records_are_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path / "notes.csv", [row(1, "one"), row(2, "two")])
    path.write_text(path.read_text("utf-8").replace('"2"', '\n"2"'), encoding="utf-8")
    assert [note.id for note in notes.read(path, Counter())] == ["1", "2"]


@pytest.mark.parametrize(
    ("old", "new", "record"),
    [
        ('"second secret"', '"second "secret"', "line 4"),  # a quote inside, not doubled
        ('"third secret"', '"third secret', "line 5"),  # never closed
        ('"second secret"', 'x","second secret"', "line 4"),  # a field too many
    ],
)
def test_a_broken_record_is_named_and_not_shown(
    tmp_path: Path, old: str, new: str, record: str
) -> None:
    rows = [row(1, "first\nsecret"), row(2, "second secret"), row(3, "third secret")]
    path = write(tmp_path / "notes.csv", rows)
    path.write_text(path.read_text("utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(BadInput, match=f"notes.csv, {record}") as error:
        list(notes.read(path, Counter()))
    assert "secret" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_noteevents_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text("id,body\n1,x\n", encoding="utf-8")
    with pytest.raises(BadInput, match="line 1: no column 'ROW_ID'"):
        list(notes.read(path, Counter()))
    with pytest.raises(BadInput, match="no such file"):
        list(notes.read(tmp_path / "none.csv", Counter()))
