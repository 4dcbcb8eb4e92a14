"""Stage `compare`: all models and methods side by side, as tables, drawings and one page."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pandas as pd

from medprobe import benchmark_numbers
from medprobe.backends import read_record
from medprobe.core import neutral, places
from medprobe.core.executor import Executor, Job, in_this_process
from medprobe.core.extraction import WARNED
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.progress import Progress, show_progress, with_progress
from medprobe.core.tables import BASELINE, QUERY_COLUMNS, Metadata, read_about, read_table
from medprobe.figures import losses, reliability, trajectory
from medprobe.figures.rows import systems
from medprobe.metrics import FACTS, expert
from medprobe.metrics.results import (
    COMPARISON,
    comparison,
    prediction_tables,
    refusals,
    select,
    write_csv,
)
from medprobe.metrics.significance import READINGS, read_tests
from medprobe.metrics.template_free.analyses import analyses
from medprobe.papers import concepts
from medprobe.report import layouts, provenance, queries
from medprobe.report.blocks import drawings
from medprobe.report.page import chapters, render
from medprobe.report.results import Results
from medprobe.tracking import lineage

PROVENANCE: Final = [  # what the page says of how a result was made
    *("seconds", "tokens_per_second", "device", "precision", "python"),
    *(f"version.{name}" for name in lineage.LIBRARIES),
]


def compare(
    params: Params,
    out: Path = places.REPORTS,
    texts: Path = places.QUERIES,
    executor: Executor = in_this_process,
) -> None:
    """Write the report.

    The folder `out` gets `comparison.csv`, `significance.csv`, `statistics.csv`, further tables,
    `figures/*.svg`, `queries/*.html` and `index.html`. The query pages that show texts go to the
    folder `texts`. Reads metrics/scores, and the tests, predictions, benchmarks and models in
    outputs/. The same input gives the same bytes.

    Args:
        params: the content of params.yaml.
        out: the report's folder.
        texts: the folder of the query pages that show texts.
        executor: what makes chapters and query pages; of this machine.

    Raises:
        BadInput: there are no scores or no paired tests.
    """
    paths: dict[str, list[Path]] = {}
    for path in prediction_tables(places.PREDICTIONS, params):
        if path.parent.parent.name != BASELINE:
            paths.setdefault(path.stem, []).append(path)
    with show_progress("compare", sum(map(len, paths.values())), READINGS) as bar:
        bar.advance_to(0)
        results = _collect_results(params, paths)
        with ExitStack() as stack:
            folder = stack.enter_context(replacing(out))
            runs = _make_nonempty(
                [*results.benchmarks], lambda name: _collect_provenance(paths[name])
            )
            write_page(results, _describe_state(), runs, folder, executor)
            _write_tables(results, folder)
            pages = [
                (folder / "queries", "../index.html"),
                (stack.enter_context(replacing(texts)), f"../../{out}/index.html"),
            ]
            shown_paths = {name: paths[name] for name in results.benchmarks}
            _write_query_pages(shown_paths, pages, bar, executor)


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


def _write_tables(results: Results, folder: Path) -> None:
    counts = benchmark_numbers.rows(results.statistics, results.tokens)
    tables = {
        "comparison": pd.concat([results.comparison, results.priors]).sort_values(COMPARISON[:6]),
        "significance": results.significance,
        "statistics": counts,
        **{f"template-free-{name}": table for name, table in results.template_free.items()},
        **{f"{name}-trajectory": table for name, table in results.trajectories.items()},
        **{f"{name}-curves": table for name, table in results.losses.items()},
        **{f"{name}-reliability": table for name, table in results.judged.items()},
    }
    for evaluations in results.expert.values():
        for evaluation, ratings in evaluations:
            tables[f"{evaluation.name}-ratings"] = ratings
            tables[f"{evaluation.name}-agreement"] = evaluation.agreement
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")


def _write_query_pages(
    paths: Mapping[str, list[Path]],
    pages: list[tuple[Path, str]],
    bar: Progress,
    executor: Executor,
) -> None:
    """Write the query pages of each benchmark that has queries to show.

    `pages` are pairs of a folder and the report's address, seen from it: the pages of the first
    folder have texts only where these are open to anyone, those of a second have them always.
    """
    for folder, _ in pages:
        folder.mkdir(parents=True)
    jobs = [Job(f"the queries of {name}", (name, tables)) for name, tables in sorted(paths.items())]
    sizes = [len(tables) for _, tables in sorted(paths.items())]
    for _ in with_progress(executor(partial(write_pages_of_benchmark, pages), jobs), sizes, bar):
        pass


def write_pages_of_benchmark(
    pages: list[tuple[Path, str]], benchmark: tuple[str, list[Path]]
) -> None:
    """Write the pages of one benchmark, from its name and its prediction tables."""
    name, tables = benchmark
    if answers := queries.read_answers(places.BENCHMARKS / name, tables):
        is_open = Metadata.read(places.ABOUT / f"{name}.json").is_open
        for place, (folder, home) in enumerate(pages):
            text = is_open or bool(place)
            page = answers.label(text=text)
            queries.write(name, page, folder, home, text=text, is_open=is_open)


def _collect_results(params: Params, paths: Mapping[str, list[Path]]) -> Results:
    """Everything that the page shows, as tables; `paths` are each benchmark's prediction tables."""
    all_scores = comparison(places.SCORES)
    is_prior = all_scores["model"] == BASELINE
    scores = all_scores[~is_prior & all_scores["benchmark"].isin(paths)]
    priors = all_scores[is_prior & all_scores["benchmark"].isin(params.benchmark_names)]
    models, text = params.models.all(), params.track.text
    probed = sorted(scores["benchmark"].unique())
    folders = {name: places.BENCHMARKS / name for name in probed}
    builders = {name: read_about(folder)["builder"] for name, folder in folders.items()}
    numbers, priors = (with_names(table, builders, text=text) for table in (scores, priors))
    statistics = benchmark_numbers.counts(places.BENCHMARKS, params.benchmark_names)
    checkpoints = [places.MODELS / name for name in models]
    kinds = {folder: params.models.kind(folder.name) for folder in checkpoints}
    tables = {name: systems(paths[name]) for name in probed}
    with_query_page: set[str] = set()
    first_queries: dict[str, str] = {}
    unlisted: dict[str, list[str]] = {}
    for name in probed:
        paths_of_benchmark = [*tables[name].values()]
        layout, listed = layouts.find_layout(paths_of_benchmark) or (None, {})
        unlisted[name] = sorted({p.parent.name for p in paths_of_benchmark if p not in listed})
        if layout:
            with_query_page.add(name)
            if layout.ranked:
                first_queries[name] = _first_query(layout.queries(folders[name]))
    return Results(
        comparison=numbers,
        priors=priors,
        significance=read_tests(),
        benchmarks={name: Metadata.read(places.ABOUT / f"{name}.json") for name in probed},
        builders=builders,
        statistics=statistics,
        left_out=benchmark_numbers.left_out(places.BENCHMARKS, params.benchmark_names),
        tokens={
            name: benchmark_numbers.tokens(places.BENCHMARKS / name, checkpoints)
            for name in statistics
        },
        trajectories=_make_nonempty(
            probed, lambda name: trajectory.table(tables[name], folders[name], names=text)
        ),
        losses=_make_nonempty(probed, lambda name: losses.table(tables[name])),
        judged=_make_nonempty(probed, lambda name: reliability.table(tables[name])),
        expert={
            name: [(item, expert.confusions(item, tables[name].values())) for item in evaluations]
            for name, folder in folders.items()
            if (evaluations := expert.evaluations(folder, params.benchmark_names))
        },
        template_free=analyses(
            numbers,
            places.PREDICTIONS,
            places.BENCHMARKS,
            builders,
            params,
            parameters=benchmark_numbers.count_parameters(kinds),
        ),
        published={name: model.published for name, model in models.items() if model.published},
        twins={
            name: model.untaught_twin_of for name, model in models.items() if model.untaught_twin_of
        },
        invented=frozenset(name for name in models if (places.MODELS / name / FACTS).is_file()),
        queries=frozenset(with_query_page),
        first_queries=first_queries,
        unlisted=unlisted,
        notes={
            name: [
                *describe_controls(name, folders[name], params),
                *sentences,
                *describe_unanswered(scores, name),
            ]
            for name, sentences in _describe_asking(
                {name: paths[name] for name in probed}, params
            ).items()
        },
        confidence=params.score.confidence,
    )


def describe_controls(name: str, folder: Path, params: Params) -> list[str]:
    """Say how many queries of a benchmark have the neutral control, where some do not.

    Args:
        name: of the benchmark.
        folder: of the benchmark.
        params: has the settings of its methods.
    """
    settings = [
        by_benchmark.get(name, {})
        for methods in params.methods.values()
        for by_benchmark in methods.values()
    ]
    if not any(choices.get(neutral.VARIANT) for choices in settings):
        return []
    queries = read_table(folder / "queries.parquet", QUERY_COLUMNS)
    count = len(neutral.select_controlled(queries))
    if count == len(queries):
        return []
    text = f"{count:,} of {len(queries):,} queries have a neutral control."
    return [f"{text} The prompts of the others do not contain their subject."]


def describe_unanswered(scores: pd.DataFrame, name: str) -> list[str]:
    """Warn of each system that leaves more than WARNED of a benchmark's queries unanswered.

    Args:
        scores: a table of scores, columns `metrics.results.COMPARISON`.
        name: of the benchmark.
    """
    rows = select(scores, benchmark=name, metric="unanswered", relation="micro")
    rows = rows[(rows["value"] > WARNED) & ~rows["subset"].str.contains("/")]
    return [
        f"Warning: {row.model} under {row.method} leaves {100 * row.value:.0f} % of the queries of "
        f"{row.subset} unanswered: its texts are cut or empty, or have no name or several. They "
        "count as wrong."
        for row in rows.itertuples()
    ]


def _describe_asking(paths: Mapping[str, list[Path]], params: Params) -> dict[str, list[str]]:
    """Sentences by benchmark: one per model behind a server, one per model that was not asked."""
    sentences: dict[str, list[str]] = {}
    for name, tables in paths.items():
        served = sorted({path.parent.parent.name for path in tables} & {*params.servers})
        sentences[name] = [text for model in served for text in _describe_server(model, params)]
    for path, reason in refusals(places.PREDICTIONS, params).items():
        if path.stem in sentences:
            sentences[path.stem].append(f"Not asked: {reason}.")
    return sentences


def _describe_server(model: str, params: Params) -> list[str]:
    server = read_record(places.MODELS / model)
    text = f"{model} is {server['model']} behind the server {server['host']}."
    sentences = [f"{text} Its weights could not be hashed: the server does not show them."]
    if params.servers[model].zero_retention:
        sentences.append(f"params.yaml states that the server of {model} keeps no prompt.")
    return sentences


def _first_query(queries_of_benchmark: pd.DataFrame) -> str:
    """The identifier of the first query; its number if the identifier contains a name."""
    first = next(queries_of_benchmark.itertuples())
    names = [name.casefold() for name in (first.subject, *first.answers) if name]
    is_named = any(name in first.query_id.casefold() for name in names)
    return "query 1" if is_named else str(first.query_id)


def _describe_state() -> list[str]:
    """The version, commit with its day, and data behind the page.

    Two runs on the same state give the same text.
    """
    md5 = lineage.data_hash()
    data = "data not pinned by data.dvc" if md5 == lineage.NOT_PINNED else f"data {md5[:8]}"
    followed = lineage.followed()
    code = followed and f"code and settings of {followed}"
    parts = [f"medprobe {version('medprobe')}", code, data]
    return [*filter(None, parts)]


def _collect_provenance(tables: Iterable[Path]) -> pd.DataFrame:
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
            system = {"model": path.parent.parent.name, "method": path.parent.name}
            provenance = {name.removeprefix("version."): run.get(name) for name in PROVENANCE}
            rows.append({**system, "finished": f"{end:%Y-%m-%d %H:%M} UTC", **provenance})
    return pd.DataFrame(rows)


def with_names(scores: pd.DataFrame, benchmarks: Iterable[str], *, text: bool) -> pd.DataFrame:
    """Replace relations that are CUIs, such as DisKnE's diseases, by names.

    A concept gets the name that a paper prints for it, so that the paper's numbers can be looked
    up. Otherwise it gets its preferred name where `text` allows it, since names can be licensed.

    Args:
        scores: a table of scores, columns `metrics.results.COMPARISON`.
        benchmarks: whose names are read.
        text: whether licensed text may be shown.

    Returns:
        The scores, sorted.
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


def _make_nonempty(
    benchmarks: list[str], make: Callable[[str], pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """A table for each benchmark, without those that have no rows."""
    tables = {name: make(name) for name in benchmarks}
    return {name: table for name, table in tables.items() if len(table)}
