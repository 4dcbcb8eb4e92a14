"""UMLS release files (RRF): MRCONSO (names), MRREL (relations), MRSTY (semantic types).

RRF has no quoting: `|` alone separates fields (and ends the last one), `\\n` alone ends a line, and
any value is text, also `NA`, `"`, or an empty field. Files are read as a stream and only what a
query asks for is kept, so that a full release needs minutes and a few GiB at most.

Source: UMLS Reference Manual, chapter "Metathesaurus, Rich Release Format".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from medprobe.core.errors import BadInput
from medprobe.sources.records import ANEW
from medprobe.sources.records import lines as read_lines

GET: Final = "put a UMLS release's RRF files there, or run `medprobe sample`"
ALL: Final = pl.lit(True)  # rows

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


def mrconso(
    folder: Path,
    columns: Sequence[str],
    where: pl.Expr = ALL,
    among: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Rows of `folder/MRCONSO.RRF`: their `line` from 1 and these of its 18 `columns`, all text, in
    the file's order. Of the rows, those for which `where` holds, and, with `among`, those whose
    fields in its columns are together a row of it.

    Raises BadInput with file and line for a wrong number of fields, an empty CUI, or bad UTF-8,
    anywhere in the file.

    >>> mrconso(Path("data/umls"), ["CUI", "STR"], pl.col("LAT") == "ENG")  # doctest: +SKIP
    """
    query = _Query(MRCONSO, ["CUI"], columns, where, among)
    return query.read(folder / "MRCONSO.RRF")


def mrrel(
    folder: Path,
    columns: Sequence[str],
    where: pl.Expr = ALL,
    relations: Sequence[str] = (),
) -> pl.DataFrame:
    """Rows of `folder/MRREL.RRF`, with `relations` those only whose RELA is one of them, which is
    faster than to say so by `where`. Otherwise as `mrconso`; there are 16 columns.

    A relation (RELA) holds *from CUI2 to CUI1*: CUI2 is its head, CUI1 its tail. REL=PAR says that
    CUI2 is the parent of CUI1, REL=CHD that CUI2 is its child.
    """
    if relations:
        where &= pl.col("RELA").is_in(list(relations))
    query = _Query(MRREL, ["CUI1", "CUI2"], columns, where, sieve=relations)
    return query.read(folder / "MRREL.RRF")


def mrsty(folder: Path, columns: Sequence[str], where: pl.Expr = ALL) -> pl.DataFrame:
    """Rows of `folder/MRSTY.RRF`, as of `mrconso`; there are 6 columns, and STY is the semantic
    type's name."""
    return _Query(MRSTY, ["CUI"], columns, where).read(folder / "MRSTY.RRF")


def preferred_names(folder: Path, among: pl.DataFrame | None = None) -> pl.DataFrame:
    """`CUI, STR`: the preferred English name of each concept `among` (`CUI`) these, or of all;
    concepts without one have no row."""
    english_preferred = (
        (pl.col("LAT") == "ENG")
        & (pl.col("TS") == "P")
        & (pl.col("STT") == "PF")
        & (pl.col("ISPREF") == "Y")
        & (pl.col("SUPPRESS") == "N")
    )
    named = mrconso(folder, ["CUI", "STR"], english_preferred, among)
    return named.group_by("CUI").agg(pl.col("STR").sort_by("line").first()).sort("CUI")


def english_names(folder: Path, among: pl.DataFrame | None = None) -> pl.DataFrame:
    """`CUI, STR`: all English names in use (not suppressed) of the concepts `among` (`CUI`) these,
    or of all, each once, in the file's order."""
    in_use = (pl.col("LAT") == "ENG") & (pl.col("SUPPRESS") == "N")
    named = mrconso(folder, ["CUI", "STR"], in_use, among)
    return named.group_by("CUI", "STR").agg(pl.col("line").min()).sort("line").drop("line")


def _there(path: Path) -> None:
    if not path.is_file():
        if some := sorted(path.parent.glob(f"{path.name}.a[a-z]*")):
            join = f"{'z' if some[0].suffix == '.gz' else ''}cat {path}.a* > {path}"
            raise BadInput(path, f"is there in {len(some)} parts", f"put them together: {join}")
        raise BadInput(path, "no such file", GET)
    if not path.stat().st_size:
        raise BadInput(path, "empty", GET)


@dataclass(frozen=True)
class _Query:
    """Checks all lines of a file, and finds the rows that are wanted. With a `sieve` only lines
    that have one of its texts as any of their fields are split."""

    fields: Sequence[str]
    keys: Sequence[str]  # fields that must not be empty
    columns: Sequence[str]
    where: pl.Expr
    among: pl.DataFrame | None = None
    sieve: Sequence[str] = ()

    def read(self, path: Path) -> pl.DataFrame:
        """The rows. Raises BadInput with the first line that is wrong."""
        _there(path)
        lines = pl.scan_lines(
            path, name="text", row_index_name="line", row_index_offset=1, glob=False
        )
        try:
            self._check(lines, path)
        except pl.exceptions.ComputeError as error:
            for _ in read_lines(path, GET):  # which names the bytes that are not UTF-8
                pass
            raise BadInput(path, f"cannot be read: {error}", ANEW) from None
        return self._rows(lines).collect(engine="streaming")

    def _rows(self, lines: pl.LazyFrame) -> pl.LazyFrame:
        if self.sieve:
            texts = [f"|{value}|" for value in self.sieve]
            lines = lines.filter(pl.col("text").str.contains_any(texts))
        fields = pl.col("text").str.split_exact("|", len(self.fields)).struct
        rows = lines.select("line", fields=fields.rename_fields([*self.fields, "end"]))
        rows = rows.unnest("fields").filter(self.where)
        if self.among is not None:
            rows = rows.join(self.among.lazy(), on=self.among.columns, how="semi").sort("line")
        return rows.select("line", *self.columns)

    def _check(self, lines: pl.LazyFrame, path: Path) -> None:
        """Raise BadInput for the first line that is no row of such a file."""
        text = pl.col("text").str
        last_key = max(self.fields.index(key) for key in self.keys)
        keys_filled = r"\|".join(
            "[^|]+" if name in self.keys else "[^|]*" for name in self.fields[: last_key + 1]
        )
        good = (
            (text.count_matches("|", literal=True) == len(self.fields))
            & text.ends_with("|")
            & text.contains(f"^{keys_filled}")
        )
        found = lines.filter(~good).bottom_k(1, by="line").collect(engine="streaming")
        for number, row in found.rows():
            *fields, end = row.split("|")
            problem = f"{len(fields)} fields ending in |, expected {len(self.fields)}"
            if len(fields) == len(self.fields):
                empty = [key for key in self.keys if not fields[self.fields.index(key)]]
                problem = "the last field does not end in |" if end else f"empty {empty[0]}"
            raise BadInput(f"{path}, line {number}", problem, ANEW)
