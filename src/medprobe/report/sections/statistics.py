"""The benchmark itself, in numbers."""

from typing import Final

import pandas as pd

from medprobe.core.statistics import SHARES
from medprobe.figures import plots
from medprobe.figures.rows import Drawing
from medprobe.report.blocks import Block, Cell, Part, Table, folded, part
from medprobe.report.numbers import MISSING
from medprobe.report.results import Results

SHARES: Final = ("chance_at_", "single_token")  # begin the names of what is shown in per cent
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
        means = _alike(tokens[[name for name in tokens if name not in SHARES]])
        answers = [_table(means, "Distinct answers, in the tokens of each model")]
        answers += _lengths(tokens, benchmark)
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


def _lengths(tokens: pd.DataFrame, benchmark: str) -> list[Drawing]:
    """How many of the first subset's distinct answers have how many tokens, a line a tokenizer."""
    subset = tokens["subset"].iloc[0]
    own = tokens.loc[tokens["subset"] == subset, ["model", *SHARES]]
    lines = own.groupby([*SHARES], sort=False)["model"].agg(["first", "size"]).reset_index()
    lines["model"] = [
        row.first if row.size == 1 else f"{row.first} and {row.size - 1} alike"
        for row in lines.itertuples()
    ]
    rows = lines.melt("model", [*SHARES], var_name="tokens", value_name="value")
    rows = rows.assign(tokens=rows["tokens"].map(SHARES), low=rows["value"], high=rows["value"])
    labels = ("tokens of the answer", "distinct answers, per cent")
    plot = plots.curves(rows, "tokens", "model", labels, percent=True)
    caption = f"Shares of {subset}'s distinct answers by their number of tokens ({benchmark})."
    return [Drawing(f"{benchmark}-tokens", plot, caption)]


def _alike(table: pd.DataFrame) -> pd.DataFrame:
    """Models of equal numbers in one row."""
    others = [name for name in table.columns if name != "model"]
    together = table.groupby(others, sort=False, dropna=False)["model"].agg(", ".join)
    return together.reset_index()[list(table.columns)]


def _table(table: pd.DataFrame, caption: str = "") -> Table:
    """A table, and in its caption what is the same in all rows."""
    shares = [name for name in table if str(name).startswith(SHARES)]
    table = table.assign(**{name: 100 * table[name] for name in shares})
    same = [name for name in table if len(table) > 1 and table[name].nunique(dropna=False) == 1]
    told = [
        f"{_head(name)} {value if isinstance(value, str) else value.text}"
        for name in same
        if (value := _cell(table[name].iloc[0])) != MISSING
    ]
    about = ". ".join(filter(None, [caption, f"In all: {', '.join(told)}" if told else ""]))
    table = table.drop(columns=same)
    body = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    return Table([_head(name) for name in table.columns], body, about)


def _head(name: object) -> str:
    said = str(name).replace("chance_at_", "chance@").replace("_", " ")
    return f"{said}, %" if str(name).startswith(SHARES) else said


def _cell(value: object) -> str | Cell:
    if not isinstance(value, int | float):
        return str(value)
    if pd.isna(value):
        return MISSING
    return Cell(f"{value:,.4g}" if value % 1 else f"{value:,.0f}", value)
