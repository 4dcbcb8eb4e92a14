"""Which models differ: main results, tested over the same queries, and all other differences."""

from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.metrics.significance import LETTERS, MAIN
from medprobe.metrics.statistics import LEVEL
from medprobe.report.blocks import Block, Cell, Part, Table, folded, part
from medprobe.report.numbers import MISSING, format_difference, format_without_unit, metric
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section
from medprobe.report.verdicts import p_cell

NEVER: Final = "cannot be tested"


def section(results: PageData, benchmark: str) -> list[Part]:
    """The tests of main results, and the differences between all other systems, folded."""
    name, subset = results.primary(benchmark), results.main_subset(benchmark)
    tests = results.tests(benchmark, subset, name)
    main = tests[tests["family"].isin([MAIN, LETTERS]) & (tests["relation"] == "macro")]
    if main.empty:
        return []
    unit = " (points)" if metric(name).share else ""
    caption = (
        f"{metric(name).title} on {subset}, macro means over the same queries. Holm's correction "
        f"is over all pairs of models. Significant: corrected p below {LEVEL:g}. Smallest "
        "difference: a true difference of this size is found 80 % of the time."
    )
    heads = ["a", "b", f"a − b{unit}", "interval", "corrected p", f"smallest difference{unit}"]
    lines = [[*_pair(row, name), _p(row), _detectable(row, name)] for row in main.itertuples()]
    blocks: list[Block] = [Table(heads, lines, caption)]
    for other in results.subsets(benchmark):
        rows = results.tests(benchmark, other, name)
        rows = rows[rows["p_holm"].isna() & (rows["relation"] == "macro")]
        if len(rows):
            lines = [_pair(row, name) for row in rows.itertuples()]
            table = Table(heads[:4], lines, "Differences and their intervals; nothing is claimed.")
            blocks += folded(f"Other differences, {other}", [table])
    return part("Differences and chance", blocks)


def _pair(row: Any, name: str) -> list[str | Cell]:
    bounds = (format_difference(name, row.low), format_difference(name, row.high))
    return [
        f"{row.model_a} · {row.method_a}",
        f"{row.model_b} · {row.method_b}",
        Cell(format_difference(name, row.difference), row.difference),
        MISSING if pd.isna(row.low) else f"[{bounds[0]}, {bounds[1]}]",
    ]


def _p(row: Any) -> str | Cell:
    if row.untestable:
        return Cell(NEVER, 2.0, note=row.untestable)
    return p_cell(row.p_holm)


def _detectable(row: Any, name: str) -> str | Cell:
    size = row.smallest_difference
    if pd.isna(size) or np.isinf(size):
        return MISSING
    return Cell(format_without_unit(name, size), size)


SECTION = Section(100, section)
