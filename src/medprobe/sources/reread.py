"""UMLS's files and JSON lines, as the gate reads them again.

This module shares nothing with the builders' readers beside it, so that a mistake of theirs cannot
hide itself. Source: UMLS Reference Manual, tables MRCONSO and MRSTY.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from medprobe.core import places
from medprobe.core.errors import BadInput

MRCONSO: Final = places.DATA / "umls/MRCONSO.RRF"
MRSTY: Final = places.DATA / "umls/MRSTY.RRF"
CUI, AUI, STR = 0, 7, 14  # fields of MRCONSO.RRF
STN: Final = 2  # field of MRSTY.RRF
ENGLISH: Final = {1: "ENG"}  # LAT
PREFERRED: Final = {**ENGLISH, 2: "P", 4: "PF", 6: "Y", 16: "N"}  # TS, STT, ISPREF, SUPPRESS


def read_names(
    path: Path, cuis: Collection[str], values: Mapping[int, str], why: str
) -> Iterator[list[str]]:
    """Read the rows of concepts in MRCONSO.RRF whose fields have these values."""
    for line in read_lines(path, why):
        if line[: line.find("|")] in cuis:
            fields = line.split("|")
            if all(fields[place] == value for place, value in values.items()):
                yield fields


def read_types(path: Path, cuis: Collection[str], why: str) -> dict[str, set[str]]:
    """Read concepts' semantic types in MRSTY.RRF, as numbers in the types' tree, such as A1.4.1."""
    types: dict[str, set[str]] = defaultdict(set)
    for line in read_lines(path, why):
        if (cui := line[: line.find("|")]) in cuis:
            types[cui].add(line.split("|")[STN])
    return types


def read_lines(path: Path, why: str) -> Iterator[str]:
    """Read the lines of an RRF file. Raises BadInput where there is none."""
    if not path.is_file():
        raise BadInput(path, "no such file", why)
    with path.open(encoding="utf-8", newline="\n") as lines:
        yield from lines


def read_records(data: Path, files: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The objects of the files of JSON lines, with their files."""
    paths = sorted(data.glob(files))
    if not paths:
        raise BadInput(data / files, "no such file", "the gate reads a sample of facts again")
    for path in paths:
        with path.open(encoding="utf-8-sig", newline="\n") as lines:
            for line in lines:
                if line.strip():
                    yield path, json.loads(line)
