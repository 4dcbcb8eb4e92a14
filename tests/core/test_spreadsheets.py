"""CSV files for people: a spreadsheet computes nothing of them, and they are read as they were."""

import re
from io import StringIO
from pathlib import Path

import pandas as pd
from hypothesis import example, given
from hypothesis import strategies as st

from medprobe.core.plugins import ROOT
from medprobe.core.spreadsheets import csv_text, escape_formula, read_csv
from medprobe.metrics.results import write_csv

STARTS = ["=", "+", "-", "@", "\t", "\r", " =", "\N{FULLWIDTH EQUALS SIGN}", "'", "''=", ""]
NOT_FOR_PEOPLE = {  # numbers alone, no file, or a sheet that is read back to the letter
    *("core/spreadsheets.py", "pipeline/stages/score.py", "pipeline/stages/probe.py"),
    *("papers/diskne/annotation.py", "papers/medlama/stages/rewire.py"),
}
texts = st.builds("".join, st.tuples(st.sampled_from(STARTS), st.text(max_size=9)))


@given(texts)
@example("-2")
@example("=cmd|' /C calc'!A0")
def test_no_text_is_a_formula(text: str) -> None:
    cell = escape_formula(text)
    if cell != text:
        assert cell == f"'{text}"
    elif re.match(r"[\t\r]|\s*[=+\-@]", text):
        float(text)  # a number, which stays one


@given(st.lists(texts.filter(str.strip), min_size=1, max_size=4))
def test_a_table_is_read_as_it_was(cells: list[str]) -> None:
    table = pd.DataFrame({"=relation": cells, "value": [-1.5] * len(cells)})
    text = csv_text(table)
    assert not re.search(r"^\"?[\t\r=@]", text, re.MULTILINE)
    stream = StringIO(text, newline="")
    read = read_csv(stream, dtype={"'=relation": str}, keep_default_na=False)
    assert read["value"].tolist() == table["value"].tolist()
    assert read["=relation"].tolist() == cells


def test_reports_hold_no_formula(tmp_path: Path) -> None:
    table = pd.DataFrame({"relation": ["=1+1", "@SUM(1+1)", "-2+3", "treats"], "value": -0.25})
    write_csv(table, tmp_path / "reports.csv")
    lines = (tmp_path / "reports.csv").read_text().splitlines()
    assert lines[1:] == ["'=1+1,-0.25", "'@SUM(1+1),-0.25", "'-2+3,-0.25", "treats,-0.25"]
    pd.testing.assert_frame_equal(read_csv(tmp_path / "reports.csv"), table)


def test_every_csv_file_for_people_is_written_so() -> None:
    files = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")}
    writing = {name for name in files if ".to_csv(" in (ROOT / name).read_text()}
    assert writing == NOT_FOR_PEOPLE & files  # of the papers that are there
