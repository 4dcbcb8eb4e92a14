"""The report: one page that explains itself and works without a network.

How results were computed (versions, times, devices) is in a separate script, so that the page
itself is the same for the same inputs.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from operator import call
from pathlib import Path
from typing import Final

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from medprobe.core import dvc_records, lineage, places
from medprobe.core.executor import Executor, Job, in_job_order, in_this_process
from medprobe.core.tables import result_names
from medprobe.report.blocks import (
    Block,
    Chapter,
    Paragraph,
    Part,
    Table,
    anchor,
    drawings,
    folded,
)
from medprobe.report.leaderboard import leaderboard, title
from medprobe.report.numbers import metric, metric_unit, table_of
from medprobe.report.page_data import PageData
from medprobe.report.sections import find_sections


def chapters(results: PageData, executor: Executor = in_this_process) -> list[Chapter]:
    """Return a chapter for each benchmark, and those across them.

    The executor must be of this machine.
    """
    single = [partial(_chapter, results, benchmark) for benchmark in results.benchmarks]
    makers = [*single, partial(_across_benchmarks, results)]
    lists = in_job_order(executor(call, [Job("a chapter", make) for make in makers]))
    return [chapter for _, chapter_list in lists for chapter in chapter_list]


def _chapter(results: PageData, benchmark: str) -> list[Chapter]:
    about = results.benchmarks[benchmark]
    parts = [part for section in find_sections() for part in section.show(results, benchmark)]
    lines = [sentence(about.description), about.citation, _size(results, benchmark)]
    notes = results.notes.get(benchmark, [])
    if len(notes) > 1:
        paragraphs: list[Block] = [Paragraph(note) for note in notes]
        parts = [Part("", folded(f"{len(notes)} {_noun(notes)}", paragraphs)), *parts]
    else:
        lines += notes
    return [Chapter(benchmark, benchmark, [*filter(None, lines)], parts, folds=True)]


def _across_benchmarks(results: PageData) -> list[Chapter]:
    return [chapter for section in find_sections() for chapter in section.chapters(results)]


def _noun(notes: Sequence[str]) -> str:
    return "warnings" if all(note.startswith("Warning: ") for note in notes) else "notes"


def render(results: PageData, page_chapters: Sequence[Chapter]) -> str:
    """The page of the leaderboard and these chapters as HTML. All texts are escaped."""
    board = leaderboard(results)
    return (
        environment()
        .get_template("index.html")
        .render(
            board=board,
            title=title(board),
            chapters=page_chapters,
            counts=_counts(results),
            models=results.models,
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
    templates.filters |= {"kind": _kind, "json": _json, "anchor": anchor, "names": _names}
    templates.globals["file"] = _file
    return templates


def _kind(block: Block) -> str:
    """What a block is, for the template to choose its form."""
    return type(block).__name__


def _names(text: str) -> Markup:
    """A sentence whose names of models, benchmarks and methods, in backticks, are set apart.

    >>> _names("`a` knows < 1 % of `b`")
    Markup('<code>a</code> knows &lt; 1 % of <code>b</code>')
    """
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


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


def _size(results: PageData, benchmark: str) -> str:
    """How large the main subset is, as it was probed; empty if it is not counted."""
    counted = results.statistics.get(benchmark, pd.DataFrame(columns=["subset"]))
    subset = results.main_subset(benchmark)
    rows = counted[counted["subset"] == subset]
    if rows.empty or results.benchmarks[benchmark].many_relations:
        return ""
    single = rows[rows["relation"] != "all"]
    relations = f" of {len(single)} relations" if len(single) > 1 else ""
    return f"Here: {single['queries'].sum():,} queries{relations} ({subset})."


def _counts(results: PageData) -> list[tuple[str, str]]:
    table = results.comparison
    counts = [
        (table["model"].nunique(), "model"),
        (table["method"].str.split(":").str[0].nunique(), "method"),
        (table["benchmark"].nunique(), "benchmark"),
        (len(table), "number"),
    ]
    return [(f"{count:,}", noun + ("s" if count != 1 else "")) for count, noun in counts]


def _metrics(results: PageData) -> Table:
    names = results.comparison["metric"].unique()
    rows = []
    for entry in sorted(map(metric, names), key=lambda entry: entry.title):
        better = "a diagnostic" if entry.better == "neither" else f"{entry.better} is better"
        better += "".join(f", {entry.better_on(subset)} on {subset}" for subset in entry.turned_on)
        rows.append([entry.title, better, metric_unit(entry), entry.source])
    return Table(["metric", "direction", "unit", "source"], rows)


def write_page(
    results: PageData,
    state: Sequence[str],
    runs: Mapping[str, pd.DataFrame],
    folder: Path,
    executor: Executor = in_this_process,
) -> None:
    """Write `index.html`, `figures/*.svg`, and the script with the provenance."""
    page_chapters = chapters(results, executor)
    page = render(results, page_chapters)
    svgs = drawings(part for chapter in page_chapters for part in chapter.parts)
    (folder / "figures").mkdir(parents=True)
    for name, svg in svgs.items():
        (folder / "figures" / name).write_text(svg, encoding="utf-8")
    (folder / "index.html").write_text(page, encoding="utf-8")
    (folder / PROVENANCE_SCRIPT).write_text(provenance_script(state, runs), encoding="utf-8")


PROVENANCE_SCRIPT: Final = "provenance.js"
CAPTION: Final = "If a stage was stopped and resumed, the figures cover its last run only"
PROVENANCE: Final = [  # what the page says of how a result was made
    *("seconds", "tokens_per_second", "device", "precision", "python"),
    *(f"version.{name}" for name in lineage.LIBRARIES),
]


def describe_state() -> list[str]:
    """The version, commit with its day, and data behind the page.

    Two runs on the same state give the same text.
    """
    md5 = dvc_records.data_hash()
    data = "data not pinned by data.dvc" if md5 == dvc_records.NOT_PINNED else f"data {md5[:8]}"
    commits = lineage.followed()
    code = commits and f"code and settings of {commits}"
    parts = [f"medprobe {version('medprobe')}", code, data]
    return [*filter(None, parts)]


def collect_provenance(tables: Iterable[Path]) -> pd.DataFrame:
    """When, how fast, on which device and with which libraries results were made.

    One row per prediction table that has a run record.
    """
    rows = []
    for path in tables:
        run = lineage.record(
            places.RUNS / path.relative_to(places.PREDICTIONS).with_suffix(".json"), path
        )
        if "end" in run:  # an imported result has no time
            end = datetime.fromtimestamp(run["end"] / 1000, UTC)
            system = dict(zip(("model", "method"), result_names(path), strict=False))
            provenance = {name.removeprefix("version."): run.get(name) for name in PROVENANCE}
            rows.append({**system, "finished": f"{end:%Y-%m-%d %H:%M} UTC", **provenance})
    return pd.DataFrame(rows)


def provenance_script(state: Sequence[str], results: Mapping[str, pd.DataFrame]) -> str:
    """Write the script that the page opens."""
    tables = {name: asdict(table_of(table, CAPTION)) for name, table in results.items()}
    content = {"state": [*state], "results": tables}
    return f"showProvenance({json.dumps(content, ensure_ascii=False, allow_nan=False)});\n"
