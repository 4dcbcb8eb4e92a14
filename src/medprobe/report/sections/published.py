"""Published numbers next to the measured ones, for models that params.yaml marks as a paper's."""

from typing import Any, Final

import pandas as pd

from medprobe.core.papers import Paper, place, published
from medprobe.report.blocks import Cell, Links, Part, Table, paragraph, part
from medprobe.report.numbers import MISSING, metric
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section

TITLE: Final = "Compared with the published numbers"
INVENTED: Final = "no: invented facts"
CAPTION: Final = (
    "Shares in per cent, measured on the queries here and as printed. A difference is compared "
    "with the deviation that the paper prints, where the data are the paper's: as many queries and "
    "relations as it prints or its released files have."
)


def section(results: PageData, benchmark: str) -> list[Part]:
    """A table of measured and published numbers; empty if no model is a published one."""
    rows = results.rows(benchmark)
    rows = rows[rows["model"].isin(results.published)]
    printed_as = results.printed(benchmark)
    body: list[list[str | Cell]] = []
    sources: dict[str, str] = {}
    notes: dict[str, None] = {}
    keys = ["model", "subset", "relation", "method"]
    for (model, subset, relation, method), group in rows.groupby(keys, sort=True):
        name = results.published[model]
        for paper, number, row in published(name, printed_as, subset, relation, method):
            sources[paper.url] = f"{paper.title} ({paper.version})"
            notes |= dict.fromkeys(paper.tables[number].notes)
            data = data_note(results, benchmark, subset, paper)
            for score in group[group["metric"].isin(row.values)].itertuples():
                system = [f"{model} ({name})", f"{subset}, {relation}", method]
                spread = row.std.get(score.metric)
                numbers = _numbers(score, row.values[score.metric], spread, data)
                body.append([*system, *numbers, data, f"{paper.version}, {place(number)}"])
    if not body:
        return []
    heads = ["model", "set", "method", "metric", "measured", "published", "difference"]
    heads += ["in deviations", "the paper's data?", "source"]
    table, links = Table(heads, body, CAPTION), Links(sorted(sources.items()))
    return part(TITLE, [table], paragraph(*notes), [links])


def _numbers(score: Any, printed: float, spread: float | None, data: str) -> list[str | Cell]:
    """The metric, both numbers, their difference, and the verdict on it."""
    is_share = metric(score.metric).share
    scale = 100 if is_share else 1
    difference = scale * score.value - printed
    verdict: str | Cell = MISSING
    if spread and not data.startswith("no"):
        verdict = Cell(
            "within one" if abs(difference) <= spread else f"{abs(difference) / spread:.1f}",
            abs(difference) / spread,
        )
    numbers = [scale * number for number in (score.value, score.std) if pd.notna(number)]
    measured = " ± ".join(f"{number:.2f}" for number in numbers)  # as papers print them
    return [
        metric(score.metric).title + (", %" if is_share else ""),
        Cell(measured, score.value),
        Cell(f"{printed:g}" + (f" ± {spread:g}" if spread else ""), printed),
        Cell(f"{difference:+.2f}", difference),
        verdict,
    ]


def data_note(results: PageData, benchmark: str, subset: str, paper: Paper) -> str:
    """Say whether a subset has as many queries and relations as the paper counts."""
    if results.benchmarks[benchmark].invented:
        return INVENTED
    known = [counts.get(results.printed(benchmark), {}) for counts in (paper.sizes, paper.released)]
    printed = {name: n for counts in known for name, n in counts.get(subset, {}).items()}
    sizes = {name: printed[name] for name in ("queries", "relations") if name in printed}
    counted = results.statistics.get(benchmark)
    if not sizes or counted is None:
        return "not counted by the paper"
    rows = counted[(counted["subset"] == subset) & (counted["relation"] != "all")]
    here = {"queries": int(rows["queries"].sum()), "relations": len(rows)}
    here = {name: here[name] for name in sizes}
    if here == sizes:
        return "yes" if "queries" in sizes else "yes, by its relations"
    ours, theirs = (
        ", ".join(f"{count:,.0f} {name}" for name, count in counts.items())
        for counts in (here, sizes)
    )
    return f"no: {ours} here, {theirs} there"


SECTION = Section(120, section)
