"""Identifiers and files of the sample world: the same bytes on every system."""

import csv
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from medprobe.core.tables import DISTRACTOR, BenchmarkTables

# Concepts, also below another word (`MESH:C9900001`); Wikidata's items; PMIDs, PMC's articles and
# rows of notes; MedNLI's pairs. No number given out is as high, and no machine is that node.
FORMS: Final = re.compile(
    r"\b(C9[89][0-9]{5}|Q9[89][0-9]{7}|99[0-9]{6}|[0-9a-f]{8}-5a3e-11e7-0000-0{12})\b"
)


def are_invented(tables: BenchmarkTables, columns: tuple[str, ...]) -> bool:
    """Return whether all identifiers in these columns of a benchmark are the sample world's."""
    own = tables.candidates[tables.candidates["type"] != DISTRACTOR]  # distractors are names
    every = (tables.queries, own, *tables.others.values())
    found = (table[name].explode().unique() for table in every for name in columns if name in table)
    is_sample = (FORMS.search(str(identifier)) for column in found for identifier in column)
    return all(is_sample) and not tables.queries.empty


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file of these lines, which do not end in a line end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines)
    path.write_text(text, encoding="utf-8", newline="\n")


def write_jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write a file with one JSON object per line."""
    write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))


def write_csv(
    path: Path, rows: Iterable[Sequence[object]], quoting: Literal[0, 2] = csv.QUOTE_MINIMAL
) -> None:
    """Write a table; the first row holds the columns' names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n", quoting=quoting).writerows(rows)
