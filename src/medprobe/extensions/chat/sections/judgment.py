"""True or false? Who judges right, and is as sure as it may be."""

from collections.abc import Iterator
from typing import Final

import pandas as pd

from medprobe.extensions.chat import reliability
from medprobe.report.blocks import Part, folded, paragraph, part
from medprobe.report.figures.rows import Drawing
from medprobe.report.layouts import ranked_names
from medprobe.report.results import Results
from medprobe.report.sections import Section, SingleResult

CONSTANT: Final = {1.0: "every statement true", 0.0: "every statement false"}


def section(results: Results, benchmark: str) -> list[Part]:
    """Systems that always give the same verdict, and a reliability diagram for each model.

    There is nothing where nothing was judged.
    """
    bins = results.tables.get(f"{benchmark}-reliability")
    drawings = [] if bins is None else reliability.draw(bins, benchmark)
    sentences = paragraph(*constant_verdicts(results, benchmark))
    return part("True or false", [*sentences, *drawings[:1]], folded("Others", drawings[1:]))


def constant_verdicts(results: Results, benchmark: str) -> Iterator[str]:
    """Name the systems that give each statement the same verdict, and the subsets where they do."""
    rows = results.rows(benchmark, relation="micro", metric="called_true")
    for share, verdict in CONSTANT.items():
        subsets: dict[str, list[str]] = {}  # by the names of the systems
        for subset in results.subsets(benchmark):
            systems = rows[(rows["subset"] == subset) & (rows["value"] == share)]
            names = sorted(f"{row.model} ({row.method})" for row in systems.itertuples())
            subsets.setdefault(", ".join(names), []).append(subset)
        for systems_named, same in subsets.items():
            if systems_named:
                yield (
                    f"On {', '.join(same)}, these systems call {verdict}: {systems_named}. Their "
                    "share judged right follows from the statements alone."
                )


def tables(results: Results) -> dict[str, pd.DataFrame]:
    """Bins of P(true), by benchmark."""
    found = {
        f"{name}-reliability": reliability.table(results.systems(name))
        for name in results.benchmarks
    }
    return {name: table for name, table in found.items() if len(table)}


def drawings(result: SingleResult) -> list[Drawing]:
    """The reliability diagram of one result."""
    bins = reliability.table({result.path.parent.parent.name: result.path})
    return reliability.draw(bins, result.path.stem)


SECTION = Section(60, section, tables=tables, draw=drawings, cells={"judgment": ranked_names})
