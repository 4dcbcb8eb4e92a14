"""Stage `significance`: which systems differ by more than chance, by paired tests."""

import json
import math
from pathlib import Path

from medprobe.core import places
from medprobe.core.executor import Executor, in_this_process
from medprobe.core.files import replacing, write_whole
from medprobe.core.params import Params
from medprobe.core.progress import show_progress
from medprobe.metrics.pairs import above_control
from medprobe.metrics.results import prediction_tables
from medprobe.metrics.significance import READINGS, paired_tests

ABOVE_CONTROL = Path("metrics/above_control.json")


def significance(params: Params, executor: Executor = in_this_process) -> None:
    """Write the paired tests of every benchmark's systems.

    Writes `outputs/significance.parquet`, with the columns `metrics.significance.SIGNIFICANCE`, and
    for `dvc metrics` what a method's main variant has above its control:
    `metrics/above_control.json`, by benchmark, model and method.

    Raises:
        BadInput: a prediction table has queries that its benchmark lacks.
    """
    tables = len(prediction_tables(places.PREDICTIONS, params))
    with show_progress("significance", tables, READINGS) as bar:
        bar.advance_to(0)
        tests = paired_tests(
            places.PREDICTIONS, places.BENCHMARKS, params, now=bar, executor=executor
        )
    with replacing(places.SIGNIFICANCE) as path:
        tests.to_parquet(path, index=False)
    by_benchmark: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for (benchmark, model, method), numbers in above_control(tests).items():
        by_model = by_benchmark.setdefault(benchmark, {})
        by_model.setdefault(model, {})[method] = {
            name: round(value, 6) for name, value in numbers.items() if math.isfinite(value)
        }
    write_whole(ABOVE_CONTROL, json.dumps(by_benchmark, indent=1) + "\n")
