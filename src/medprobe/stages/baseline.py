"""Stage `baseline`: what a benchmark's rankings are read against, from its tables alone."""

from medprobe import baselines
from medprobe.core import places
from medprobe.core.tables import BASELINE, BenchmarkTables, Metadata, write_predictions

K = 11  # answers that are ranked: ten, and one more where the query's own subject is left out


def baseline(benchmark: str) -> None:
    """Write what is reached without looking at a subject.

    They are `outputs/predictions/baseline/<name>/<benchmark>.parquet`: the predictions of the
    `prior`, and the expected values of `any_answer` and `chance`.

    Raises:
        BadInput: the benchmark's tables are missing.
    """
    tables = BenchmarkTables.read(places.BENCHMARKS / benchmark)
    cluster = Metadata.read(places.ABOUT / f"{benchmark}.json").cluster
    prior = baselines.prior(tables, cluster, K)
    if prior.empty:
        print(f"{benchmark}: each relation has one answer, so that there is no prior")
    contents = {
        baselines.METHOD: (prior, "accuracy"),
        baselines.ANY_ANSWER: (baselines.any_answer(tables, cluster), "chance"),
        baselines.CHANCE: (baselines.chance(tables, cluster), "chance"),
    }
    for name, (table, family) in contents.items():
        out = places.PREDICTIONS / BASELINE / name / f"{benchmark}.parquet"
        write_predictions(table, out, family)
