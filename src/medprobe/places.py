"""Where everything is, relative to the project's folder: the paths that dvc.yaml names too."""

from pathlib import Path

DATA = Path("data")
BENCHMARKS = Path("outputs/benchmarks")
VALIDATION = Path("outputs/validation")
MODELS = Path("outputs/models")
REWIRED = Path("outputs/rewired")
PREDICTIONS = Path("outputs/predictions")
PARTS = Path("outputs/parts")  # finished parts of stages; safe to delete
EXPECTATIONS = Path("expectations")
METRICS = Path("metrics")
REPORTS = Path("reports")
