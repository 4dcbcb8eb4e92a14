"""UMLS release files are read to the letter, and a bad line is named."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shards
from afar import afar
from medprobe.core.errors import BadInput
from medprobe.core.parts import Job, local
from medprobe.sources import rrf
from medprobe.sources.hierarchy import Hierarchy

CONCEPT = "C0000001|ENG|P|L1|PF|S1|Y|A1||||NCI|PT|X|{}|0|N||"
RELATION = "{}|A1|AUI|{}|{}|A2|AUI|{}|R1||NCI|NCI||Y|N||"


def write(folder: Path, name: str, *lines: str) -> Path:
    (folder / name).write_bytes("".join(line + "\n" for line in lines).encode())
    return folder


def names(folder: Path) -> list[str]:
    return rrf.mrconso(folder, ["STR"])["STR"].to_list()


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
    (row,) = rrf.mrrel(tmp_path, rrf.MRREL).to_dicts()
    assert (row["line"], row["CUI1"], row["CUI2"], row["RELA"]) == (1, "C1", "C2", "may_treat")
    assert list(row) == ["line", *rrf.MRREL]
    assert rrf.mrrel(tmp_path, [], relations=["may_treat"])["line"].to_list() == [1]
    assert rrf.mrrel(tmp_path, [], relations=["NCI", "may"]).height == 0
    write(tmp_path, "MRSTY.RRF", "C1|T047|B2.2.1.2.1|Disease or Syndrome|AT1||")
    assert rrf.mrsty(tmp_path, ["STY"])["STY"].to_list() == ["Disease or Syndrome"]


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
    expected = f"{tmp_path / 'MRCONSO.RRF'}, line 3: {problem}; fetch the file anew"
    assert str(error.value) == expected


def test_either_empty_cui_of_a_relation_is_named(tmp_path: Path) -> None:
    write(tmp_path, "MRREL.RRF", RELATION.format("C1", "RO", "", "may_treat"))
    with pytest.raises(BadInput, match="line 1: empty CUI2"):
        rrf.mrrel(tmp_path, ["CUI1"])


def test_bad_utf8_is_named(tmp_path: Path) -> None:
    good = CONCEPT.format("x").encode()
    (tmp_path / "MRCONSO.RRF").write_bytes(good + b"\n" + good.replace(b"x", b"\xe9") + b"\n")
    with pytest.raises(BadInput, match=r"MRCONSO.RRF, line 2: not UTF-8 at byte \d\d"):
        names(tmp_path)


@pytest.mark.parametrize(("suffix", "command"), [("", "cat"), (".gz", "zcat")])
def test_a_file_in_parts_is_put_together_first(tmp_path: Path, suffix: str, command: str) -> None:
    """A release that is not installed has large files so."""
    for part in ("aa", "ab"):
        (tmp_path / f"MRREL.RRF.{part}{suffix}").touch()
    whole = tmp_path / "MRREL.RRF"
    said = f"{whole}: is there in 2 parts; put them together: {command} {whole}.a* > {whole}"
    with pytest.raises(BadInput, match=f"^{re.escape(said)}$"):
        rrf.mrrel(tmp_path, ["CUI1"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"MRSTY.RRF: no such file"):
        rrf.mrsty(tmp_path, ["CUI"])


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
    assert rrf.preferred_names(tmp_path).rows() == [("C1", "fever")]
    assert rrf.english_names(tmp_path).rows() == [("C1", "pyrexia"), ("C1", "fever")]


def test_the_hierarchy_comes_from_both_directions(tmp_path: Path) -> None:
    rows = [("C1", "PAR", "C2", ""), ("C2", "CHD", "C1", "isa"), ("C2", "CHD", "C3", "")]
    rows += [("C1", "RO", "C4", ""), ("C5", "PAR", "C5", "")]
    write(tmp_path, "MRREL.RRF", *(RELATION.format(*row) for row in rows))
    tree = Hierarchy.read(tmp_path, "NCI")
    assert tree.descendants("C2") == {"C1", "C3"}
    assert not tree.descendants("C4") and not tree.descendants("C5")


SOME: Final = pl.col("STR").str.contains("[ab]")
CONCEPTS: Final = st.tuples(st.sampled_from(["C1", "C2", "C3"]), st.text("abü\r ", max_size=30))


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(CONCEPTS, min_size=1, max_size=9), shard=st.integers(20, 300), end=st.booleans()
)
def test_shards_give_what_the_whole_file_gives(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], shard: int, end: bool
) -> None:
    folder = tmp_path_factory.mktemp("umls")
    write(folder, "MRCONSO.RRF", *(CONCEPT.format(name).replace("C0000001", c) for c, name in rows))
    if not end:  # of the last line
        whole = (folder / "MRCONSO.RRF").read_bytes()
        (folder / "MRCONSO.RRF").write_bytes(whole[:-1])
    among = pl.DataFrame({"CUI": ["C3", "C1"]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rrf, "SHARD", shard)
        here, there = (
            rrf.mrconso(folder, ["STR", "CUI"], SOME, among, executor) for executor in (local, afar)
        )
    assert there.equals(here)
    wanted = [
        (i, name, c) for i, (c, name) in enumerate(rows, 1) if c != "C2" and {*name} & {*"ab"}
    ]
    assert here.rows() == wanted


@pytest.mark.parametrize("bad", [b"C1|too|few|", b"", b"\xe9"])
def test_a_bad_line_has_its_number_from_shards_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: bytes
) -> None:
    good = CONCEPT.format("x").encode()
    content = b"\n".join([*[good] * 7, bad, good, bad, good, b""])
    (tmp_path / "MRCONSO.RRF").write_bytes(content)
    said = []
    for executor, shard in ((local, 1), *((afar, shard) for shard in (20, 60, 150, 400))):
        monkeypatch.setattr(rrf, "SHARD", shard)
        with pytest.raises(BadInput, match=r"MRCONSO.RRF, line 8: ") as error:
            rrf.mrconso(tmp_path, ["CUI"], executor=executor)
        said.append(str(error.value))
    assert len(set(said)) == 1


def test_workers_need_no_file_and_small_files_go_to_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "MRCONSO.RRF", *(CONCEPT.format(name) for name in "abcd"))
    monkeypatch.setattr(rrf, "SHARD", 100)
    assert rrf.mrconso(Path(), ["STR"], executor=afar)["STR"].to_list() == [*"abcd"]
    monkeypatch.setattr(rrf, "SHARD", 1000)
    assert rrf.mrconso(Path(), ["STR"], executor=none)["STR"].to_list() == [*"abcd"]


def none(work: Callable[[Any], Any], jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
    raise AssertionError("nothing is to be done by workers")


@pytest.mark.parametrize("builder", shards.SETTINGS)
def test_benchmarks_are_the_same_from_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shards.write(builder)
    asked: list[str] = []

    def there(work: Callable[[Any], Any], jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
        asked.extend(job.name for job in jobs)
        return afar(work, jobs)

    assert shards.built(builder, there) == shards.built(builder, local)
    assert "data/umls/MRCONSO.RRF, part 2" in asked
