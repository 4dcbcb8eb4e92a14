"""The benchmark itself, in numbers."""

from typing import Final

import pandas as pd

from medprobe.report.blocks import Block, Part, folded, part
from medprobe.report.numbers import table_of
from medprobe.report.results import Results

LONG: Final = 12  # rows; a longer table opens by a click


def section(results: Results, benchmark: str) -> list[Part]:
    """The benchmark's own table of statistics, what its rules left out, and its answers by
    tokenizer."""
    if benchmark not in results.statistics:
        return []
    counted, tokens = results.statistics[benchmark], results.tokens.get(benchmark)
    own: list[Block] = [table_of(counted)]
    answers: list[Block] = []
    if tokens is not None and len(tokens):
        answers = [table_of(_alike(tokens), "Distinct answers, in the tokens of each model")]
    left_out = results.left_out.get(benchmark)
    rules: list[Block] = []
    if left_out is not None and len(left_out):
        rules = folded("What its rules left out", [table_of(left_out)])
    return part(
        "The benchmark in numbers",
        folded("Show", own) if len(counted) > LONG else own,
        rules,
        answers,
    )


def _alike(table: pd.DataFrame) -> pd.DataFrame:
    """Models of equal numbers in one row."""
    others = [name for name in table.columns if name != "model"]
    together = table.groupby(others, sort=False, dropna=False)["model"].agg(", ".join)
    return together.reset_index()[list(table.columns)]
