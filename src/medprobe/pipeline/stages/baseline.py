"""Stage `baseline`: what a benchmark's rankings are read against, from its tables alone."""

from medprobe.core import baselines, places
from medprobe.core.tables import BASELINE, BenchmarkTables, write_predictions


def baseline(benchmark: str) -> None:
    """Write what is reached without looking at a subject.

    They are `outputs/predictions/baseline/<name>/<benchmark>.parquet`: the predictions of the
    `majority`, and the expected values of `random_answer` and `chance`.

    Raises:
        BadInput: the benchmark's tables are missing.
    """
    tables = BenchmarkTables.read(places.BENCHMARKS / benchmark)
    for name, (table, family) in baselines.baselines(tables).items():
        if table.empty:
            print(f"{benchmark}: each relation has one answer, so that there is no {name}")
        write_predictions(
            table, places.PREDICTIONS / BASELINE / name / f"{benchmark}.parquet", family
        )
