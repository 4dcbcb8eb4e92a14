"""Runs in MLflow of the ratings by experts."""

from collections.abc import Sequence
from functools import partial

from medprobe.core import places
from medprobe.core.dvc_records import hashes
from medprobe.core.lineage import UNKNOWN
from medprobe.core.params import Params
from medprobe.core.parts import fingerprint
from medprobe.core.spreadsheets import csv_text
from medprobe.metrics.results import prediction_tables
from medprobe.papers.medlama.metrics import expert
from medprobe.tracking.comparisons import make_key
from medprobe.tracking.headlines import legal
from medprobe.tracking.store import Content, Dataset, Result


def list_runs(single: Sequence[Result], params: Params) -> list[Result]:
    """List a run for each evaluation of a benchmark that was probed."""
    entries = []
    for benchmark in sorted({result.benchmark for result in single}):
        probed = [result for result in single if result.benchmark == benchmark]
        for folder in expert.folders(places.BENCHMARKS / benchmark, params.benchmark_names):
            key = make_key(probed, fingerprint([folder]))
            content = partial(_ratings, benchmark, folder.name, params)
            entries.append(Result(benchmark, "all", f"ratings-{folder.name}", key, content))
    return entries


def _ratings(benchmark: str, name: str, params: Params) -> Content:
    """The agreement of raters, their ratings, and ratings against answers; items by number."""
    (evaluation,) = expert.evaluations(places.BENCHMARKS / benchmark, [name])
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
        "confusion": expert.confusions(evaluation, tables),
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
