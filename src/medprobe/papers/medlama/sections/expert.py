"""What experts say: accuracy by their ratings, how far they agree, ratings against answers."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import pandas as pd

from medprobe.core import places
from medprobe.core.dvc_records import hashes
from medprobe.core.lineage import UNKNOWN
from medprobe.core.papers import published
from medprobe.core.params import Params
from medprobe.core.parts import fingerprint
from medprobe.core.spreadsheets import csv_text
from medprobe.metrics.results import prediction_tables
from medprobe.papers.medlama.metrics.expert import (
    RATED,
    Evaluation,
    Expert,
    confusions,
    evaluations,
    folders,
)
from medprobe.report.blocks import Block, Cell, Part, Table, Tag, folded, paragraph, part
from medprobe.report.numbers import MISSING, count, metric_cells, metric_head
from medprobe.report.page_data import PageData
from medprobe.report.sections import Section
from medprobe.tracking.comparisons import make_key
from medprobe.tracking.headlines import legal
from medprobe.tracking.store import Content, Dataset, PendingRun

REPORTED: Final = ("acc_at_1", "acc_at_10", *(rating.name for rating in Expert.METRICS))
QUESTIONS: Final = {  # about what raters rate
    "predictions": "Raters did not know which model made a prediction.",
    "prompts": "Raters rated whether each prompt states a fact.",
}
SCORES: Final = (
    "A prediction is right if more than half of its raters rate it so. A system is scored on the "
    "queries whose first predictions are all rated. Corrected accuracy is that of all queries, "
    "moved by how far experts and answers differ on those rated. Hits and predictions rated right "
    "are shares of the first ten predictions. Rows with a source are a paper's own numbers."
)


def section(results: PageData, benchmark: str) -> list[Part]:
    """For each evaluation: who rated how much, the systems' scores, agreement, confusion tables."""
    blocks = (
        [
            Tag(evaluation.name),
            _progress(evaluation),
            *(
                [_facts(evaluation.rated)]
                if evaluation.target == "prompts"
                else _scores(results, benchmark, evaluation)
            ),
            *_agreement(evaluation),
            *_confusion(results.tables[f"{evaluation.name}-ratings"]),
        ]
        for evaluation in evaluations(results.folder(benchmark), results.params.benchmark_names)
    )
    return part("By experts", *blocks)


def _progress(evaluation: Evaluation) -> Table:
    body: list[list[str | Cell]] = [
        [str(rater), count(rows["rated"].sum()), count(rows["items"].sum())]
        for rater, rows in evaluation.rated.groupby("rater", sort=True)
    ]
    size = f"{len(evaluation.items):,} {evaluation.target}"
    if evaluation.target == "predictions":
        size += f" of {len(evaluation.queries):,} queries"
    return Table(["rater", "rated", "given"], body, f"{size}. {QUESTIONS[evaluation.target]}")


def _scores(results: PageData, benchmark: str, evaluation: Evaluation) -> list[Block]:
    """The scores of each system, and what the papers print of models that are theirs."""
    rows = results.rows(
        benchmark, subset=f"{evaluation.subset}/{RATED}:{evaluation.name}", relation="micro"
    )
    body: list[list[str | Cell]] = []
    for (model, method), group in rows.groupby(["model", "method"], sort=True):
        cells = metric_cells(group, REPORTED)
        body.append([str(model), str(method), *cells, count(group["n"].min()), MISSING])
    printed, notes = _published(results, benchmark, evaluation.subset) if body else ([], ())
    heads = ["model", "method", *map(metric_head, REPORTED), "queries"]
    return [Table([*heads, "source"], body + printed, SCORES), *paragraph(*notes)]


def _published(
    results: PageData, benchmark: str, subset: str
) -> tuple[list[list[str | Cell]], Iterable[str]]:
    """Lines of published numbers, and the notes on them."""
    lines: list[list[str | Cell]] = []
    notes: dict[str, None] = {}
    for name in sorted({*results.published.values()}):
        where = (name, results.printed(benchmark), f"{subset}/{RATED}", "micro", "contrastive")
        for paper, number, row in published(*where):
            notes |= dict.fromkeys(paper.tables[number].notes)
            cells = [
                Cell(f"{row.values[measure]:g}", row.values[measure] / 100)
                if measure in row.values
                else MISSING
                for measure in REPORTED
            ]
            lines.append([row.model, "contrastive", *cells, MISSING, paper.version])
    return lines, notes


def _facts(rated: pd.DataFrame) -> Table:
    body: list[list[str | Cell]] = []
    for subset, rows in rated.groupby("subset", sort=True):
        shares = (100 * rows["right"] / rows["rated"]).tolist()
        named = [*zip(rows["rater"], shares, strict=True), ("mean", sum(shares) / len(shares))]
        body += [[str(subset), rater, Cell(f"{share:.1f}", share)] for rater, share in named]
    return Table(["subset", "rater", "states a fact, %"], body)


def _agreement(evaluation: Evaluation) -> list[Block]:
    if evaluation.agreement.empty:
        return []
    body = [
        [
            *(row.of, row.measure, row.raters, count(row.items)),
            Cell(MISSING if pd.isna(row.value) else f"{row.value:.3f}", row.value),
        ]
        for row in evaluation.agreement.itertuples()
    ]
    heads = ["of", "measure", "raters", "items", "value"]
    return [Table(heads, body, "How far the raters agree")]


def _confusion(table: pd.DataFrame) -> list[Block]:
    """Ratings against answers, one table per system and k, for the main variant."""
    tables: list[Block] = []
    for (model, method, k), rows in table.groupby(["model", "method", "k"], sort=True):
        counts = rows.pivot_table(index="rating", columns="gold", values="count", fill_value=0)
        counts = counts.reindex(columns=[True, False], fill_value=0)
        total = counts.to_numpy().sum()
        body: list[list[str | Cell]] = [
            [str(rating), *(_share(number, total) for number in (*line, line.sum()))]
            for rating, line in counts.sort_index(ascending=False).iterrows()
        ]
        body.append(["all", *(_share(n, total) for n in (*counts.sum(), total))])
        heads = ["rating", "an answer", "no answer", "all"]
        tables.append(Table(heads, body, f"{model}, {method}: first {k}"))
    return folded("Ratings against the benchmark's answers", tables)


def _share(number: float, total: float) -> Cell:
    return Cell(f"{number:,.0f}  ({100 * number / total:.1f} %)", number)


def tables(results: PageData) -> dict[str, pd.DataFrame]:
    """Ratings against answers, and the agreement of raters, by evaluation."""
    found: dict[str, pd.DataFrame] = {}
    for benchmark in results.benchmarks:
        systems = results.systems(benchmark).values()
        for evaluation in evaluations(results.folder(benchmark), results.params.benchmark_names):
            found[f"{evaluation.name}-ratings"] = confusions(evaluation, systems)
            found[f"{evaluation.name}-agreement"] = evaluation.agreement
    return found


def list_runs(single: Sequence[PendingRun], params: Params) -> list[PendingRun]:
    """List a run for each evaluation of a benchmark that was probed."""
    entries = []
    for benchmark in sorted({result.benchmark for result in single}):
        probed = [result for result in single if result.benchmark == benchmark]
        for folder in folders(places.BENCHMARKS / benchmark, params.benchmark_names):
            key = make_key(probed, fingerprint([folder]))
            content = partial(_ratings, benchmark, folder.name, params)
            entries.append(PendingRun(benchmark, "all", f"ratings-{folder.name}", key, content))
    return entries


def _ratings(benchmark: str, name: str, params: Params) -> Content:
    """The agreement of raters, their ratings, and ratings against answers; items by number."""
    (evaluation,) = evaluations(places.BENCHMARKS / benchmark, [name])
    metrics = {
        legal(f"ratings/agreement/{row['of']}/{row['measure']}/{row['raters']}"): row["value"]
        for row in evaluation.agreement.dropna(subset="value").to_dict("records")
    }
    for row in evaluation.rated.to_dict("records"):
        place = f"ratings/rated/{row['subset']}/{row['rater']}"
        metrics |= {legal(place): row["rated"], legal(f"{place}/right"): row["right"]}
    tables = [
        path for path in prediction_tables(places.PREDICTIONS, params) if path.stem == benchmark
    ]
    folder = f"outputs/benchmarks/{name}"
    files = {
        "agreement": evaluation.agreement,
        "rated": evaluation.rated,
        "ratings": evaluation.ratings[["item", "rater", "rating", "right"]],
        "confusion": confusions(evaluation, tables),
    }
    return Content(
        {key: float(value) for key, value in metrics.items()},
        params={
            "asked": evaluation.target,
            "queries": len(evaluation.queries),
            "items": len(evaluation.items),
        },
        files={f"{key}.csv": csv_text(table) for key, table in files.items()},
        datasets=[Dataset(folder, hashes().get(folder, UNKNOWN), "evaluation")],
        note="The agreement of experts, and their ratings against the benchmark's answers.",
    )


SECTION = Section(110, section, tables=tables, runs=list_runs)
