"""Stage `compare`: all models and methods side by side, as tables, drawings and one page."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from medprobe.core import places
from medprobe.core.executor import Executor, in_this_process
from medprobe.core.files import replacing
from medprobe.core.papers import concepts
from medprobe.core.params import Params
from medprobe.core.progress import show_progress
from medprobe.core.tables import BASELINE, Metadata, read_about, read_table
from medprobe.metrics import FACTS
from medprobe.metrics.results import COMPARISON, comparison, prediction_tables, refusals, write_csv
from medprobe.metrics.significance import read_tests
from medprobe.report import benchmark_numbers, page
from medprobe.report.page import write_page
from medprobe.report.page_data import PageData, QueryPage
from medprobe.report.queries import QueryJob, find_layout, write_query_pages
from medprobe.report.sections import find_sections


def compare(
    params: Params,
    out: Path = places.REPORTS,
    executor: Executor = in_this_process,
) -> None:
    """Write the report.

    The folder `out` gets `comparison.csv`, `significance.csv`, `statistics.csv`, further tables,
    `figures/*.svg`, `queries/*.html` and `index.html`. Reads metrics/scores, and the tests,
    predictions, benchmarks and models in outputs/. The same input gives the same bytes.
    """
    paths: dict[str, list[Path]] = {}
    for path in prediction_tables(places.PREDICTIONS, params):
        paths.setdefault(path.stem, []).append(path)
    with show_progress("compare", sum(map(len, paths.values())), "readings of tables") as bar:
        bar.advance_to(0)
        results = read_results(params, paths)
        with replacing(out) as folder:
            jobs = [_query_job(results, name) for name in results.benchmarks]
            pages, text = folder / "queries", params.track.text
            overlaps = write_query_pages(jobs, pages, bar, executor, text=text)
            results = replace(results, overlaps=overlaps)
            runs = {name: page.collect_provenance(paths[name]) for name in results.benchmarks}
            runs = {name: table for name, table in runs.items() if len(table)}
            write_page(results, page.describe_state(), runs, folder, executor)
            _write_tables(results, folder)


def _query_job(results: PageData, benchmark: str) -> QueryJob:
    rows = results.main_rows(benchmark)
    systems = [*zip(rows["model"], rows["method"], strict=True)]
    among = results.primary(benchmark).partition("acc_at_")[2]
    subset = results.main_subset(benchmark)
    return QueryJob(
        benchmark, results.paths[benchmark], systems, subset, int(among) if among.isdigit() else 1
    )


def _write_tables(results: PageData, folder: Path) -> None:
    counts = benchmark_numbers.rows(results.statistics, results.tokens)
    tables = {
        "comparison": pd.concat([results.comparison, results.baselines]).sort_values(
            COMPARISON[:6]
        ),
        "significance": results.significance,
        "statistics": counts,
        **results.tables,
    }
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")


def read_results(params: Params, paths: Mapping[str, list[Path]]) -> PageData:
    """Read the scores, the tests, and what is known of benchmarks and models."""
    all_scores = comparison(places.SCORES)
    is_baseline = all_scores["model"] == BASELINE
    scores = all_scores[~is_baseline & all_scores["benchmark"].isin(paths)]
    baselines = all_scores[is_baseline & all_scores["benchmark"].isin(params.benchmark_names)]
    models, text = params.models.all(), params.track.text
    probed = sorted(scores["benchmark"].unique())
    builders = {name: read_about(places.BENCHMARKS / name)["builder"] for name in probed}
    statistics, left_out = (
        benchmark_numbers.read_notes(places.BENCHMARKS, params.benchmark_names, file)
        for file in ("statistics.csv", "dropped.csv")
    )
    checkpoints = [places.MODELS / name for name in models]
    main = json.loads(places.MAIN.read_text(encoding="utf-8"))
    results = PageData(
        comparison=with_names(scores, builders, text=text),
        baselines=with_names(baselines, builders, text=text),
        significance=read_tests(),
        main={
            (of, model): one["method"]
            for of, models in main.items()
            for model, one in models.items()
        },
        benchmarks={name: Metadata.read(places.ABOUT / f"{name}.json") for name in probed},
        builders=builders,
        statistics=statistics,
        left_out=left_out,
        tokens={
            name: benchmark_numbers.tokens(places.BENCHMARKS / name, checkpoints)
            for name in statistics
        },
        params=params,
        paths={name: paths[name] for name in probed},
        published={name: model.published for name, model in models.items() if model.published},
        twins={
            name: model.untaught_twin_of for name, model in models.items() if model.untaught_twin_of
        },
        invented=frozenset(name for name in models if (places.MODELS / name / FACTS).is_file()),
        query_pages={name: _read_query_page(name, paths[name]) for name in probed},
        confidence=params.score.confidence,
    )
    sections = find_sections()
    tables = {name: table for part in sections for name, table in part.tables(results).items()}
    results = replace(results, tables=tables)
    not_asked = refusals(places.PREDICTIONS, params)
    return replace(results, notes={name: _note(name, results, not_asked) for name in probed})


def _read_query_page(benchmark: str, paths: list[Path]) -> QueryPage:
    layout, listed = find_layout(paths) or (None, {})
    unlisted = tuple(sorted({path.parent.name for path in paths if path not in listed}))
    first = ""
    if layout and layout.ranked:
        first = _first_query(layout.queries(places.BENCHMARKS / benchmark))
    return QueryPage(layout is not None, first, unlisted)


def _first_query(queries_of_benchmark: pd.DataFrame) -> str:
    """The identifier of the first query; its number if the identifier contains a name."""
    first = next(queries_of_benchmark.itertuples())
    names = [name.casefold() for name in (first.subject, *first.answers) if name]
    is_named = any(name in first.query_id.casefold() for name in names)
    return "query 1" if is_named else str(first.query_id)


def _note(benchmark: str, results: PageData, not_asked: Mapping[Path, str]) -> list[str]:
    sentences = [text for part in find_sections() for text in part.notes(results, benchmark)]
    reasons = [reason for path, reason in not_asked.items() if path.stem == benchmark]
    return [*sentences, *(f"Not asked: {reason}." for reason in reasons)]


def with_names(scores: pd.DataFrame, benchmarks: Iterable[str], *, text: bool) -> pd.DataFrame:
    """Replace relations that are CUIs, such as DisKnE's diseases, by names.

    A concept gets the name that a paper prints for it, so that the paper's numbers can be looked
    up. Otherwise it gets its preferred name where `text` allows it, since names can be licensed.

    Args:
        scores: a table of scores, columns `metrics.results.COMPARISON`.
        benchmarks: whose names are read.
        text: whether licensed text may be shown.
    """
    relations = scores["relation"].copy()
    for benchmark in benchmarks:
        path = places.BENCHMARKS / benchmark / "names.parquet"
        if path.is_file():
            names = read_table(path, ["cui", "name", "preferred"])
            names = names[names["preferred"]].set_index("cui")["name"]
            printed_names = {**(names.to_dict() if text else {}), **concepts()}
            of_benchmark = scores["benchmark"] == benchmark
            relations = relations.mask(of_benchmark, relations.map(printed_names).fillna(relations))
    return scores.assign(relation=relations).sort_values(COMPARISON[:6], ignore_index=True)
