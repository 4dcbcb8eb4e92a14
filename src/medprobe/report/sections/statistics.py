"""The benchmark itself, in numbers."""

from typing import Final

import pandas as pd

from medprobe.report.blocks import Block, Cell, Part, Table, folded, part
from medprobe.report.numbers import MISSING
from medprobe.report.results import Results

LONG: Final = 12  # rows; a longer table opens by a click


def section(results: Results, benchmark: str) -> list[Part]:
    """The benchmark's own table of statistics, what its rules left out, and its answers by
    tokenizer."""
    if benchmark not in results.statistics:
        return []
    counted, tokens = results.statistics[benchmark], results.tokens.get(benchmark)
    own: list[Block] = [_table(counted)]
    answers: list[Block] = []
    if tokens is not None and len(tokens):
        answers = [_table(tokens, "Distinct answers, in the tokens of each model")]
    left_out = results.left_out.get(benchmark)
    rules: list[Block] = []
    if left_out is not None and len(left_out):
        rules = folded("What its rules left out", [_table(left_out)])
    return part(
        "The benchmark in numbers",
        folded("Show", own) if len(counted) > LONG else own,
        rules,
        answers,
    )


def _table(table: pd.DataFrame, caption: str = "") -> Table:
    body = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    return Table([str(name).replace("_", " ") for name in table.columns], body, caption)


def _cell(value: object) -> str | Cell:
    if not isinstance(value, int | float):
        return str(value)
    if pd.isna(value):
        return MISSING
    return Cell(f"{value:,.4g}" if value % 1 else f"{value:,.0f}", value)
