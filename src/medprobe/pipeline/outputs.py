"""What commands print: tables, and by `--json` one object per command (reference/scripts.md)."""

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


def to_json(content: Any) -> str:
    """Format an object of a command; named tuples are objects, and what is no number is null.

    >>> to_json({"low": float("nan")})
    '{\\n "low": null\\n}'
    """
    return json.dumps(_plain(content), indent=1, ensure_ascii=False, allow_nan=False)


def _plain(content: Any) -> Any:
    if hasattr(content, "_asdict"):
        content = content._asdict()
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if hasattr(content, "item"):  # numpy's numbers
        content = content.item()
    return None if isinstance(content, float) and not math.isfinite(content) else content


WIDEST = 10_000  # characters of a line in a file or a pipe


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None
) -> None:
    """Print a table whose cells are folded, not cut, where the terminal is narrow."""
    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else WIDEST
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    if title:  # a table's own is folded to its width
        console.print(title)
    console.print(table)
