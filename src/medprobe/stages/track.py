"""Stage `track`: all results on disk into MLflow, again and again without doubling.

Each probing stage ends with `track_one`, which logs its own result. Results that came out of DVC's
cache ran no code and logged nothing: `medprobe track` alone brings them in, fills a lost or moved
store anew, and adds the drawings of each run.
"""

from pathlib import Path
from typing import Final

from medprobe.core import places
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.progress import show_progress
from medprobe.core.tables import BASELINE
from medprobe.metrics.results import prediction_tables
from medprobe.tracking import runs, store

TRACKED: Final = Path("outputs/tracked.json")


def track_one(model: str, method: str, benchmark: str, params: Params) -> None:
    """Log one result that was just made, without its drawings: `track` adds them.

    Beyond what probing has imported it imports MLflow with its SQL store, and nothing that draws.
    """
    path = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
    with show_progress(f"track {model}, {method}, {benchmark}"):
        store.record(store.connect(), runs.of(path, params, fresh=True))


def track(params: Params) -> None:
    """Log every prediction table on disk with its drawings, each benchmark's paired tests, and the
    comparison of template-based and template-free data sets. Write `outputs/tracked.json`, the keys
    of all results, for DVC."""
    from medprobe.tracking import comparisons

    client = store.connect()
    paths = prediction_tables(places.PREDICTIONS)
    models = [path for path in paths if path.parent.parent.name != BASELINE]
    single = comparisons.above_prior([runs.of(path, params, fresh=False) for path in models])
    results = [*single, *comparisons.results(single, params)]
    with show_progress("track", len(results), "results") as now:
        for done, result in enumerate(results):
            now.advance_to(done, result.name)
            store.record(client, result, figures=True)
    with replacing(TRACKED) as path:
        path.write_text(runs.keys(single), encoding="utf-8")
