"""Stage `compare`: all models and methods side by side, as tables, drawings and one page."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe import benchmark_numbers
from medprobe.core import places
from medprobe.core.executor import Job, in_processes
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.progress import Progress, show_progress, with_progress
from medprobe.core.tables import BASELINE, Metadata, read_about, read_table
from medprobe.figures import losses, reliability, trajectory
from medprobe.figures.rows import systems
from medprobe.metrics import FACTS, expert
from medprobe.metrics.results import (
    COMPARISON,
    comparison,
    prediction_tables,
    write_csv,
)
from medprobe.metrics.significance import READINGS, read_tests
from medprobe.metrics.template_free.analyses import analyses
from medprobe.papers import concepts
from medprobe.report import forms, made, queries
from medprobe.report.blocks import drawings
from medprobe.report.page import chapters, render
from medprobe.report.results import Results
from medprobe.tracking import lineage

MADE: Final = [  # what the page says of how a result was made
    *("seconds", "tokens_per_second", "device", "precision", "python"),
    *(f"version.{name}" for name in lineage.LIBRARIES),
]


def compare(params: Params, out: Path = places.REPORTS) -> None:
    """Write `comparison.csv`, `significance.csv`, `statistics.csv`, further tables,
    `figures/*.svg`, `queries/*.html` and `index.html` to `out`, and the pages of queries with their
    texts to outputs/queries.

    Reads metrics/scores and the tests, predictions, benchmarks and models below outputs/; raises
    BadInput where there are no scores or tests. The same input gives the same bytes.
    """
    tables = len(list(prediction_tables(places.PREDICTIONS)))
    with show_progress("compare", tables, READINGS) as now:
        now.advance_to(0)
        _write(_results(params), out, now)


def _write(results: Results, out: Path, now: Progress) -> None:
    shown = chapters(results, in_processes)
    page = render(results, shown)
    svgs = drawings(part for chapter in shown for part in chapter.parts)
    statistics = benchmark_numbers.rows(results.statistics, results.tokens)
    tables = {
        "comparison": pd.concat([results.comparison, results.priors]).sort_values(COMPARISON[:6]),
        "significance": results.significance,
        "statistics": statistics,
        **{f"template-free-{name}": table for name, table in results.template_free.items()},
        **{f"{name}-trajectory": table for name, table in results.trajectories.items()},
        **{f"{name}-curves": table for name, table in results.losses.items()},
        **{f"{name}-reliability": table for name, table in results.judged.items()},
        **{f"{one.name}-ratings": t for some in results.expert.values() for one, t in some},
        **{f"{one.name}-agreement": one.agreement for s in results.expert.values() for one, _ in s},
    }
    with replacing(out) as folder, replacing(places.QUERIES) as texts:
        (folder / "figures").mkdir(parents=True)
        for name, table in tables.items():
            write_csv(table, folder / f"{name}.csv")
        for name, svg in svgs.items():
            (folder / "figures" / name).write_text(svg, encoding="utf-8")
        (folder / "index.html").write_text(page, encoding="utf-8")
        took = _each([*results.benchmarks], lambda name: _took(_tables(name)))
        (folder / made.NAME).write_text(made.script(_state(), took), encoding="utf-8")
        pages = [(folder / "queries", "../index.html"), (texts, f"../../{out}/index.html")]
        _queries(results, pages, now)


def _queries(results: Results, pages: list[tuple[Path, str]], now: Progress) -> None:
    """Write two pages of queries for each benchmark that has one: into the first folder without
    texts, into the second with them; beside each folder stands the address of the report."""
    for folder, _ in pages:
        folder.mkdir(parents=True)
    names = sorted(results.benchmarks)
    jobs = [Job(f"the queries of {name}", name) for name in names]
    sizes = [len(_tables(name)) for name in names]
    for _ in with_progress(in_processes(partial(_write_queries, pages), jobs), sizes, now):
        pass


def _write_queries(pages: list[tuple[Path, str]], name: str) -> None:
    """Write the two pages of one benchmark."""
    if found := queries.answers(places.BENCHMARKS / name, _tables(name)):
        for text, (folder, home) in enumerate(pages):
            shown = found.shown(text=bool(text))
            queries.write(name, shown, folder, home, text=bool(text))


def _tables(benchmark: str) -> list[Path]:
    """The prediction tables of a benchmark's models."""
    paths = [path for path in prediction_tables(places.PREDICTIONS) if path.stem == benchmark]
    return [path for path in paths if path.parent.parent.name != BASELINE]


def _results(params: Params) -> Results:
    """All that the page shows, as tables."""
    every = comparison(places.SCORES)
    scores = every[every["model"] != BASELINE]
    models = params.models.all()
    probed = sorted(scores["benchmark"].unique())
    builders = {name: read_about(places.BENCHMARKS / name)["builder"] for name in probed}
    numbers, priors = (
        with_names(table, builders, text=params.track.text)
        for table in (scores, every[every["model"] == BASELINE])
    )
    statistics = benchmark_numbers.counts(places.BENCHMARKS)
    folders = [places.MODELS / name for name in models]
    tables = {name: systems(_tables(name)) for name in probed}
    pages = {name: forms.on_page(paths.values()) for name, paths in tables.items()}
    shown = {name: page[1] if page else {} for name, page in pages.items()}
    return Results(
        comparison=numbers,
        priors=priors,
        significance=read_tests(),
        benchmarks={name: Metadata.read(places.ABOUT / f"{name}.json") for name in probed},
        builders=builders,
        statistics=statistics,
        left_out=benchmark_numbers.left_out(places.BENCHMARKS),
        tokens={
            name: benchmark_numbers.tokens(places.BENCHMARKS / name, folders) for name in statistics
        },
        trajectories=_each(
            probed,
            lambda name: trajectory.table(
                tables[name], places.BENCHMARKS / name, names=params.track.text
            ),
        ),
        losses=_each(probed, lambda name: losses.table(tables[name])),
        judged=_each(probed, lambda name: reliability.table(tables[name])),
        expert={
            name: [(one, expert.confusions(one, tables[name].values())) for one in rated]
            for name in probed
            if (rated := expert.evaluations(places.BENCHMARKS / name))
        },
        template_free=analyses(numbers, places.PREDICTIONS, places.BENCHMARKS, builders, params),
        published={name: one.published for name, one in models.items() if one.published},
        twins={name: one.untaught_twin_of for name, one in models.items() if one.untaught_twin_of},
        invented=frozenset(name for name in models if (places.MODELS / name / FACTS).is_file()),
        queries=frozenset(name for name, paths in shown.items() if paths),
        unlisted={
            name: sorted({path.parent.name for path in {*paths.values()} - {*shown[name]}})
            for name, paths in tables.items()
        },
        confidence=params.score.confidence,
    )


def _state() -> list[str]:
    """Version, day and commit, and data behind the page; the same for the same state of these."""
    data = lineage.hashes().get(str(places.DATA), "")
    told = [f"medprobe {version('medprobe')}", lineage.followed(), data and f"data {data[:8]}"]
    return [*filter(None, told)]


def _took(tables: Iterable[Path]) -> pd.DataFrame:
    """When, how fast, by which device and which libraries results were made: a row a prediction
    table of which this is known."""
    rows = []
    for path in tables:
        about = lineage.record(
            places.RUNS / path.relative_to(places.PREDICTIONS).with_suffix(".json"), path
        )
        if about:
            end = datetime.fromtimestamp(about["end"] / 1000, UTC)
            own = {"model": path.parent.parent.name, "method": path.parent.name}
            known = {name.removeprefix("version."): about.get(name) for name in MADE}
            rows.append({**own, "finished": f"{end:%Y-%m-%d %H:%M} UTC", **known})
    return pd.DataFrame(rows)


def with_names(scores: pd.DataFrame, benchmarks: Iterable[str], *, text: bool) -> pd.DataFrame:
    """Concepts that relations go by, such as DisKnE's diseases, by names instead of their CUIs: by
    what a paper prints for them, so that its numbers are found; else by their preferred names where
    `text` allows it, since names may be licensed."""
    relations = scores["relation"].copy()
    for benchmark in benchmarks:
        path = places.BENCHMARKS / benchmark / "names.parquet"
        if path.is_file():
            names = read_table(path, ["cui", "name", "preferred"])
            names = names[names["preferred"]].set_index("cui")["name"]
            shown = {**(names.to_dict() if text else {}), **concepts()}
            own = scores["benchmark"] == benchmark
            relations = relations.mask(own, relations.map(shown).fillna(relations))
    return scores.assign(relation=relations).sort_values(COMPARISON[:6], ignore_index=True)


def _each(benchmarks: list[str], make: Callable[[str], pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables of the benchmarks that have any rows."""
    made = {name: make(name) for name in benchmarks}
    return {name: table for name, table in made.items() if len(table)}
