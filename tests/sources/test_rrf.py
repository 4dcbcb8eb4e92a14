"""UMLS release files are read to the letter, and a bad line is named."""

import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medprobe.core.errors import BadInput
from medprobe.sources import rrf

CONCEPT = "C0000001|ENG|P|L1|PF|S1|Y|A1||||NCI|PT|X|{}|0|N||"
RELATION = "{}|A1|AUI|{}|{}|A2|AUI|{}|R1||NCI|NCI||Y|N||"


def write(folder: Path, name: str, *lines: str) -> Path:
    (folder / name).write_bytes("".join(line + "\n" for line in lines).encode())
    return folder


def names(folder: Path) -> list[str]:
    return rrf.read_mrconso(folder, ["STR"])["STR"].to_list()


def test_hostile_names_are_kept_to_the_letter(tmp_path: Path) -> None:
    hostile = ['a "quoted" word', '"open', "NA", "None", "null", "", " blank ", "#no comment"]
    hostile += [
        "line\u2028separator",
        "next\x85line",
        "tab\there",
        "a,b;c",
        "naïve 疾患",
        "\\N",
        "r\r",
    ]
    write(tmp_path, "MRCONSO.RRF", *(CONCEPT.format(name) for name in hostile))
    assert names(tmp_path) == hostile


@given(
    st.lists(
        st.text(st.characters(exclude_characters="|\n", exclude_categories=["Cs"])), min_size=1
    )
)
def test_any_names_come_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("umls")
    write(folder, "MRCONSO.RRF", *(CONCEPT.format(text) for text in texts))
    assert names(folder) == texts


def test_lines_and_fields_are_numbered_and_named(tmp_path: Path) -> None:
    write(tmp_path, "MRREL.RRF", RELATION.format("C1", "RO", "C2", "may_treat"))
    (row,) = rrf.read_mrrel(tmp_path, rrf.MRREL).to_dicts()
    assert (row["line"], row["CUI1"], row["CUI2"], row["RELA"]) == (1, "C1", "C2", "may_treat")
    assert list(row) == ["line", *rrf.MRREL]
    assert rrf.read_mrrel(tmp_path, [], relations=["may_treat"])["line"].to_list() == [1]
    assert rrf.read_mrrel(tmp_path, [], relations=["NCI", "may"]).height == 0
    write(tmp_path, "MRSTY.RRF", "C1|T047|B2.2.1.2.1|Disease or Syndrome|AT1||")
    assert rrf.read_mrsty(tmp_path, ["STY"])["STY"].to_list() == ["Disease or Syndrome"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (CONCEPT.format("x")[:-1], "17 fields ending in |, expected 18"),
        (CONCEPT.format("x").replace("|ENG", ""), "17 fields ending in |, expected 18"),
        (CONCEPT.format("x|y"), "19 fields ending in |, expected 18"),
        ("", "0 fields ending in |, expected 18"),
        (CONCEPT.format("x")[8:], "empty CUI"),
        (CONCEPT.format("x") + "y", "the last field does not end in |"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    good = CONCEPT.format("x")
    write(tmp_path, "MRCONSO.RRF", good, good, line, good, line)
    with pytest.raises(BadInput) as error:
        names(tmp_path)
    expected = f"{tmp_path / 'MRCONSO.RRF'}, line 3: {problem}; download the file again"
    assert str(error.value) == expected


def mostly(*values: str) -> st.SearchStrategy[str]:
    """The first value nine times in ten."""
    return st.sampled_from([*values[:1] * 9 * len(values[1:]), *values[1:]])


@given(
    st.lists(
        st.tuples(
            mostly("C1", "", "C1|"),
            st.sampled_from(["RO", "may_treat"]),
            mostly("C2", "", "may_treat"),
            st.sampled_from(["may_treat", "", "may_treat_x", "r\r"]),
            mostly("", "x", "|"),
        )
    )
)
def test_rows_and_refusals_are_those_of_a_plain_reader(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]]
) -> None:
    """The engine searches whole lines for a relation and splits few; all lines are checked."""
    lines = [RELATION.format(*row) + end for *row, end in [("C1", "RO", "C2", "", ""), *rows]]
    folder = write(tmp_path_factory.mktemp("umls"), "MRREL.RRF", *lines)
    expected, problem = [], None
    for number, line in enumerate(lines, 1):
        *fields, end = line.split("|")
        if len(fields) != 16:
            problem = f"{len(fields)} fields ending in |, expected 16"
        elif end:
            problem = "the last field does not end in |"
        elif not (fields[0] and fields[4]):
            problem = f"empty {'CUI2' if fields[0] else 'CUI1'}"
        if problem:
            break
        if fields[7] == "may_treat" and fields[4] == "C2":
            expected.append((number, fields[0], fields[15]))
    try:
        read = rrf.read_mrrel(folder, ["CUI1", "CVF"], pl.col("CUI2") == "C2", ["may_treat"])
    except BadInput as error:
        where = f"{folder / 'MRREL.RRF'}, line {number}"
        assert str(error) == f"{where}: {problem}; download the file again"
    else:
        assert (read.rows(), problem) == (expected, None)


@pytest.mark.parametrize(("suffix", "command"), [("", "cat"), (".gz", "zcat")])
def test_a_file_in_parts_is_put_together_first(tmp_path: Path, suffix: str, command: str) -> None:
    """A release that is not installed has large files so."""
    for part in ("aa", "ab"):
        (tmp_path / f"MRREL.RRF.{part}{suffix}").touch()
    whole = tmp_path / "MRREL.RRF"
    message = f"{whole}: exists only in 2 parts; join them: {command} {whole}.a* > {whole}"
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        rrf.read_mrrel(tmp_path, ["CUI1"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"MRSTY.RRF: no such file"):
        rrf.read_mrsty(tmp_path, ["CUI"])


def test_preferred_and_english_names(tmp_path: Path) -> None:
    rows = [
        "C1|FRE|P|L|PF|S|Y|A1||||NCI|PT|X|fièvre|0|N||",
        "C1|ENG|S|L|PF|S|Y|A2||||NCI|SY|X|pyrexia|0|N||",
        "C1|ENG|P|L|PF|S|Y|A3||||NCI|PT|X|fever|0|N||",
        "C1|ENG|S|L|VO|S|Y|A4||||MSH|SY|X|pyrexia|0|N||",
        "C1|ENG|S|L|VO|S|Y|A5||||MSH|SY|X|febris|0|O||",
        "C2|ENG|P|L|PF|S|Y|A6||||NCI|PT|X|retired|0|O||",
    ]
    write(tmp_path, "MRCONSO.RRF", *rows)
    assert rrf.read_preferred_names(tmp_path).rows() == [("C1", "fever")]
    assert rrf.read_english_names(tmp_path).rows() == [("C1", "fever"), ("C1", "pyrexia")]


@pytest.mark.parametrize("end", ["\n", ""])
def test_rows_are_chosen_by_an_expression_and_among_others(tmp_path: Path, end: str) -> None:
    rows = [("C1", "ab"), ("C2", "a"), ("C3", "x"), ("C3", ""), ("C1", "b"), ("C3", "a")]
    lines = [CONCEPT.format(name).replace("C0000001", cui) for cui, name in rows]
    (tmp_path / "MRCONSO.RRF").write_text("\n".join(lines) + end)
    among = pl.DataFrame({"CUI": ["C3", "C1"]})
    chosen = rrf.read_mrconso(tmp_path, ["STR", "CUI"], pl.col("STR").str.contains("[ab]"), among)
    assert chosen.rows() == [(1, "ab", "C1"), (5, "b", "C1"), (6, "a", "C3")]
