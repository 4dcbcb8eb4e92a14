"""The paths of a project, relative to its folder. dvc.yaml names the same paths."""

from pathlib import Path

PARAMS = Path("params.yaml")
PIPELINE = Path("dvc.yaml")
LIBRARIES = Path("requirements.lock")  # versions of the libraries that compute
PLUGINS = Path("plugins")  # methods, benchmarks and metrics of the project itself
DATA = Path("data")
CHECKED = Path("outputs/checked")  # written once params.yaml is valid
NAMED = Path("outputs/named.json")  # the benchmarks, models and methods that params.yaml names
LOWER_CASE = Path("outputs/lower_case.json")  # the models whose texts are lower-cased
BENCHMARKS = Path("outputs/benchmarks")
ABOUT = Path("outputs/about")  # metadata of each benchmark
VALIDATION = Path("outputs/validation")
PASSED = Path("outputs/passed")  # a file for each benchmark that has passed its gate
SENTENCES = Path("outputs/sentences")  # sets of sentences that have passed their gate
MODELS = Path("outputs/models")
PREDICTIONS = Path("outputs/predictions")
PARTS = Path("outputs/parts")  # finished parts of stages; safe to delete
USED_PARTS = Path("outputs/parts/used")  # of each result, the parts that its last run used
REPRO = Path("outputs/parts/.repro.lock")  # held while `medprobe repro` runs
RUNS = Path("outputs/runs")  # time, machine and versions of each result
EXPECTATIONS = Path("expectations")
SIGNIFICANCE = Path("outputs/significance.parquet")  # all paired tests
METRICS = Path("metrics")
SCORES = Path("metrics/scores")
SUMMARY = Path("metrics/summary.json")  # of every method
MAIN = Path("metrics/main.json")  # of each model and benchmark its main result
SWEEPS = Path("metrics/sweeps")  # scores by setting, for `dvc plots`
REPORTS = Path("reports")
