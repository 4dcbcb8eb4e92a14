"""UMLS release files (RRF): MRCONSO (names), MRREL (relations), MRSTY (semantic types).

RRF has no quoting: `|` alone separates fields (and ends the last one), `\\n` alone ends a line, and
any value is text, also `NA`, `"`, or an empty field. Files are read as a stream and only the
rows of a query are kept, so that a full release needs minutes and a few GiB at most.

Source: UMLS Reference Manual, chapter "Metathesaurus, Rich Release Format".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from medprobe.core.errors import BadInput
from medprobe.sources.records import DOWNLOAD_AGAIN, read_lines

GET: Final = "put a UMLS release's RRF files there, or run `medprobe sample`"
ALL: Final = pl.lit(True)  # rows
IN_USE: Final = "N"  # in SUPPRESS

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


def read_mrconso(
    folder: Path,
    columns: Sequence[str],
    where: pl.Expr = ALL,
    among: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Read rows of `folder/MRCONSO.RRF`.

    >>> read_mrconso(Path("data/umls"), ["CUI", "STR"], pl.col("LAT") == "ENG")  # doctest: +SKIP
    """
    query = _Query(MRCONSO, ["CUI"], columns, where, among)
    return query.read(folder / "MRCONSO.RRF")


def read_mrrel(
    folder: Path,
    columns: Sequence[str],
    where: pl.Expr = ALL,
    relations: Sequence[str] = (),
) -> pl.DataFrame:
    """Read rows of `folder/MRREL.RRF`, which has 16 columns. Otherwise as `read_mrconso`.

    With `relations` only rows whose RELA is one of them, which is faster than by `where`.

    A relation (RELA) holds *from CUI2 to CUI1*: CUI2 is its head, CUI1 its tail. REL=PAR says that
    CUI2 is the parent of CUI1, REL=CHD that CUI2 is its child.
    """
    if relations:
        where &= pl.col("RELA").is_in(list(relations))
    query = _Query(MRREL, ["CUI1", "CUI2"], columns, where, sieve=relations)
    return query.read(folder / "MRREL.RRF")


def read_mrsty(folder: Path, columns: Sequence[str], where: pl.Expr = ALL) -> pl.DataFrame:
    """Read rows of `folder/MRSTY.RRF`, which has 6 columns; STY is the semantic type's name.

    Otherwise as `read_mrconso`.
    """
    return _Query(MRSTY, ["CUI"], columns, where).read(folder / "MRSTY.RRF")


def read_preferred_names(folder: Path, among: pl.DataFrame | None = None) -> pl.DataFrame:
    """Read preferred English names, columns `CUI, STR`.

    Args:
        folder: of the RRF files.
        among: the concepts, column `CUI`; otherwise all. A concept without a name has no row.
    """
    english_preferred = (
        (pl.col("LAT") == "ENG")
        & (pl.col("TS") == "P")
        & (pl.col("STT") == "PF")
        & (pl.col("ISPREF") == "Y")
        & (pl.col("SUPPRESS") == "N")
    )
    names = read_mrconso(folder, ["CUI", "STR"], english_preferred, among)
    return names.group_by("CUI").agg(pl.col("STR").min()).sort("CUI")


def read_english_names(folder: Path, among: pl.DataFrame | None = None) -> pl.DataFrame:
    """Read all English names that are not suppressed, columns `CUI, STR`, sorted.

    Args:
        folder: of the RRF files.
        among: the concepts, column `CUI`; otherwise all.
    """
    in_use = (pl.col("LAT") == "ENG") & (pl.col("SUPPRESS") == "N")
    names = read_mrconso(folder, ["CUI", "STR"], in_use, among)
    return names.select("CUI", "STR").unique().sort("CUI", "STR")


def _require_file(path: Path) -> None:
    if not path.is_file():
        if pieces := sorted(path.parent.glob(f"{path.name}.a[a-z]*")):
            join = f"{'z' if pieces[0].suffix == '.gz' else ''}cat {path}.a* > {path}"
            raise BadInput(path, f"exists only in {len(pieces)} parts", f"join them: {join}")
        raise BadInput(path, "no such file", GET)
    if not path.stat().st_size:
        raise BadInput(path, "empty", GET)


@dataclass(frozen=True)
class _Query:
    """Checks all lines of a file and selects rows, in one pass.

    With a `sieve`, only lines that have one of its texts as one of their fields are split, and
    lines of a wrong form.
    """

    fields: Sequence[str]
    keys: Sequence[str]  # fields that must not be empty
    columns: Sequence[str]
    where: pl.Expr
    among: pl.DataFrame | None = None
    sieve: Sequence[str] = ()

    def read(self, path: Path) -> pl.DataFrame:
        """Read the rows. Raises BadInput for the first wrong line."""
        _require_file(path)
        lines = pl.scan_lines(
            path, name="text", row_index_name="line", row_index_offset=1, glob=False
        )
        fields = self._split(lines)
        is_wrong = pl.col("end").ne_missing("") | pl.any_horizontal(pl.col(*self.keys) == "")
        wrong_lines = fields.filter(is_wrong).select(pl.col("line").min())
        try:
            wrong, rows = pl.collect_all([wrong_lines, self._rows(fields)], engine="streaming")
        except pl.exceptions.ComputeError as error:
            for _ in read_lines(
                path, GET
            ):  # this raises an error with the bytes that are not UTF-8
                pass
            raise BadInput(path, f"cannot be read: {error}", DOWNLOAD_AGAIN) from None
        if number := wrong.item():
            row = lines.filter(pl.col("line") == number).collect(engine="streaming")["text"].item()
            raise BadInput(f"{path}, line {number}", self._problem(row), DOWNLOAD_AGAIN)
        return rows

    def _split(self, lines: pl.LazyFrame) -> pl.LazyFrame:
        """The fields of lines, without those of a right form that the sieve lets through."""
        text = pl.col("text").str
        if self.sieve:
            texts = "|".join(map(pl.escape_regex, self.sieve))
            lines = lines.filter(text.contains(rf"\|(?:{texts})\|") | ~self._is_well_formed())
        fields = text.splitn("|", len(self.fields) + 1).struct  # with the rest of the line in `end`
        rows = lines.select("line", fields=fields.rename_fields([*self.fields, "end"]))
        return rows.unnest("fields")

    def _is_well_formed(self) -> pl.Expr:
        text = pl.col("text").str
        last_key = max(self.fields.index(key) for key in self.keys)
        keys_filled = r"\|".join(
            "[^|]+" if name in self.keys else "[^|]*" for name in self.fields[: last_key + 1]
        )
        return (
            (text.count_matches("|", literal=True) == len(self.fields))
            & text.ends_with("|")
            & text.contains(f"^{keys_filled}")
        )

    def _rows(self, fields: pl.LazyFrame) -> pl.LazyFrame:
        rows = fields.filter(self.where)
        if self.among is not None:
            rows = rows.join(self.among.lazy(), on=self.among.columns, how="semi").sort("line")
        return rows.select("line", *self.columns)

    def _problem(self, row: str) -> str:
        *fields, end = row.split("|")
        if len(fields) != len(self.fields):
            return f"{len(fields)} fields ending in |, expected {len(self.fields)}"
        if end:
            return "the last field does not end in |"
        return f"empty {next(key for key in self.keys if not fields[self.fields.index(key)])}"
