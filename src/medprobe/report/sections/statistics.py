"""The benchmark itself, in numbers."""

import pandas as pd

from medprobe.report import html
from medprobe.report.html import Cell
from medprobe.report.results import Results


def section(results: Results, benchmark: str) -> str:
    """The benchmark's own table of statistics, as its builder wrote it."""
    if benchmark not in results.statistics:
        return ""
    table = results.statistics[benchmark]
    body = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    heads = [str(name).replace("_", " ") for name in table.columns]
    content = html.table(heads, body)
    title = "The benchmark in numbers"
    return html.section(title, content if len(body) <= 12 else html.folded("Show", content))


def _cell(value: object) -> str | Cell:
    if isinstance(value, (int, float)):
        return (
            "–"
            if pd.isna(value)
            else Cell(f"{value:,.4g}" if value % 1 else f"{value:,.0f}", value)
        )
    return str(value)
