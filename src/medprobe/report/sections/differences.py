"""Which differences are significant: paired tests over the same queries."""

from typing import Final

import pandas as pd

from medprobe.metrics.results import select
from medprobe.metrics.significance import MAIN
from medprobe.report.blocks import Block, Cell, Part, Table, folded, part
from medprobe.report.numbers import MISSING, cell, format_difference, metric
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section
from medprobe.report.verdicts import as_verdict, difference_interval

OTHERS: Final = "Other pairs, with intervals and no p"
PAIR: Final = ["model_a", "method_a", "model_b", "method_b"]


def section(results: PageData, benchmark: str) -> list[Part]:
    """The tests of main results with each other, and the differences of all other systems."""
    name, subset = results.primary(benchmark), results.main_subset(benchmark)
    tests = results.tests(benchmark, subset, name)
    main = select(tests, family=MAIN)
    is_shown = pd.MultiIndex.from_frame(tests[PAIR]).isin(pd.MultiIndex.from_frame(main[PAIR]))
    others = tests[tests["p_holm"].isna() & ~is_shown]
    caption = (
        f"{metric(name).title} on {subset}, macro means over the same queries. p is corrected "
        "over these pairs by Holm's method. "
        "Smallest difference: a true difference of this size is found 80 % of the time"
    )
    blocks: list[Block] = [_pairs(main, name, caption)] if len(main) else []
    blocks += folded(f"{OTHERS}, {subset}", [_pairs(others, name)] if len(others) else [])
    return part("Differences between models", blocks)


def _pairs(tests: pd.DataFrame, name: str, caption: str = "") -> Table:
    """A row per pair; columns of p where there is any."""
    tested = bool(tests["p_holm"].notna().any())
    body: list[list[str | Cell]] = []
    for _, row in tests.iterrows():
        test = as_verdict(row)
        line: list[str | Cell] = [
            *(f"{row['model_a']} · {row['method_a']}", f"{row['model_b']} · {row['method_b']}"),
            Cell(format_difference(name, test.difference), test.difference),
            difference_interval(name, test) or MISSING,
        ]
        smallest = row["smallest_difference"]
        size = Cell(MISSING) if pd.isna(smallest) else cell(name, smallest)
        evidence = test.evidence.removeprefix("p ").removeprefix("= ")
        body.append([*line, Cell(evidence, test.p), size] if tested else line)
    unit = " (points)" if metric(name).share else ""
    heads = ["a", "b", f"a − b{unit}", "interval"]
    heads += ["corrected p", f"smallest difference{unit}"] if tested else []
    return Table(heads, body, caption)


SECTION = Section(100, section)
