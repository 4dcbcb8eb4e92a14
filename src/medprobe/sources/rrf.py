"""UMLS release files (RRF): MRCONSO (names), MRREL (relations), MRSTY (semantic types).

RRF has no quoting: `|` alone separates fields (and ends the last one), `\\n` alone ends a line, and
any value is text, also `NA`, `"`, or an empty field. Files are read as a stream and only what a
query asks for is kept, so that a full release needs minutes and a few GiB at most.

Source: UMLS Reference Manual, chapter "Metathesaurus, Rich Release Format".
"""

from pathlib import Path
from typing import Final

import polars as pl

from medprobe.errors import BadInput

# fmt: off
MRCONSO: Final = [
    "CUI", "LAT", "TS", "LUI", "STT", "SUI", "ISPREF", "AUI", "SAUI", "SCUI", "SDUI", "SAB", "TTY",
    "CODE", "STR", "SRL", "SUPPRESS", "CVF",
]
MRREL: Final = [
    "CUI1", "AUI1", "STYPE1", "REL", "CUI2", "AUI2", "STYPE2", "RELA", "RUI", "SRUI", "SAB", "SL",
    "RG", "DIR", "SUPPRESS", "CVF",
]
MRSTY: Final = ["CUI", "TUI", "STN", "STY", "ATUI", "CVF"]
# fmt: on


def scan_mrconso(folder: Path) -> pl.LazyFrame:
    """Every row of `folder/MRCONSO.RRF`: its 18 fields as text, and its `line` number from 1.

    Raises BadInput with file and line for a wrong number of fields, an empty CUI, or bad UTF-8.

    >>> scan_mrconso(Path("data/umls")).select("CUI", "STR").head(1).collect()  # doctest: +SKIP
    """
    return _scan(folder / "MRCONSO.RRF", MRCONSO, ["CUI"])


def scan_mrrel(folder: Path) -> pl.LazyFrame:
    """Every row of `folder/MRREL.RRF`: its 16 fields as text, and its `line` number from 1.

    A relation (RELA) holds *from CUI2 to CUI1*: CUI2 is its head, CUI1 its tail. REL=PAR says that
    CUI2 is the parent of CUI1, REL=CHD that CUI2 is its child. Errors as in `scan_mrconso`.
    """
    return _scan(folder / "MRREL.RRF", MRREL, ["CUI1", "CUI2"])


def scan_mrsty(folder: Path) -> pl.LazyFrame:
    """Every row of `folder/MRSTY.RRF`: its 6 fields as text (STY is the semantic type's name), and
    its `line` number from 1. Errors as in `scan_mrconso`."""
    return _scan(folder / "MRSTY.RRF", MRSTY, ["CUI"])


def preferred_names(folder: Path) -> pl.LazyFrame:
    """`CUI, STR`: each concept's preferred English name; concepts without one have no row."""
    english_preferred = (
        (pl.col("LAT") == "ENG")
        & (pl.col("TS") == "P")
        & (pl.col("STT") == "PF")
        & (pl.col("ISPREF") == "Y")
        & (pl.col("SUPPRESS") == "N")
    )
    named = scan_mrconso(folder).filter(english_preferred)
    return named.group_by("CUI").agg(pl.col("STR").sort_by("line").first()).sort("CUI")


def english_names(folder: Path) -> pl.LazyFrame:
    """`CUI, STR`: all English names in use (not suppressed), each once, in the file's order."""
    named = scan_mrconso(folder).filter((pl.col("LAT") == "ENG") & (pl.col("SUPPRESS") == "N"))
    return named.group_by("CUI", "STR").agg(pl.col("line").min()).sort("line").drop("line")


def parents(folder: Path) -> pl.LazyFrame:
    """`CUI, parent`: the edges of the hierarchy, from PAR and CHD rows alike, each once."""
    rows = scan_mrrel(folder).filter(pl.col("CUI1") != pl.col("CUI2"))
    up = rows.filter(pl.col("REL") == "PAR").select(CUI="CUI1", parent="CUI2")
    down = rows.filter(pl.col("REL") == "CHD").select(CUI="CUI2", parent="CUI1")
    return pl.concat([up, down]).unique().sort("CUI", "parent")


def _scan(path: Path, columns: list[str], keys: list[str]) -> pl.LazyFrame:
    """A checked file, its lines split into fields."""
    if not path.is_file():
        raise BadInput(path, "no such file", "put the UMLS release's RRF files in this folder")
    lines = pl.scan_lines(path, name="text", row_index_name="line", row_index_offset=1, glob=False)
    fields = pl.col("text").str.split_exact("|", len(columns)).struct
    rows = lines.select("line", "text", fields=fields.rename_fields([*columns, "end"]))
    _check(path, rows.unnest("fields"), columns, keys)
    return rows.select("line", "fields").unnest("fields").drop("end")


def _check(path: Path, rows: pl.LazyFrame, columns: list[str], keys: list[str]) -> None:
    """Raise BadInput for the first line that is no row of such a file."""
    separators = pl.col("text").str.count_matches("|", literal=True)
    bad = (separators != len(columns)) | (pl.col("end") != "")
    for key in keys:
        bad |= pl.col(key) == ""
    try:
        found = rows.filter(bad).select("line", separators, *keys).bottom_k(1, by="line")
        first = found.collect(engine="streaming").to_dicts()
    except pl.exceptions.ComputeError as error:
        raise BadInput(*_undecodable(path, error)) from None
    for row in first:
        empty = [key for key in keys if row[key] == ""]
        count = row["text"]
        problem = f"{count} fields ending in |, expected {len(columns)}"
        if count == len(columns):
            problem = f"empty {empty[0]}" if empty else "the last field does not end in |"
        raise BadInput(f"{path}, line {row['line']}", problem, "fetch the file anew")


def _undecodable(path: Path, error: Exception) -> tuple[str, str, str]:
    """Where a file is not UTF-8: the parts of its BadInput."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as bad:
                where = f"byte {bad.start + 1} is not UTF-8"
                return f"{path}, line {number}", where, "fetch the file anew"
    return str(path), f"cannot be read: {error}", ""
