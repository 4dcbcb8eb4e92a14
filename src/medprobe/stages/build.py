"""Stage `build`: a benchmark's tables from its sources."""

from dataclasses import replace

from medprobe import benchmarks, places
from medprobe.benchmarks.statistics import statistics
from medprobe.errors import BadInput, nearest
from medprobe.params import Params, section


def build(name: str, params: Params) -> None:
    """Write `outputs/benchmarks/<name>/`: queries, candidates, further tables, and statistics.csv.

    Raises BadInput where `params.yaml` has no such benchmark or a source is missing or amiss.
    """
    found = benchmarks.find(name)
    if name not in params.benchmarks:
        there = list(params.benchmarks)
        raise BadInput("params.yaml", f"benchmarks: no section '{name}'{nearest(name, there)}")
    settings = section(found.Settings, params.benchmarks[name], f"params.yaml: benchmarks.{name}")
    made = found.build(places.DATA, settings, params.seed)
    made = replace(made, notes={**made.notes, "statistics": statistics(made)})
    made.write(places.BENCHMARKS / name)
