"""UMLS release files (RRF): MRCONSO (names), MRREL (relations), MRSTY (semantic types).

RRF has no quoting: `|` alone separates fields (and ends the last one), `\\n` alone ends a line, and
any value is text, also `NA`, `"`, or an empty field. Files are read as a stream and only what a
query asks for is kept, so that a full release needs minutes and a few GiB at most.

Source: UMLS Reference Manual, chapter "Metathesaurus, Rich Release Format".
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl

from medprobe.core.errors import BadInput
from medprobe.sources.records import ANEW
from medprobe.sources.records import lines as read_lines

GET: Final = "put a UMLS release's RRF files there, or run `medprobe sample`"

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


def scan_mrrel(folder: Path, relations: Sequence[str] = ()) -> pl.LazyFrame:
    """Every row of `folder/MRREL.RRF`, or those only whose RELA is one of `relations`, which is
    faster: its 16 fields as text, and its `line` number from 1.

    A relation (RELA) holds *from CUI2 to CUI1*: CUI2 is its head, CUI1 its tail. REL=PAR says that
    CUI2 is the parent of CUI1, REL=CHD that CUI2 is its child. Errors as in `scan_mrconso`.
    """
    rows = _scan(folder / "MRREL.RRF", MRREL, ["CUI1", "CUI2"], relations)
    return rows.filter(pl.col("RELA").is_in(relations)) if relations else rows


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


def _scan(
    path: Path, columns: list[str], keys: list[str], sieve: Sequence[str] = ()
) -> pl.LazyFrame:
    """A checked file, its lines split into fields; with a `sieve`, lines that have one of these
    texts as any of their fields."""
    if not path.is_file():
        if some := sorted(path.parent.glob(f"{path.name}.a[a-z]*")):
            join = f"{'z' if some[0].suffix == '.gz' else ''}cat {path}.a* > {path}"
            raise BadInput(path, f"is there in {len(some)} parts", f"put them together: {join}")
        raise BadInput(path, "no such file", GET)
    if not path.stat().st_size:
        raise BadInput(path, "empty", GET)
    lines = pl.scan_lines(path, name="text", row_index_name="line", row_index_offset=1, glob=False)
    _check(path, lines, columns, keys)
    if sieve:
        lines = lines.filter(pl.col("text").str.contains_any([f"|{value}|" for value in sieve]))
    fields = pl.col("text").str.split_exact("|", len(columns)).struct
    rows = lines.select("line", fields=fields.rename_fields([*columns, "end"]))
    return rows.unnest("fields").drop("end")


def _check(path: Path, lines: pl.LazyFrame, columns: list[str], keys: list[str]) -> None:
    """Raise BadInput for the first line that is no row of such a file."""
    text = pl.col("text").str
    last_key = max(columns.index(key) for key in keys)
    keys_filled = r"\|".join(
        "[^|]+" if name in keys else "[^|]*" for name in columns[: last_key + 1]
    )
    good = (
        (text.count_matches("|", literal=True) == len(columns))
        & text.ends_with("|")
        & text.contains(f"^{keys_filled}")
    )
    try:
        found = lines.filter(~good).bottom_k(1, by="line").collect(engine="streaming")
    except pl.exceptions.ComputeError as error:
        for _ in read_lines(path, GET):  # which names the bytes that are not UTF-8
            pass
        raise BadInput(path, f"cannot be read: {error}", ANEW) from None
    for number, row in found.rows():
        *fields, end = row.split("|")
        problem = f"{len(fields)} fields ending in |, expected {len(columns)}"
        if len(fields) == len(columns):
            empty = [key for key in keys if not fields[columns.index(key)]]
            problem = "the last field does not end in |" if end else f"empty {empty[0]}"
        raise BadInput(f"{path}, line {number}", problem, ANEW)
