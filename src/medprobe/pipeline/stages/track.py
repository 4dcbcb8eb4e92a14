"""Stage `track`: log all results to MLflow; running it again adds no second copy.

Each probing stage ends with `track_one`, which logs its result. Results that DVC restored from its
cache ran no code and logged nothing: only `medprobe track` logs them, fills a lost or moved store
again, and adds the drawings of each run.
"""

import json
import sys
from pathlib import Path
from typing import Final

from medprobe.core import places
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.progress import show_progress
from medprobe.core.tables import BASELINE, read_refusal
from medprobe.metrics.results import prediction_tables
from medprobe.tracking import runs, store

TRACKED: Final = Path("outputs/tracked.json")


def track_one(model: str, method: str, benchmark: str, params: Params) -> None:
    """Log one new result, without its drawings, which `track` adds.

    This imports MLflow with its SQL store, and nothing that draws, so that a probing stage ends
    soon. Where the store cannot be used it prints one line: the predictions are whole.
    """
    path = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
    with show_progress(f"track {model}, {method}, {benchmark}"):
        try:
            store.record(store.connect(), runs.of(path, params, fresh=True))
        except store.NotLogged as error:
            print(error, file=sys.stderr)


def track(params: Params, *, required: bool = True) -> None:
    """Log all results.

    These are every prediction table that params.yaml names with its drawings, each benchmark's
    paired tests, and the comparison of template-based and template-free data sets. The runs of
    other results are marked as gone. Writes `outputs/tracked.json`, the keys of all results that
    are logged, for DVC.

    Args:
        params: All of `params.yaml`.
        required: Whether a store that cannot be used is an error, or costs one line only.

    Raises:
        NotLogged: The store cannot be used.
    """
    try:
        logged = _log_all(params)
    except store.NotLogged as error:
        if required:
            raise
        print(error, file=sys.stderr)
        logged = []
    keys = {result.name: result.key for result in logged}
    with replacing(TRACKED) as path:
        path.write_text(json.dumps(keys, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _log_all(params: Params) -> list[store.Result]:
    """Log all results, and return those of single models."""
    from medprobe.tracking import comparisons

    client = store.connect()
    paths = prediction_tables(places.PREDICTIONS, params)
    models = [path for path in paths if path.parent.parent.name != BASELINE]
    single = comparisons.with_controls([runs.of(path, params, fresh=False) for path in models])
    results = [*single, *comparisons.results(single, params)]
    with show_progress("track", len(results), "results") as bar:
        for number, result in enumerate(results):
            bar.advance_to(number, result.name)
            store.record(client, result, figures=True)
    logged = {(result.benchmark, result.model, result.method) for result in results}

    def is_named(benchmark: str, model: str, method: str) -> bool:
        named = params.names_result(model, method, benchmark)
        path = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
        return (named and not read_refusal(path)) or (benchmark, model, method) in logged

    store.mark_gone(client, is_named)
    return single
