"""Stage `track`: log all results to MLflow; running it again adds no second copy.

Each probing stage logs its own results. This stage logs those that came from DVC's cache, fills a
lost or moved store again, and adds what follows from several results.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from medprobe.core import places
from medprobe.core.files import write_whole
from medprobe.core.params import Params
from medprobe.core.progress import show_progress, with_progress
from medprobe.core.tables import read_refusal
from medprobe.metrics.results import prediction_tables
from medprobe.tracking import comparisons, runs, store

TRACKED: Final = Path("outputs/tracked.json")


def track_model(model: str, params: Params) -> None:
    """Log the results of a model that are there.

    Where the store cannot be used it prints one line: the predictions are whole.
    """
    paths = [_table(model, *pair) for pair in params.results(model)]
    paths = [path for path in paths if path.is_file() and not read_refusal(path)]
    try:
        _log(f"track {model}", [runs.run_of_table(path, params) for path in paths])
    except store.NotLogged as error:
        print(error, file=sys.stderr)


def track(params: Params, *, required: bool = True) -> None:
    """Log all results.

    These are every prediction table that params.yaml names, each benchmark's paired tests, and the
    comparison of template-based and template-free data sets. The runs of other results are marked
    as gone. Writes `outputs/tracked.json`, the keys of all results that are logged, for DVC.
    """
    paths = prediction_tables(places.PREDICTIONS, params)
    single = comparisons.with_controls([runs.run_of_table(path, params) for path in paths])
    results = [*single, *comparisons.results(single, params)]
    logged = {(result.benchmark, result.model, result.method) for result in results}

    def is_named(benchmark: str, model: str, method: str) -> bool:
        named = params.names_result(model, method, benchmark)
        is_asked = named and not read_refusal(_table(model, method, benchmark))
        return is_asked or (benchmark, model, method) in logged

    try:
        _log("track", results)
        store.mark_gone(store.connect(), is_named)
    except store.NotLogged as error:
        if required:
            raise
        print(error, file=sys.stderr)
        single = []
    keys = {result.name: result.key for result in single}
    write_whole(TRACKED, json.dumps(keys, indent=1, sort_keys=True) + "\n")


def _table(model: str, method: str, benchmark: str) -> Path:
    return places.PREDICTIONS / model / method / f"{benchmark}.parquet"


def _log(title: str, results: Sequence[store.PendingRun]) -> None:
    """Log results that the store does not have."""
    if not results:
        return
    client = store.connect()
    records = ((number, store.record(client, result)) for number, result in enumerate(results))
    with show_progress(title, len(results), "results") as bar:
        bar.advance_to(0)
        for _ in with_progress(records, [1] * len(results), bar):  # scoring reports predictions
            pass
