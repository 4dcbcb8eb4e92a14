"""Which differences are significant: paired tests over the same queries."""

from typing import Final

import numpy as np
import pandas as pd

from medprobe.report.blocks import Block, Cell, Part, Table, Tag, folded, paragraph, part
from medprobe.report.numbers import metric, shown, signed
from medprobe.report.results import LEVEL, Results
from medprobe.report.verdicts import units

KINDS: Final = {  # of families: how a sentence calls their pairs
    "models": "of models under one method",
    "methods": "of methods under one model",
    "controls": "of a model with its control",
}


def section(results: Results, benchmark: str) -> list[Part]:
    """The paired tests of the benchmark's main metric, subset by subset, the main one first."""
    name = results.primary(benchmark)
    blocks: list[Block] = []
    for subset in results.subsets(benchmark):
        if len(tests := results.tests(benchmark, subset, name)):
            told = paragraph(*_told(tests, name, units(results, benchmark)))
            blocks += [Tag(subset), *told, *folded(f"All pairs, {subset}", [_table(tests, name)])]
    unit = units(results, benchmark)
    whole = unit if unit == "queries" else f"whole {unit}"
    how = (
        "Each pair is compared over the same queries, in the mean over relations, by a permutation "
        f"test that swaps the two on {whole}; p is two-sided. "
        "Holm's correction is for all models under one method, or all methods under one model."
    )
    return part("Differences and chance", paragraph(how), blocks) if blocks else []


def _told(tests: pd.DataFrame, name: str, unit: str) -> list[str]:
    """For each kind of family: how many differences are significant, and how large they must be."""
    kind = tests["family"].str.partition(" under ")[0]
    sentences = []
    for key, words in KINDS.items():
        some = tests[kind == key]
        if some.empty:
            continue
        clear = int((some["p_holm"] < LEVEL).sum())
        sentences.append(
            f"{clear} of {len(some)} {'pair' if len(some) == 1 else 'pairs'} {words} "
            f"{'differs' if clear == 1 else 'differ'} significantly in {metric(name).title} "
            f"({LEVEL:g}, corrected)."
        )
        sizes = some["smallest_difference"].dropna().astype(float)  # None where all are lost
        if len(sizes) and (reachable := sizes[np.isfinite(sizes)]).empty:
            sentences.append(f"With so few {unit} no difference, however large, could be found.")
        elif len(sizes):
            size = shown(name, reachable.median()).replace("%", "points")
            sentences.append(
                f"A true difference of about {size} would be found four times in five; a smaller "
                "one may well be missed."
            )
    return sentences


def _table(tests: pd.DataFrame, name: str) -> Table:
    body = [
        [
            *(f"{row.model_a} · {row.method_a}", f"{row.model_b} · {row.method_b}"),
            Cell(signed(name, row.difference), row.difference),
            "–" if pd.isna(row.low) else f"[{signed(name, row.low)}, {signed(name, row.high)}]",
            Cell(f"{row.p_holm:.4f}", row.p_holm),
            "yes" if row.p_holm < LEVEL else "no",
        ]
        for row in tests.itertuples()
    ]
    unit = " (points)" if metric(name).share else ""
    heads = ["a", "b", f"a − b{unit}", "interval", "p, corrected", f"p < {LEVEL:g}"]
    return Table(heads, body)
