"""The paper's size, a stage at a time, each by the stage's own function in a process of its own.

    python -m bench.paper_size              # what is scored in 1.5 GiB: three minutes
    python -m bench.paper_size compare      # one row of the table in docs/reference/performance.md

| row | what runs |
| --- | --- |
| build | MedLAMA from all 96 million rows of the UMLS (9 GB of disk) |
| validate | the gate on MedLAMA: 19 relations, 1,000 queries each and 807 hard ones, 22,923 names |
| score | one model's 13.7 million predictions: ten sentence sets at four checkpoints |
| track | the same into MLflow |
| compare | eight such models: their tests, the page and the pages of queries |
| many-compare | 500 prompts of LIPID's shape, a hundred models |

Names and predictions are invented; lengths and numbers are the released benchmarks'. A comparison's
models have two prediction tables among them, by turns, so that differences are tested, and little
disk is used.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from medprobe import benchmarks
from medprobe.core import places
from medprobe.core.benchmark_statistics import statistics
from medprobe.core.params import Params
from medprobe.core.tables import SCORER, BenchmarkTables
from medprobe.papers.medlama.benchmarks.medlama.queries import RELATIONS

HERE = Path(__file__).parent.parent
QUERIES, HARD, NAMES = 1_000, 807, 22_923  # of each of MedLAMA's relations
SETS, STEPS, K = 10, ("", "step-50", "step-100", "step-150"), 10
PROMPTS = {"chem": 260, "gene": 240}  # of LIPID's shape
MODELS = [f"model-{number:02}" for number in range(100)]
QUERY_COLUMNS = ["query_id", "relation", "subset", "subject", "subject_id", "prompt"]
QUERY_COLUMNS += ["answers", "answer_ids"]
READ = ["source", "what", "name", "rows"]
METHODS = {"medlama": "contrastive", "lipid": "mask_average"}


class Row(NamedTuple):
    """What is there before the clock starts, and what then runs."""

    prepare: Callable[[], None]
    run: Callable[[], Any]


def params() -> Params:
    return Params.model_validate(
        {
            "models": {"masked": {name: {} for name in MODELS}},
            "benchmarks": {name: {name: {}} for name in METHODS},
            "methods": {"masked": {method: {name: {}} for name, method in METHODS.items()}},
        }
    )


def names(count: int) -> list[str]:
    from bench import made  # with torch, which scoring does without

    return made.names(count, 0)


def benchmark(name: str, rows: Sequence[tuple[Any, ...]], offered: pd.DataFrame) -> None:
    """Write a benchmark whose queries are these rows."""
    written(name, pd.DataFrame(rows, columns=QUERY_COLUMNS), offered)


def written(name: str, queries: pd.DataFrame, offered: pd.DataFrame) -> None:
    """Write a benchmark's tables and what to know of it."""
    read = pd.DataFrame([("made up", "rows", name, len(queries))], columns=READ)
    queries = queries.assign(benchmark=name)
    tables = BenchmarkTables(queries, offered, others={"sources": read}, builder=name)
    tables.notes["statistics"] = statistics(tables)
    tables.write(places.BENCHMARKS / name)
    benchmarks.find(name).metadata.write(places.ABOUT / f"{name}.json")


def medlama() -> None:
    draw, offered = np.random.default_rng(0), names(NAMES)
    rows = []
    for relation in RELATIONS:
        for subset, count in (("full", QUERIES), ("hard", HARD)):
            for number, place in enumerate(draw.choice(len(offered), count, replace=False)):
                answers = [offered[i] for i in draw.choice(len(offered), 3, replace=False)]
                about = (f"{subset}-{relation}-{number}", relation, subset)
                subject = (offered[place], f"C{place:07}", f"{offered[place]} is related to [Y] .")
                rows.append((*about, *subject, answers, [f"C{i:07}" for i in range(3)]))
    table = pd.DataFrame({"name": offered, "id": [f"C{i:07}" for i in range(NAMES)]})
    subsets = [table.assign(type="answer", subset=subset) for subset in ("full", "hard")]
    benchmark("medlama", rows, pd.concat(subsets, ignore_index=True))


def lipid() -> None:
    draw, offered = np.random.default_rng(0), names(12_000)
    rows, tables = [], []
    for subset, count in PROMPTS.items():
        of_subset = offered[:4_000] if subset == "chem" else offered[4_000:]
        tables.append(
            pd.DataFrame({"name": of_subset, "id": of_subset, "type": subset, "subset": subset})
        )
        for number, place in enumerate(draw.integers(0, len(of_subset), count)):
            about = (f"lipid/{subset}/{number}", subset, subset, "", "")
            rows.append(
                (*about, f"in case {number} [Y] was seen .", [of_subset[place]], [of_subset[place]])
            )
    queries = pd.DataFrame(rows, columns=QUERY_COLUMNS).assign(cut_off="2021-06-01")
    written("lipid", queries, pd.concat(tables, ignore_index=True))


def ranked(name: str, variants: Sequence[str], sets: Sequence[str], seed: int) -> Iterator[Any]:
    """Predictions of ten names for each query of a benchmark, a variant and replicate at a time."""
    draw = np.random.default_rng(seed)
    tables = BenchmarkTables.read(places.BENCHMARKS / name)
    ids = tables.queries["query_id"].to_numpy(str)
    offered = tables.candidates.drop_duplicates("name")
    offered_names, offered_ids = offered["name"].to_numpy(str), offered["id"].to_numpy(str)
    for variant in variants:
        for replicate in sets:
            size = len(ids) * K
            place = draw.integers(0, len(offered_names), size)
            yield {
                "variant": np.repeat(variant, size),
                "replicate": np.repeat(replicate, size),
                "query_id": np.repeat(ids, K),
                "rank": np.tile(np.arange(1, K + 1), len(ids)),
                "prediction": offered_names[place],
                "prediction_id": offered_ids[place],
                "score": -np.sort(draw.random((len(ids), K)), axis=1).ravel().round(2),
                "hit": draw.random(size) < 0.02,
            }


def predictions(name: str, seed: int, sets: int) -> Iterator[dict[str, Any]]:
    """The predictions of a model on a benchmark, in pieces."""
    if name != "medlama":
        return ranked(name, [""], [""], seed)
    return ranked(name, STEPS, [f"set-{number}" for number in range(sets)], seed)


def predict(name: str, models: Sequence[str], sets: int = SETS) -> None:
    """Write prediction tables: of two models, and for the others as links to these."""
    scorer = {SCORER: b"accuracy"}
    paths = [places.PREDICTIONS / model / METHODS[name] / f"{name}.parquet" for model in models]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        if number > 1:
            path.hardlink_to(paths[number % 2])
            continue
        writer, count = None, 0
        for columns in predictions(name, number, sets):
            table = pa.Table.from_pandas(pd.DataFrame(columns), preserve_index=False)
            writer = writer or pq.ParquetWriter(path, table.schema.with_metadata(scorer))
            writer.write_table(table.replace_schema_metadata(scorer))
            count += len(table)
        assert writer
        writer.close()
    print(f"{count:,} predictions a model, {paths[0].stat().st_size / 2**20:.0f} MiB", flush=True)


def of(name: str, models: Sequence[str]) -> Callable[[], None]:
    """Prepares a benchmark with predictions of these models; of several with scores too, which are
    of one sentence set."""

    def prepare() -> None:
        globals()[name]()
        if len(models) > 1:
            predict(name, models[:2], sets=1)
            score()
            for number, model in enumerate(models[2:]):
                shutil.copytree(places.SCORES / models[number % 2], places.SCORES / model)
        predict(name, models)

    return prepare


def build() -> None:
    from medprobe.pipeline.stages.build import build as stage

    stage("medlama", params())
    queries = pd.read_parquet(places.BENCHMARKS / "medlama/queries.parquet", columns=["subset"])
    print(f"{len(queries):,} queries")


def write_umls() -> None:
    from bench import umls

    umls.generate(places.DATA, umls.ROWS)


def validate() -> None:
    from medprobe.core.errors import BadInput
    from medprobe.pipeline.stages.validate import validate as stage

    try:
        stage("medlama", params())
    except BadInput as error:  # invented relations are none of MedLAMA's
        print(f"  all checks ran; the first that failed: {error}"[:100])


def score() -> None:
    from medprobe.pipeline.stages.score import score as stage

    stage(params())


def track() -> None:
    from medprobe.pipeline.stages.track import track as stage
    from medprobe.tracking import store

    stage(params())
    client = store.connect()
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    runs = [run.data for run in client.search_runs(experiments, max_results=1_000)]
    most = {part: max(len(getattr(run, part)) for run in runs) for part in ("metrics", "params")}
    files = [path.stat().st_size for path in store.folder().rglob("artifacts/**/*.*")]
    largest = f"{len(files)} artefacts, the largest of {max(files) / 1e6:.1f} MB"
    print(f"  {len(runs)} runs, {most} at most, {largest}")


def compare() -> None:
    from medprobe.pipeline.stages.compare import compare as stage

    stage(params())
    for page in (places.REPORTS / "index.html", *places.REPORTS.glob("queries/*.html")):
        print(f"  {page}: {page.stat().st_size / 1e6:.1f} MB")


ROWS = {
    "build": Row(write_umls, build),
    "validate": Row(medlama, validate),
    "score": Row(of("medlama", MODELS[:1]), score),
    "track": Row(of("medlama", MODELS[:1]), track),
    "compare": Row(of("medlama", MODELS[:8]), compare),
    "many-compare": Row(of("lipid", MODELS), compare),
}


def main(rows: Sequence[str]) -> None:
    """Print the figures of these rows."""
    for row in rows:
        with tempfile.TemporaryDirectory() as scratch:
            Path(scratch, "expectations").symlink_to(HERE / "expectations")
            Path(scratch, "requirements.lock").symlink_to(HERE / "requirements.lock")
            way = os.environ | {"PYTHONPATH": f"{HERE}:{HERE / 'src'}"}
            for part in ("prepare", "run"):
                command = [sys.executable, "-m", "bench.paper_size", row, part]
                subprocess.run(command, check=True, cwd=scratch, env=way)


if __name__ == "__main__":
    if sys.argv[2:]:
        begin = time.perf_counter()
        getattr(ROWS[sys.argv[1]], sys.argv[2])()
        of_whom = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)  # the largest of its forks
        used = [resource.getrusage(usage) for usage in of_whom]
        if sys.argv[2] == "run":
            seconds = sum(usage.ru_utime + usage.ru_stime for usage in used)
            gib = max(usage.ru_maxrss for usage in used) / 2**20
            wall = time.perf_counter() - begin
            print(f"{sys.argv[1]:<14} {seconds:6.1f} CPU s, {wall:6.1f} s, {gib:5.2f} GiB")
    else:
        main(sys.argv[1:] or ["score"])
