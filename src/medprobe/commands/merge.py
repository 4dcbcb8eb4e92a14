"""`medprobe merge`: the results of several groups in one comparison."""

import json
from collections.abc import Sequence
from pathlib import Path

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.tables import Metadata
from medprobe.metrics import Scores
from medprobe.metrics.results import comparison, write_csv
from medprobe.tracking import shared


def merge(paths: Sequence[Path], out: Path) -> None:
    """Write a folder of the results of projects and results files: `results.json` with all of
    them, `comparison.csv`, and scores where a project has them, so that what reads a project's
    results reads these.

    Raises BadInput where the folder is there already, and where results do not go together.
    """
    if out.exists():
        raise BadInput(out, "is there already", "choose another folder")
    together = shared.merged({str(path): shared.read(path) for path in paths})
    scores: dict[tuple[str, str], dict[str, Scores]] = {}
    for one in together.results:
        scores.setdefault((one.model, one.method), {})[one.benchmark] = one.scores
    with replacing(out) as folder:
        folder.mkdir()
        shared.write(together, folder / shared.NAME)
        for name, benchmark in together.benchmarks.items():
            about = {**benchmark.about, "sources": tuple(benchmark.about["sources"])}
            Metadata(**about).write(folder / places.ABOUT / f"{name}.json")
        for (model, method), by_benchmark in scores.items():
            path = folder / places.SCORES / model / f"{method}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(by_benchmark, indent=1) + "\n", encoding="utf-8")
        write_csv(comparison(folder / places.SCORES), folder / "comparison.csv")
