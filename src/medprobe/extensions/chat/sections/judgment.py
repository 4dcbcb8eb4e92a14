"""True or false? Who judges right, and is as sure as it may be."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe.core.tables import metric_of_predictions, read_predictions
from medprobe.extensions.chat.metrics.judgment import reliability
from medprobe.report.blocks import Drawing, Part, folded, paragraph, part
from medprobe.report.figures import plots
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section, SingleResult, ranked_names

COLUMNS: Final = ["model", "variant", "said", "true", "n"]


def table(systems: Mapping[str, Path]) -> pd.DataFrame:
    """Bins of P(true): columns COLUMNS; no rows where nothing was judged.

    `systems` are prediction tables by model; those of other metrics are passed over.
    """
    judged = {name: p for name, p in systems.items() if metric_of_predictions(p) == "judgment"}
    parts = [
        reliability(rows).assign(model=name)
        for name, path in judged.items()
        for rows in read_predictions(path)
    ]
    return pd.concat(parts, ignore_index=True)[COLUMNS] if parts else pd.DataFrame(columns=COLUMNS)


def draw(bins: pd.DataFrame, benchmark: str) -> list[Drawing]:
    """Draw for each model one line per variant, and the diagonal of a perfectly calibrated one."""
    drawings = []
    for model, rows in bins.groupby("model", sort=True):
        even = pd.DataFrame({"variant": "as it says", "said": [0.0, 1.0], "true": [0.0, 1.0]})
        lines = pd.concat([rows, even], ignore_index=True)
        lines = lines.assign(**{column: lines["true"] for column in ("value", "low", "high")})
        axes = ("P(true)", "true statements, per cent")
        plot = plots.curves(lines, "said", "variant", axes, True)
        caption = f"{model}: how many statements are true of those that it is so sure of."
        drawings.append(Drawing(f"{benchmark}-reliability-{model}", plot, caption))
    return drawings


CONSTANT: Final = {1.0: "every statement true", 0.0: "every statement false"}


def section(results: PageData, benchmark: str) -> list[Part]:
    """Systems that always give the same verdict, and a reliability diagram for each model.

    There is nothing where nothing was judged.
    """
    bins = results.tables.get(f"{benchmark}-reliability")
    drawings = [] if bins is None else draw(bins, benchmark)
    sentences = paragraph(*constant_verdicts(results, benchmark))
    return part("True or false", [*sentences, *drawings[:1]], folded("Others", drawings[1:]))


def constant_verdicts(results: PageData, benchmark: str) -> Iterator[str]:
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


def tables(results: PageData) -> dict[str, pd.DataFrame]:
    """Bins of P(true), by benchmark."""
    found = {f"{name}-reliability": table(results.systems(name)) for name in results.benchmarks}
    return {name: table for name, table in found.items() if len(table)}


def drawings(result: SingleResult) -> list[Drawing]:
    """The reliability diagram of one result."""
    bins = table({result.path.parent.parent.name: result.path})
    return draw(bins, result.path.stem)


SECTION = Section(60, section, tables=tables, draw=drawings, cells={"judgment": ranked_names})
