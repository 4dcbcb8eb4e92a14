"""Invented MRCONSO.RRF and MRREL.RRF of the released size, or of a part of it."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from medprobe.papers.medlama.benchmarks.medlama.queries import RELATIONS
from medprobe.sources import rrf

ROWS = 80_000_000  # of the released MRREL; MRCONSO has a fifth of that
CHUNK = 4_000_000  # rows generated at a time


def generate(data: Path, relations: int, seed: int = 0) -> None:
    """Write MRCONSO.RRF and MRREL.RRF in the shape of the real ones: four names a concept, one row
    in twenty of MedLAMA's relations."""
    atoms = relations // 5
    (data / "umls").mkdir(parents=True)
    rng = np.random.default_rng(seed)
    with (data / "umls/MRCONSO.RRF").open("wb") as file:
        for first in range(0, atoms, CHUNK):
            _write(_concepts(np.arange(first, min(first + CHUNK, atoms))), rrf.MRCONSO, file)
    with (data / "umls/MRREL.RRF").open("wb") as file:
        for first in range(0, relations, CHUNK):
            _write(_relations(min(CHUNK, relations - first), atoms, rng), rrf.MRREL, file)


def _concepts(atom: np.ndarray) -> pl.DataFrame:
    number = pl.col("atom")
    return pl.DataFrame({"atom": atom}).select(
        **_ids(number, "CUI", "AUI"),
        LAT=pl.lit("ENG"),
        LUI=pl.format("L{}", number),
        SUI=pl.format("S{}", number),
        SCUI=pl.format("{}", number * 7),
        SAB=pl.lit("SNOMEDCT_US"),
        TTY=pl.lit("PT"),
        CODE=pl.format("{}", number * 7),
        STR=pl.format('Disorder of the "{}" kind, form {}', number // 3, number % 3),
        SUPPRESS=pl.lit("N"),
    )


def _relations(rows: int, atoms: int, rng: np.random.Generator) -> pl.DataFrame:
    others = [f"other_relation_{number}" for number in range(361)]
    names = pl.Series([*RELATIONS, *others])
    sources = pl.Series(["SNOMEDCT_US", "NCI", "MED-RT", "MSH", "SNOMEDCT_VET"])
    # heads from an eighth of the atoms, so that many queries have several answers
    ends = {"tail": rng.integers(0, atoms, rows), "head": rng.integers(0, atoms // 8, rows)}
    return pl.DataFrame(ends).select(
        **_ids(pl.col("tail"), "CUI1", "AUI1"),
        **_ids(pl.col("head"), "CUI2", "AUI2"),
        STYPE1=pl.lit("AUI"),
        REL=pl.lit("RO"),
        STYPE2=pl.lit("AUI"),
        RELA=names.gather(rng.integers(0, len(names), rows)),
        RUI=pl.format("R{}", pl.col("tail") * 31 + pl.col("head")),
        SAB=sources.gather(rng.integers(0, len(sources), rows)),
        SUPPRESS=pl.lit("N"),
    )


def _ids(atom: pl.Expr, cui: str, aui: str) -> dict[str, pl.Expr]:
    def padded(prefix: str, number: pl.Expr) -> pl.Expr:
        return pl.format(f"{prefix}{{}}", number.cast(pl.String).str.zfill(7))

    return {cui: padded("C", atom // 4), aui: padded("A", atom)}


def _write(table: pl.DataFrame, columns: list[str], file: Any) -> None:
    empty = [pl.lit("").alias(name) for name in [*columns, "end"] if name not in table.columns]
    whole = table.with_columns(empty).select(*columns, "end")
    whole.write_csv(file, include_header=False, separator="|", quote_style="never")
