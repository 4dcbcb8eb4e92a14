"""The benchmark itself, in numbers."""

import pandas as pd

from medprobe.report import html
from medprobe.report.html import Cell
from medprobe.report.results import Results


def section(results: Results, benchmark: str) -> str:
    """The benchmark's own table of statistics, and its answers by tokenizer."""
    if benchmark not in results.statistics:
        return ""
    content = _table(results.statistics[benchmark])
    if len(results.statistics[benchmark]) > 12:
        content = html.folded("Show", content)
    if len(tokens := results.tokens.get(benchmark, [])):
        content += _table(tokens, "Distinct answers, in the tokens of each model")
    return html.section("The benchmark in numbers", content)


def _table(table: pd.DataFrame, caption: str = "") -> str:
    body = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    return html.table([str(name).replace("_", " ") for name in table.columns], body, caption)


def _cell(value: object) -> str | Cell:
    if isinstance(value, (int, float)):
        return (
            "–"
            if pd.isna(value)
            else Cell(f"{value:,.4g}" if value % 1 else f"{value:,.0f}", value)
        )
    return str(value)
