"""Stage `significance`: which systems differ by more than chance, by paired tests."""

from pathlib import Path

from medprobe.core import places
from medprobe.core.executor import Executor, local
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.progress import progress
from medprobe.metrics.results import prediction_tables
from medprobe.metrics.significance import READINGS, paired_tests


def significance(
    params: Params, out: Path = places.SIGNIFICANCE, executor: Executor = local
) -> None:
    """Write the paired tests of every benchmark's systems to the table `out`, with the columns
    `metrics.significance.SIGNIFICANCE`. Raises BadInput where predictions are of another
    benchmark's queries."""
    tables = len(list(prediction_tables(places.PREDICTIONS)))
    with progress("significance", tables, READINGS) as now:
        now.at(0)
        tests = paired_tests(
            places.PREDICTIONS, places.BENCHMARKS, params, now=now, executor=executor
        )
    with replacing(out) as path:
        tests.to_parquet(path, index=False)
