"""The report: one page that explains itself and works without a network."""

import json
from collections.abc import Sequence
from functools import cache, partial
from operator import call
from pathlib import Path
from typing import Final

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from medprobe.core.executor import Executor, Job, in_job_order, in_this_process
from medprobe.extensions.chat.sections import judgment
from medprobe.extensions.families.sections import consistency
from medprobe.extensions.trust.sections import trust
from medprobe.papers.context.sections import ucm
from medprobe.papers.diskne.sections import f1
from medprobe.papers.medlama.sections import expert, sweeps
from medprobe.papers.template_free.sections.template_free import chapter as template_free
from medprobe.report.blocks import Block, Chapter, Table, anchor
from medprobe.report.leaderboard import leaderboard
from medprobe.report.numbers import metric, metric_unit
from medprobe.report.results import Results
from medprobe.report.sections import (
    calibration,
    differences,
    models,
    published,
    queries,
    statistics,
)

SECTIONS: Final = (  # of a benchmark's chapter, in their order
    models.section,
    consistency.section,
    queries.section,
    ucm.section,
    f1.section,
    judgment.section,
    trust.section,
    calibration.section,
    sweeps.section,
    differences.section,
    expert.section,
    published.section,
    statistics.section,
)


def chapters(results: Results, executor: Executor = in_this_process) -> list[Chapter]:
    """Return all of the page but its head.

    These are the leaderboard, a chapter for each benchmark, and one across them. The executor must
    be of this machine.
    """
    single = [partial(_chapter, results, benchmark) for benchmark in results.benchmarks]
    makers = [partial(leaderboard, results), *single, partial(template_free, results)]
    lists = in_job_order(executor(call, [Job("a chapter", make) for make in makers]))
    return [chapter for _, chapter_list in lists for chapter in chapter_list]


def _chapter(results: Results, benchmark: str) -> list[Chapter]:
    about = results.benchmarks[benchmark]
    parts = [part for section in SECTIONS for part in section(results, benchmark)]
    lines = [sentence(about.description), about.citation, _size(results, benchmark)]
    lines += results.notes.get(benchmark, [])
    return [Chapter(benchmark, benchmark, [*filter(None, lines)], parts)]


def render(results: Results, page_chapters: Sequence[Chapter]) -> str:
    """The page of these chapters as HTML. All texts are escaped."""
    return (
        environment()
        .get_template("index.html")
        .render(
            chapters=page_chapters,
            counts=_counts(results),
            models=results.models,
            confidence=f"{100 * results.confidence:.0f}",
            metrics=_metrics(results),
        )
    )


@cache
def environment() -> Environment:
    """The templates of this folder, and what they may ask for."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    templates.filters |= {"kind": _kind, "json": _json, "anchor": anchor}
    templates.globals["file"] = _file
    return templates


def _kind(block: Block) -> str:
    """What a block is, for the template to choose its form."""
    return type(block).__name__


def _file(name: str) -> Markup:
    """A style sheet or script of this folder, as it is."""
    return Markup((Path(__file__).parent / name).read_text(encoding="utf-8"))


def _json(content: object) -> Markup:
    """Numbers and names for a script; no name can end it."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def sentence(text: str) -> str:
    """A description as a sentence.

    >>> sentence("is it so?"), sentence("facts of the UMLS")
    ('Is it so?', 'Facts of the UMLS.')
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith(("?", ".", "!")) else ".")


def _size(results: Results, benchmark: str) -> str:
    """How large the main subset is, as it was probed; nothing where it is not counted."""
    counted = results.statistics.get(benchmark, pd.DataFrame(columns=["subset"]))
    subset = results.main_subset(benchmark)
    rows = counted[counted["subset"] == subset]
    if rows.empty or results.benchmarks[benchmark].many_relations:
        return ""
    single = rows[rows["relation"] != "all"]
    relations = f" of {len(single)} relations" if len(single) > 1 else ""
    return f"Here: {single['queries'].sum():,} queries{relations} ({subset})."


def _counts(results: Results) -> list[tuple[str, str]]:
    table = results.comparison
    counts = [
        (table["model"].nunique(), "model"),
        (table["method"].str.split(":").str[0].nunique(), "method"),
        (table["benchmark"].nunique(), "benchmark"),
        (len(table), "number"),
    ]
    return [(f"{count:,}", noun + ("s" if count != 1 else "")) for count, noun in counts]


def _metrics(results: Results) -> Table:
    """The metrics on the page, with direction and source."""
    names = results.comparison["metric"].unique()
    rows = []
    for entry in sorted(map(metric, names), key=lambda entry: entry.title):
        better = "a diagnostic" if entry.better == "neither" else f"{entry.better} is better"
        better += "".join(f", {entry.better_on(subset)} on {subset}" for subset in entry.turned_on)
        rows.append([entry.title, better, metric_unit(entry), entry.source])
    return Table(["metric", "direction", "unit", "source"], rows)
