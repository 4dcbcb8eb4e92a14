"""Where everything is, relative to the project's folder: the paths that dvc.yaml names too."""

from pathlib import Path

DATA = Path("data")
CHECKED = Path("outputs/checked")  # that params.yaml holds no wrong name
SENTENCES = Path("data/sentences")
BENCHMARKS = Path("outputs/benchmarks")
ABOUT = Path("outputs/about")  # what to know of each benchmark
VALIDATION = Path("outputs/validation")
MODELS = Path("outputs/models")
REWIRED = Path("outputs/rewired")
LOSSES = Path("outputs/losses")  # of rewiring, step by step
PREDICTIONS = Path("outputs/predictions")
PARTS = Path("outputs/parts")  # finished parts of stages; safe to delete
REPRO = Path("outputs/parts/.repro.lock")  # held while `medprobe repro` runs
RUNS = Path("outputs/runs")  # when, where and by what versions each result was made
EXPECTATIONS = Path("expectations")
SIGNIFICANCE = Path("outputs/significance.parquet")  # all paired tests
METRICS = Path("metrics")
SCORES = Path("metrics/scores")
SUMMARY = Path("metrics/summary.json")
SWEEPS = Path("metrics/sweeps")  # by setting, for `dvc plots`
REPORTS = Path("reports")
QUERIES = Path("outputs/queries")  # pages of queries with their texts, which may be licensed
