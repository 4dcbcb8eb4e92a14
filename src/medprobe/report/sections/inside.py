"""Inside against outside: what a probe on hidden states ranks right, next to likelihood."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pandas as pd

from medprobe.figures.sweeps import draw
from medprobe.report.blocks import Cell, Part, Table, folded, paragraph, part
from medprobe.report.numbers import MISSING, cell, format_value
from medprobe.report.results import Results
from medprobe.report.verdicts import p_value, verdict

METHOD: Final = "inside"
PAIRS, ALL_PAIRS = "pairs_ranked", "all_pairs_ranked"
LIKELIHOOD: Final = f"{METHOD}:likelihood"
COLUMNS: Final = {  # variant: the head of its column
    METHOD: "probe of other relations",
    f"{METHOD}:subjects": "of other subjects",
    LIKELIHOOD: "likelihood",
    f"{METHOD}:answer-layer-0": "names alone",
    f"{METHOD}:shuffled": "shuffled labels",
}
CAPTION: Final = (
    "Per cent of pairs of a right and a wrong answer that are ranked right, macro means with "
    "intervals; in small letters how many queries have all their pairs ranked right. A score that "
    "sees the name alone, or nothing, ranks half of the pairs right."
)


def section(results: Results, benchmark: str) -> list[Part]:
    """A sentence per model, a table of all models, and a drawing by layer.

    There is nothing where the method `inside` was not used.
    """
    rows = results.rows(benchmark, metric=PAIRS)
    if rows.empty:
        return []
    subset = results.main_subset(benchmark)
    drawings = draw(rows, results.benchmarks[benchmark], results.models)
    return part(
        "Inside against outside",
        paragraph(*_compare(results, benchmark, subset)),
        [_table(results.rows(benchmark, subset=subset, relation="macro")), *drawings[:2]],
        folded("Others", drawings[2:]),
    )


def _compare(results: Results, benchmark: str, subset: str) -> Iterator[str]:
    """The probe of each model against its likelihood."""
    rows = results.rows(benchmark, subset=subset, relation="macro", metric=PAIRS)
    values = rows.set_index(["model", "method"])["value"]
    tests = results.tests(benchmark, subset, PAIRS)
    for model in sorted(set(rows["model"])):
        probe, likelihood = (model, METHOD), (model, LIKELIHOOD)
        if test := verdict(tests, probe, likelihood):
            inner, outer = (format_value(PAIRS, values[key]) for key in (probe, likelihood))
            yield (
                f"{model}: the probe ranks {inner} of the pairs right, likelihood {outer} "
                f"({p_value(test.p)})."
            )


def _table(rows: pd.DataFrame) -> Table:
    numbers = rows.set_index(["model", "method", "metric"])[["value", "low", "high"]]
    body: list[list[str | Cell]] = []
    for model in sorted(set(rows.loc[rows["metric"] == PAIRS, "model"])):
        cells = [_cell(numbers, model, method) for method in COLUMNS]
        body.append([model, *cells])
    return Table(["model", *COLUMNS.values()], body, CAPTION)


def _cell(numbers: pd.DataFrame, model: str, method: str) -> str | Cell:
    """The pairs that a variant ranks right, and below them the queries."""
    if (model, method, PAIRS) not in numbers.index:
        return MISSING
    value = cell(PAIRS, *numbers.loc[(model, method, PAIRS)])
    whole = format_value(ALL_PAIRS, numbers.loc[(model, method, ALL_PAIRS), "value"])
    return replace(value, note=f"all: {whole}")
