"""Tables on the terminal that never cut a name."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

WIDEST = 10_000  # characters of a line in a file or a pipe


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None
) -> None:
    """Print a table whose cells are folded, not cut, where the terminal is narrow."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else WIDEST
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)
