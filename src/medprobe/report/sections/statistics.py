"""The benchmark itself, in numbers."""

from typing import Final

import pandas as pd

from medprobe.core.benchmark_statistics import SHARES
from medprobe.core.papers import papers
from medprobe.report.benchmark_numbers import SHORTER
from medprobe.report.blocks import Block, Part, folded, part
from medprobe.report.numbers import table_of
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section

LONG: Final = 12  # rows; a longer table opens by a click


def section(results: PageData, benchmark: str) -> list[Part]:
    """Return the benchmark's own table of statistics.

    It comes with the counts in print, what its rules left out, and its answers by tokenizer.
    """
    if benchmark not in results.statistics:
        return []
    counted, tokens = results.statistics[benchmark], results.tokens.get(benchmark)
    counts: list[Block] = [table_of(_without_repeats(counted))]
    answers: list[Block] = []
    if tokens is not None and len(tokens):
        is_read_whole = not tokens[SHORTER].any()
        empty = [name for name in (SHORTER, *SHARES) if not tokens[name].any()]
        means = _alike(tokens.drop(columns=empty))
        about = (
            "Distinct answers, in the tokens of each model, and the share of those of so many; of "
            "the names that are ranked those "
            "with the same tokens as another one, which a model cannot tell apart, and those with "
            "a token for unknown text; and the tokens of the longest name"
            + (
                ""
                if is_read_whole
                else "; and the prompts of which a model reads the words around "
                "the gap alone, as they are longer than it can read"
            )
        )
        answers = [table_of(means, about, fold=False)]
    left_out = results.left_out.get(benchmark)
    rules: list[Block] = []
    if left_out is not None and len(left_out):
        rules = folded("What its rules left out", [table_of(left_out)])
    return part(
        "The benchmark in numbers",
        folded(f"All counts, {len(counted)} rows", counts) if len(counted) > LONG else counts,
        _printed(results, benchmark),
        rules,
        answers,
    )


def _printed(results: PageData, benchmark: str) -> list[Block]:
    """The counts that the papers print of the benchmark's subsets, next to those here."""
    if results.benchmarks[benchmark].invented:
        return []
    counted = results.statistics[benchmark]
    relations = counted[counted["relation"] != "all"].groupby("subset").size()
    of_all = counted[counted["relation"] == "all"].set_index("subset").assign(relations=relations)
    rows = [
        {
            **{"subset": subset, "count": name.replace("_", " ")},
            **{"here": of_all.loc[subset, name], "in print": number, "source": paper.version},
        }
        for paper in papers().values()
        for subset, numbers in paper.sizes.get(results.printed(benchmark), {}).items()
        for name, number in numbers.items()
        if paper.stands and subset in of_all.index
    ]
    return [table_of(pd.DataFrame(rows), "Counts in print")] if rows else []


def _without_repeats(counted: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, without that of all relations where a subset has one relation."""
    is_all = counted["relation"] == "all"
    return counted[~is_all | (counted.groupby("subset")["relation"].transform("size") > 2)]


def _alike(table: pd.DataFrame) -> pd.DataFrame:
    """Models of equal numbers in one row."""
    others = [name for name in table.columns if name != "model"]
    together = table.groupby(others, sort=False, dropna=False)["model"].agg(", ".join)
    return together.reset_index()[list(table.columns)]


SECTION = Section(130, section)
