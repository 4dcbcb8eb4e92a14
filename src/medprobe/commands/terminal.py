"""What commands print: tables that never cut a name."""

import sys

from rich.console import Console
from rich.table import Table

WIDEST = 10_000  # characters of a line in a file or a pipe


def console() -> Console:
    """Return the console: as wide as the terminal, or as its lines where there is none."""
    width = None if sys.stdout.isatty() else WIDEST
    return Console(width=width, markup=False, emoji=False, highlight=False)


def table(*columns: str, title: str | None = None) -> Table:
    """Return a table whose cells are folded, not cut, where the terminal is narrow."""
    rows = Table(title=title, title_justify="left")
    for column in columns:
        rows.add_column(column, overflow="fold")
    return rows
