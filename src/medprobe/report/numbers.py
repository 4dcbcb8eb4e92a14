"""Numbers as people read them: shares in per cent, one digit after the point."""

from collections.abc import Sequence
from functools import cache

import pandas as pd

from medprobe.metrics import Metric, catalog
from medprobe.report.blocks import Cell, Table

MISSING = "–"
SHARES = (
    "chance_at_",
    "single_token",
    "answers_of_",
)  # begin the names of what a table shows in per cent


@cache
def metric(name: str) -> Metric:
    """A metric by its name in the tables."""
    return catalog()[name]


def format_value(name: str, value: float | None) -> str:
    """A metric's value in a sentence.

    >>> format_value("acc_at_1", 0.2031), format_value("perplexity", 12.345)
    ('20.3 %', '12.35')
    >>> format_value("f1", float("nan"))
    '–'
    """
    text = format_without_unit(name, value)
    return f"{text} %" if metric(name).in_per_cent and text != MISSING else text


def format_without_unit(name: str, value: float | None) -> str:
    """A metric's value in a table, whose head has the unit.

    >>> format_without_unit("acc_at_1", 0.2031), format_without_unit("perplexity", 12.345)
    ('20.3', '12.35')
    """
    if value is None or pd.isna(value):
        return MISSING
    return f"{100 * value:.1f}" if metric(name).in_per_cent else format_number(value)


def format_interval(name: str, low: float | None, high: float | None) -> str:
    """An interval of a metric in brackets; empty where there is none.

    >>> format_interval("acc_at_1", 0.1, 0.3), format_interval("acc_at_1", None, None)
    ('[10.0, 30.0]', '')
    """
    if low is None or pd.isna(low):
        return ""
    return f"[{format_without_unit(name, low)}, {format_without_unit(name, high)}]"


def format_number(value: float, sign: str = "") -> str:
    """Four digits, and no powers of ten for thousands.

    >>> format_number(12.3456), format_number(13620.4), format_number(12.3456, "+")
    ('12.35', '13,620', '+12.35')
    """
    return f"{value:{sign},.0f}" if abs(value) >= 1e4 else f"{value:{sign}.4g}"


def format_difference(name: str, difference: float) -> str:
    """A difference between two values of a metric, shares in points.

    >>> format_difference("acc_at_1", -0.2031), format_difference("perplexity", 12.345)
    ('-20.3', '+12.35')
    """
    if not metric(name).in_per_cent:
        return format_number(difference, "+")
    return f"{round(100 * difference, 1) + 0.0:+.1f}"  # + 0.0: no -0.0


def cell(
    name: str,
    value: float,
    low: float | None = None,
    high: float | None = None,
    std: float | None = None,
) -> Cell:
    """Return a metric's value as a table's cell, without its unit.

    It has the deviation over replicates and the interval if there are any. A share is shaded.

    >>> cell("acc_at_1", 0.2031, 0.1, 0.3, 0.012)
    Cell(text='20.3 ± 1.2  [10.0, 30.0]', sort=0.2031, shade=0.2031, note='')
    """
    if pd.isna(value):
        return Cell(MISSING)
    interval = format_interval(name, low, high)
    shade = value if metric(name).share else None
    return Cell(f"{with_deviation(name, value, std)}  {interval}".rstrip(), value, shade)


def metric_head(name: str) -> str:
    """A metric's title and its unit, for the head of a column.

    >>> metric_head("acc_at_1"), metric_head("acc_at_1_change"), metric_head("perplexity")
    ('acc@1, %', 'change of acc@1, points', 'perplexity')
    """
    definition = metric(name)
    unit = "%" if definition.share else "points" if definition.in_per_cent else ""
    return ", ".join(filter(None, [definition.title, unit]))


def metric_unit(definition: Metric) -> str:
    """A metric's unit in words, or the range of one that has none.

    >>> [metric_unit(metric(name)) for name in ("acc_at_1", "acc_at_1_change", "perplexity")]
    ['per cent', 'points', 'at least 1']
    """
    if definition.share:
        return "per cent"
    if definition.in_per_cent:
        return "points"
    return "any number" if definition.low == float("-inf") else f"at least {definition.low:g}"


def metric_cells(rows: pd.DataFrame, names: Sequence[str], *further: str) -> list[str | Cell]:
    """Return a cell with its interval per metric, MISSING where there is none."""
    numbers = rows.set_index("metric")[["value", "low", "high", *further]]
    return [cell(name, *numbers.loc[name]) if name in numbers.index else MISSING for name in names]


def with_deviation(name: str, value: float, std: float | None) -> str:
    """A value without its unit, and its deviation over replicates, where it has one.

    >>> with_deviation("acc_at_1", 0.2031, 0.012), with_deviation("acc_at_1", 0.2031, None)
    ('20.3 ± 1.2', '20.3')
    """
    text = format_without_unit(name, value)
    is_single = std is None or pd.isna(std)
    return text if is_single else f"{text} ± {format_without_unit(name, std)}"


def count(number: float) -> Cell:
    """How many of something, in a table.

    >>> count(12345)
    Cell(text='12,345', sort=12345, shade=None, note='')
    """
    return Cell(MISSING) if pd.isna(number) else Cell(f"{number:,.0f}", number)


def table_of(table: pd.DataFrame, caption: str = "", *, fold: bool = True) -> Table:
    """A data frame as a table; with `fold`, its caption has what is the same in all rows."""
    shares = [name for name in table if str(name).startswith(SHARES)]
    table = table.assign(**{name: 100 * table[name] for name in shares})
    is_long = fold and len(table) > 1
    constant = [name for name in table if is_long and table[name].nunique(dropna=False) == 1]
    same = [
        f"{_head(name).replace(', %', ' (%)')}: {value if isinstance(value, str) else value.text}"
        for name in constant
        if (value := _cell(table[name].iloc[0])) != MISSING
    ]
    note = f"The same in all rows: {', '.join(same)}" if same else ""
    about = ". ".join(filter(None, [caption, note]))
    table = table.drop(columns=constant)
    body = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    return Table([_head(name) for name in table.columns], body, about)


def _head(name: object) -> str:
    title = str(name).replace("chance_at_", "chance@").replace("_", " ")
    return f"{title}, %" if str(name).startswith(SHARES) else title


def _cell(value: object) -> str | Cell:
    if not isinstance(value, int | float):
        return str(value)
    if pd.isna(value):
        return MISSING
    return Cell(f"{value:,.4g}" if value % 1 else f"{value:,.0f}", value)
