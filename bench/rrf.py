"""Rows a second from UMLS files to MedLAMA's queries: this project's way against pandas in chunks.

    python -m bench.rrf            # a tenth of UMLS: 8 million MRREL rows, 1.6 million MRCONSO rows
    python -m bench.rrf --full     # all of it, this project's way only (about 9 GB of disk)

Both ways read the same generated files, each in a process of its own; results must be equal.
"""

import argparse
import csv
import hashlib
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from medprobe.papers.medlama.benchmarks import medlama
from medprobe.papers.medlama.benchmarks.medlama.prompts import RELATIONS
from medprobe.sources import rrf

TENTH = 8_000_000  # rows of MRREL; MRCONSO has a fifth of that
CHUNK = 4_000_000  # rows generated at a time
CHOICES = medlama.Settings()
Queries = list[tuple[str, str, str, list[str], list[str]]]


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


def ours(data: Path) -> Queries:
    """As `medprobe build medlama` does it, all checks included."""
    return _plain(medlama._queries(triples(data), CHOICES))


def triples(data: Path) -> pl.DataFrame:
    """What MedLAMA takes of the files."""
    return medlama._triples(data / "umls", CHOICES)[0]


def pandas_in_chunks(data: Path) -> Queries:
    """The straightforward way: read a million rows at a time, keep what is wanted, group."""
    parts = [
        chunk[chunk["RELA"].isin(CHOICES.relations) & chunk["SAB"].isin(CHOICES.vocabularies)]
        for chunk in _chunks(data / "umls/MRREL.RRF", rrf.MRREL, [0, 1, 4, 5, 7, 10])
    ]
    triples = pd.concat(parts)
    atom: dict[str, str] = {}
    last: dict[str, str] = {}
    for chunk in _chunks(data / "umls/MRCONSO.RRF", rrf.MRCONSO, [0, 7, 14]):
        atom.update(zip(chunk["AUI"], chunk["STR"], strict=True))
        last.update(zip(chunk["CUI"], chunk["STR"], strict=True))
    triples["subject"] = triples["AUI2"].map(atom).fillna(triples["CUI2"].map(last))
    triples["answer"] = triples["AUI1"].map(atom).fillna(triples["CUI1"].map(last))
    rows = []
    for (head, subject, relation), group in triples.groupby(["CUI2", "subject", "RELA"]):
        answers = dict(zip(group["answer"], group["CUI1"], strict=True))
        if len(answers) <= CHOICES.max_answers:
            rows.append((relation, head, subject, list(answers), list(answers.values())))
    columns = ["relation", "subject_id", "subject", "answers", "answer_ids"]
    return _plain(pd.DataFrame(rows, columns=columns))


def _chunks(path: Path, columns: list[str], used: list[int]) -> Iterator[pd.DataFrame]:
    return pd.read_csv(
        path,
        sep="|",
        header=None,
        names=[*columns, "end"],
        usecols=used,
        dtype=str,
        keep_default_na=False,
        quoting=csv.QUOTE_NONE,
        chunksize=1_000_000,
    )


def _plain(queries: pd.DataFrame) -> Queries:
    columns = ["relation", "subject_id", "subject", "answers", "answer_ids"]
    return list(queries[columns].itertuples(index=False, name=None))


def measure(way: Callable[[Path], Queries], data: Path) -> dict[str, Any]:
    """Seconds, peak memory, and a digest of the queries of one way, run in a fresh process."""
    start, start_cpu = time.perf_counter(), time.process_time()
    queries = way(data)
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    digest = hashlib.sha256(json.dumps(queries).encode()).hexdigest()
    costs = {"seconds": seconds, "cpu": cpu, "gib": peak}
    return {**costs, "queries": len(queries), "digest": digest}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="all of UMLS, this project's way only")
    full = parser.parse_args().full
    relations = TENTH * 10 if full else TENTH
    rows = relations + relations // 5
    ways = {"medprobe": ours} if full else {"medprobe": ours, "pandas in chunks": pandas_in_chunks}
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), relations)
        measured = {}
        for name, way in ways.items():
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                measured[name] = pool.apply(measure, (way, Path(folder)))
    print(f"{rows:,} RRF rows to {measured['medprobe']['queries']:,} queries")
    print(f"{'':18}{'seconds':>9}{'CPU s':>8}{'rows/s':>13}{'peak GiB':>10}")
    for name, figures in measured.items():
        rate = rows / figures["seconds"]
        print(
            f"{name:18}{figures['seconds']:9.1f}{figures['cpu']:8.1f}{rate:13,.0f}{figures['gib']:10.2f}"
        )
    if not full:
        mine, theirs = measured.values()
        if mine["digest"] != theirs["digest"]:
            raise SystemExit("the two ways do not give the same queries")
        print(f"{theirs['seconds'] / mine['seconds']:.1f} times as fast, same queries")


if __name__ == "__main__":
    main()
