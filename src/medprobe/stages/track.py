"""Stage `track`: all results on disk into MLflow, again and again without doubling.

Each probing stage ends with it for its own result. Results that came out of DVC's cache ran no code
and logged nothing: `medprobe track` alone brings them in, and fills a lost or moved store anew.
"""

from pathlib import Path
from typing import Final

from medprobe.core import places
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.parts import progress
from medprobe.metrics.results import prediction_tables
from medprobe.tracking import comparisons, runs, store

TRACKED: Final = Path("outputs/tracked.json")


def track_one(model: str, method: str, benchmark: str, params: Params) -> None:
    """Log one result that was just made."""
    path = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
    with progress(f"track {model}, {method}, {benchmark}"):
        store.record(store.connect(), runs.of(path, params, fresh=True))


def track(params: Params) -> None:
    """Log every prediction table on disk, each benchmark's paired tests, and the comparison of
    template-based and template-free data sets; write `outputs/tracked.json`, the keys of all
    results, for DVC."""
    client = store.connect()
    results = [runs.of(path, params, fresh=False) for path in prediction_tables(places.PREDICTIONS)]
    every = [*results, *comparisons.results(results, params)]
    with progress("track", len(every), "results") as now:
        for done, result in enumerate(every):
            now.at(done, result.name)
            store.record(client, result)
    with replacing(TRACKED) as path:
        path.write_text(runs.keys(results), encoding="utf-8")
