"""The report: one page that explains itself and works without a network."""

import json
from collections.abc import Mapping, Sequence
from functools import cache, partial
from operator import call
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from medprobe.core.executor import Executor, Job, in_job_order, in_this_process
from medprobe.report import provenance
from medprobe.report.blocks import Block, Chapter, Part, Table, anchor, drawings
from medprobe.report.leaderboard import answer, leaderboard
from medprobe.report.numbers import metric, metric_unit
from medprobe.report.results import Results
from medprobe.report.sections import find_sections


def chapters(results: Results, executor: Executor = in_this_process) -> list[Chapter]:
    """Return all of the page but its head.

    These are the leaderboard, a chapter for each benchmark, and those across them. The executor
    must be of this machine.
    """
    single = [partial(_chapter, results, benchmark) for benchmark in results.benchmarks]
    makers = [partial(leaderboard, results), *single, partial(_across_benchmarks, results)]
    lists = in_job_order(executor(call, [Job("a chapter", make) for make in makers]))
    return [chapter for _, chapter_list in lists for chapter in chapter_list]


def _chapter(results: Results, benchmark: str) -> list[Chapter]:
    about = results.benchmarks[benchmark]
    parts = [Part("", answer(results, benchmark))]
    parts += [part for section in find_sections() for part in section.show(results, benchmark)]
    lines = [sentence(about.description), about.citation, _size(results, benchmark)]
    lines += results.notes.get(benchmark, [])
    return [Chapter(benchmark, benchmark, [*filter(None, lines)], parts, folds=True)]


def _across_benchmarks(results: Results) -> list[Chapter]:
    return [chapter for section in find_sections() for chapter in section.chapters(results)]


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


def write_page(
    results: Results,
    state: Sequence[str],
    runs: Mapping[str, pd.DataFrame],
    folder: Path,
    executor: Executor = in_this_process,
) -> None:
    """Write `index.html`, `figures/*.svg`, and the script with the provenance.

    Args:
        results: what the page shows.
        state: facts about the whole page, such as its commit.
        runs: how results were made: by benchmark, a table with one row per result.
        folder: is made.
        executor: what makes the chapters.
    """
    page_chapters = chapters(results, executor)
    page = render(results, page_chapters)
    svgs = drawings(part for chapter in page_chapters for part in chapter.parts)
    (folder / "figures").mkdir(parents=True)
    for name, svg in svgs.items():
        (folder / "figures" / name).write_text(svg, encoding="utf-8")
    (folder / "index.html").write_text(page, encoding="utf-8")
    script = provenance.script(state, runs)
    (folder / provenance.NAME).write_text(script, encoding="utf-8")
