"""A subset's main metric taken apart, by relation and by parts of its queries.

As in every table of models, a row is a model and method.
"""

from typing import Final

import pandas as pd

from medprobe.core.benchmark_statistics import FEWEST, weak_relations
from medprobe.metrics.splits import first_number
from medprobe.metrics.summary import MEANS
from medprobe.report.blocks import Cell, Table
from medprobe.report.figures.rows import without_sweeps
from medprobe.report.numbers import MISSING, cell, metric
from medprobe.report.results import Results

TITLES: Final = {"read": "times read"}  # what a part of subsets is by, where its name says it not


def breakdowns(results: Results, benchmark: str, subset: str) -> dict[str, Table]:
    """Return tables by what they are broken down by, such as "relation" or "answer length".

    There are none for fewer than two parts, or for more relations than can be read.
    """
    name = results.primary(benchmark)
    rows = without_sweeps(results.rows(benchmark, metric=name)).dropna(subset="value")
    whole, _, part = (rows["subset"].str.partition("/")[place] for place in range(3))
    rows = rows.assign(by=part.str.partition(":")[0], part=part.str.partition(":")[2])
    rows = rows[whole == subset]
    is_mean, is_part = rows["relation"].isin(MEANS), rows["by"] != ""
    relations = rows[~is_mean & ~is_part].assign(by="relation", part=rows["relation"])
    if results.benchmarks[benchmark].many_relations:
        relations = relations.head(0)
    parts = pd.concat([relations, rows[is_part & (rows["relation"] == "micro")]])
    better = metric(name).better_on(subset)
    captions = {"relation": _weak(results, benchmark, subset)}
    return {
        TITLES.get(by, by.replace("-", " ")): _table(
            rows_of_part, name, better == "lower", captions.get(by, "")
        )
        for by, rows_of_part in parts.groupby("by", sort=False)
        if rows_of_part["part"].nunique() > 1
    }


def _weak(results: Results, benchmark: str, subset: str) -> str:
    """A sentence about the relations with too few answers to show anything by themselves."""
    statistics = results.statistics.get(benchmark)
    if statistics is None or "effective_answers" not in statistics:
        return ""
    names = [name.replace("_", " ") for name in weak_relations(statistics, subset)]
    if not names:
        return ""
    return (
        f". Relations with fewer than {FEWEST} effective answers, which alone can show nothing "
        f"of a relation: {', '.join(names)}"
    )


def _table(rows: pd.DataFrame, name: str, ascending: bool, addition: str) -> Table:
    """A row per system, the best first by the mean of its parts, and a column per part."""
    sizes = rows.groupby("part")["n"].max()
    columns = sorted(sizes.index, key=lambda part: (first_number(part), part))
    order = rows.groupby(["model", "method"])["value"].mean()
    cells = {
        (row.model, row.method, row.part): cell(name, row.value, row.low, row.high)
        for row in rows.itertuples()
    }
    body: list[list[str | Cell]] = [
        [*system, *(cells.get((*system, part), MISSING) for part in columns)]
        for system in order.sort_values(ascending=ascending, kind="stable").index
    ]
    heads = [f"{column.replace('_', ' ')} ({sizes[column]:,.0f})" for column in columns]
    title = metric(name).title + (", per cent" if metric(name).share else "")
    caption = f"{title}; the number of queries in parentheses{addition}"
    return Table(["model", "method", *heads], body, caption)
