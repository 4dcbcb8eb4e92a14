"""The forms in which the sample world is written: the same bytes on every system."""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal


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
