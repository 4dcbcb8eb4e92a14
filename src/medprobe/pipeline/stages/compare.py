"""Stage `compare`: all models and methods side by side, as tables, drawings and one page."""

from pathlib import Path

import pandas as pd

from medprobe.core import places
from medprobe.core.executor import Executor, in_this_process
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.progress import show_progress
from medprobe.metrics.results import COMPARISON, prediction_tables, write_csv
from medprobe.metrics.significance import READINGS
from medprobe.report import benchmark_numbers, page
from medprobe.report.page import write_page
from medprobe.report.page_data import PageData
from medprobe.report.queries import write_query_pages
from medprobe.report.reading import read_results


def compare(
    params: Params,
    out: Path = places.REPORTS,
    executor: Executor = in_this_process,
) -> None:
    """Write the report.

    The folder `out` gets `comparison.csv`, `significance.csv`, `statistics.csv`, further tables,
    `figures/*.svg`, `queries/*.html` and `index.html`. Reads metrics/scores, and the tests,
    predictions, benchmarks and models in outputs/. The same input gives the same bytes.

    Args:
        params: the content of params.yaml.
        out: the report's folder.
        executor: what makes chapters and query pages; of this machine.

    Raises:
        BadInput: there are no scores or no paired tests.
    """
    paths: dict[str, list[Path]] = {}
    for path in prediction_tables(places.PREDICTIONS, params):
        paths.setdefault(path.stem, []).append(path)
    with show_progress("compare", sum(map(len, paths.values())), READINGS) as bar:
        bar.advance_to(0)
        results = read_results(params, paths)
        with replacing(out) as folder:
            runs = {name: page.collect_provenance(paths[name]) for name in results.benchmarks}
            runs = {name: table for name, table in runs.items() if len(table)}
            write_page(results, page.describe_state(), runs, folder, executor)
            _write_tables(results, folder)
            shown, text = {name: paths[name] for name in results.benchmarks}, params.track.text
            write_query_pages(shown, folder / "queries", bar, executor, text=text)


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
