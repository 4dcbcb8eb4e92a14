"""Stage `baseline`: what a benchmark's rankings are read against, from its tables alone."""

from medprobe import baselines
from medprobe.core import places
from medprobe.core.tables import BASELINE, BenchmarkTables, Metadata, write_predictions

K = 10  # answers that are ranked, as by the methods


def baseline(benchmark: str) -> None:
    """Write the predictions of the prior, `outputs/predictions/baseline/prior/<benchmark>.parquet`.

    Raises:
        BadInput: the benchmark's tables are missing.
    """
    tables = BenchmarkTables.read(places.BENCHMARKS / benchmark)
    metadata = Metadata.read(places.ABOUT / f"{benchmark}.json")
    out = places.PREDICTIONS / BASELINE / baselines.METHOD / f"{benchmark}.parquet"
    predictions = baselines.prior(tables, metadata.cluster, K)
    if predictions.empty:
        print(f"{benchmark}: each relation has one answer, so that there is no prior")
    write_predictions(predictions, out, "accuracy")
