"""Which differences are significant: paired tests over the same queries."""

from typing import Final

import numpy as np
import pandas as pd

from medprobe.metrics.pairs import MANY
from medprobe.metrics.significance import LEVEL
from medprobe.report.blocks import Block, Cell, Part, Table, folded, part
from medprobe.report.numbers import MISSING, format_difference, format_without_unit, metric
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section
from medprobe.report.verdicts import p_cell, units

KINDS: Final = {  # of families: what their pairs are
    "models": "models under one method",
    "methods": "methods under one model",
    "controls": "a model with its control",
}
NEVER: Final = "∞"


def section(results: PageData, benchmark: str) -> list[Part]:
    """The paired tests of the benchmark's main metric: counts by subset, and all pairs, folded."""
    name = results.primary(benchmark)
    tests = {
        subset: rows
        for subset in results.subsets(benchmark)
        if len(rows := results.tests(benchmark, subset, name))
    }
    if not tests:
        return []
    body = [line for subset, rows in tests.items() for line in _counts(subset, rows, name)]
    unit = " (points)" if metric(name).share else ""
    heads = ["subset", "pairs of", "pairs", "significant", f"smallest detectable difference{unit}"]
    unit_names = units(results, benchmark)
    caption = (
        f"{metric(name).title}, macro means. Each pair is compared over the same queries. "
        f"Accuracies are tested with a two-way variance over {unit_names} and answers, other "
        f"metrics by a permutation test that swaps whole {unit_names}, and a ranking against its "
        "answers to other subjects by one that exchanges those of whole clusters of names. "
        "Holm's correction is over all models under one method, all methods under one model, or "
        "all models and the controls of one method. Significant: corrected p below "
        f"{LEVEL:g}. Smallest detectable difference: a true difference of this size is found 80 % "
        "of the time (median over the pairs)"
    )
    if len(results.models) > MANY:
        caption += (
            f". Of more than {MANY} models under a method, each is tested against the best one, "
            "the next, and score.reference of params.yaml; the correction counts all pairs"
        )
    never = any(isinstance(line[-1], Cell) and line[-1].text == NEVER for line in body)
    few = f"; {NEVER}: with so few {unit_names} no difference can be significant."
    caption += few if never else "."
    blocks: list[Block] = [Table(heads, body, caption)]
    for subset, rows in tests.items():
        blocks += folded(f"All pairs, {subset}", [_pairs(rows, name)])
    return part("Differences and chance", blocks)


def _counts(subset: str, tests: pd.DataFrame, name: str) -> list[list[str | Cell]]:
    """For each kind of family: how many differences are significant, and how large they must be."""
    kind = tests["family"].str.partition(" under ")[0]
    lines: list[list[str | Cell]] = []
    for key, title in KINDS.items():
        if len(rows := tests[kind == key]):
            clear = int((rows["p_holm"] < LEVEL).sum())
            numbers = [Cell(f"{number:,}", number) for number in (len(rows), clear)]
            lines.append([subset, title, *numbers, _detectable(rows, name)])
    return lines


def _detectable(tests: pd.DataFrame, name: str) -> str | Cell:
    sizes = tests["smallest_difference"].dropna().astype(float)  # None: all are lost
    if sizes.empty:
        return MISSING
    reachable = sizes[np.isfinite(sizes)]
    if reachable.empty:
        return Cell(NEVER, float("inf"))
    return Cell(format_without_unit(name, reachable.median()), reachable.median())


def _pairs(tests: pd.DataFrame, name: str) -> Table:
    body = [
        [
            *(f"{row.model_a} · {row.method_a}", f"{row.model_b} · {row.method_b}"),
            Cell(format_difference(name, row.difference), row.difference),
            MISSING
            if pd.isna(row.low)
            else f"[{format_difference(name, row.low)}, {format_difference(name, row.high)}]",
            p_cell(row.p_holm),
            "yes" if row.p_holm < LEVEL else "no",
        ]
        for row in tests.itertuples()
    ]
    unit = " (points)" if metric(name).share else ""
    return Table(["a", "b", f"a − b{unit}", "interval", "corrected p", f"p < {LEVEL:g}"], body)


SECTION = Section(100, section)
