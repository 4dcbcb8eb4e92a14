"""The paper's size: MedLAMA's 19 relations, 1,000 queries each and the harder ones, under one model
with ten sentence sets at four checkpoints: 14 million predictions, which are scored, in 1.5 GiB.

    python -m bench.paper_size        # three minutes on two free cores

Names and predictions are invented; lengths and numbers are the released benchmark's.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from medprobe.core.params import Params
from medprobe.core.tables import FAMILY, BenchmarkTables, Metadata
from medprobe.metrics import Scoring
from medprobe.metrics.results import score_table
from medprobe.metrics.significance import paired_table

RELATIONS, QUERIES, HARD, NAMES = 19, 1_000, 807, 22_923
SETS, STEPS, K = 10, ("", "step-50", "step-100", "step-150"), 10


def benchmark(names: list[str], folder: Path) -> pd.DataFrame:
    """Write the benchmark's tables; returns its queries."""
    draw = np.random.default_rng(0)
    rows = []
    for relation in range(RELATIONS):
        for subset, count in (("full", QUERIES), ("hard", HARD)):
            for number, subject in enumerate(draw.choice(len(names), count, replace=False)):
                answers = [names[i] for i in draw.choice(len(names), 3, replace=False)]
                about = (f"{subset}-{relation}-{number}", "medlama", f"relation_{relation:02}")
                prompt = f"{names[subject]} is related to [Y] ."
                ids = [f"C{i}" for i in range(3)]
                rows.append((*about, names[subject], "C", prompt, answers, ids, subset))
    columns = ["query_id", "benchmark", "relation", "subject", "subject_id", "prompt"]
    queries = pd.DataFrame(rows, columns=[*columns, "answers", "answer_ids", "subset"])
    offered = pd.DataFrame({"name": names, "id": "C", "type": ""})
    subsets = [offered.assign(subset=subset) for subset in ("full", "hard")]
    BenchmarkTables(queries, pd.concat(subsets, ignore_index=True)).write(folder)
    return queries


def predictions(queries: pd.DataFrame, names: list[str], path: Path) -> int:
    """Write the prediction table, a checkpoint at a time; returns its rows."""
    draw, count, writer = np.random.default_rng(1), 0, None
    for variant in STEPS:
        for replicate in range(SETS):
            size = len(queries) * K
            columns = {
                "variant": np.repeat(variant, size),
                "replicate": np.repeat(f"set-{replicate}", size),
                "query_id": np.repeat(queries["query_id"].to_numpy(str), K),
                "rank": np.tile(np.arange(1, K + 1), len(queries)),
                "prediction": np.array(names)[draw.integers(0, len(names), size)],
                "prediction_id": np.repeat("C1234567", size),
                "score": -np.sort(draw.random((len(queries), K)), axis=1).ravel().round(2),
                "hit": draw.random(size) < 0.02,
            }
            table = pa.Table.from_pandas(pd.DataFrame(columns), preserve_index=False)
            table = table.replace_schema_metadata({FAMILY: b"accuracy"})
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
            count += size
    assert writer
    writer.close()
    return count


def make(scratch: Path) -> None:
    """Write benchmark and predictions."""
    from bench import made as shared  # with torch, which scoring does without

    names = shared.names(NAMES, 0)
    rows = predictions(benchmark(names, scratch / "medlama"), names, scratch / "medlama.parquet")
    size = (scratch / "medlama.parquet").stat().st_size / 2**20
    print(f"{rows:,} predictions, {size:.0f} MiB")


def score(scratch: Path) -> None:
    """All numbers of the predictions, as the stage `score` makes them."""
    score_table(scratch / "medlama.parquet", scratch / "medlama", _scoring(scratch))


def pair(scratch: Path) -> None:
    """What paired tests compare, as the stage `compare` makes it."""
    paired_table(scratch / "medlama.parquet", scratch / "medlama", _scoring(scratch))


def _scoring(scratch: Path) -> Scoring:
    return Scoring.of(scratch, Metadata("", "", "", (), "acc_at_1", "subject"), Params())


JOBS = {job.__name__: job for job in (make, score, pair)}


def main() -> None:
    """Print the figures, each job's from a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        for job in JOBS:
            subprocess.run([sys.executable, "-m", "bench.paper_size", job, scratch], check=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        JOBS[sys.argv[1]](Path(sys.argv[2]))
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds, gib = used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20
        print(f"{sys.argv[1]:<6} {seconds:6.1f} CPU s, peak {gib:5.2f} GiB", flush=True)
    else:
        main()
