"""Paired tests between models and between methods: one table, and an MLflow run a benchmark."""

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd

from medprobe import benchmarks as registry
from medprobe import places, tracking
from medprobe.params import Params
from medprobe.report.tables import SIGNIFICANCE, significance
from medprobe.stages.score import per_query, tables
from medprobe.tables import read_table

LOGGED = ("difference", "p_holm", "smallest_difference")


def tests(
    predictions: Path, benchmarks: Path, params: Params, only: str | None = None
) -> pd.DataFrame:
    """The paired tests of every benchmark, or of one."""
    by_benchmark: dict[str, dict[tuple[str, str], pd.DataFrame]] = {}
    for model, method, path in tables(predictions):
        if only not in (None, path.stem):
            continue
        values = _values(path, benchmarks)
        for variant, part in values.groupby("variant", sort=True):
            name = f"{method}:{variant}" if variant else method
            by_benchmark.setdefault(path.stem, {})[(model, name)] = part
    done = [
        significance(systems, benchmark, params.score, params.seed)
        for benchmark, systems in sorted(by_benchmark.items())
    ]
    return pd.concat(done, ignore_index=True) if done else pd.DataFrame(columns=SIGNIFICANCE)


def _values(table: Path, benchmarks: Path) -> pd.DataFrame:
    """What is compared: the values that are averaged, one row a query; of a benchmark whose metric
    is no mean, what its `paired(predictions, folder)` gives."""
    module = registry.find(table.stem)
    if hasattr(module, "paired"):
        values: pd.DataFrame = module.paired(read_table(table, []), benchmarks / table.stem)
        return values
    return per_query(table, benchmarks)


def runs(params: Params, keys: dict[str, str]) -> Iterator[tracking.Result]:
    """A run for each benchmark, over all results on disk, whose keys are
    `<benchmark>/<model>/<method>: hash`; it is logged anew where one of them is new."""
    for benchmark in sorted({name.split("/")[0] for name in keys}):
        used = {name: key for name, key in keys.items() if name.split("/")[0] == benchmark}
        text = json.dumps([used, repr(params.score), params.seed], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()
        content = partial(_content, benchmark, params)
        yield tracking.Result(benchmark, "all", "paired-tests", key, content)


def _content(benchmark: str, params: Params) -> tracking.Content:
    """All tests as a table; as metrics those between two models under one method."""
    table = tests(places.PREDICTIONS, places.BENCHMARKS, params, benchmark)
    metrics = {}
    for row in table[table["method_a"] == table["method_b"]].to_dict("records"):
        pair = f"{row['model_a']} - {row['model_b']}"
        for name in LOGGED:
            if pd.notna(row[name]):
                place = (row["subset"], row["metric"], row["method_a"], pair, name)
                metrics["/".join(place)] = float(row[name])
    about = {"seed": params.seed, **params.score.model_dump(mode="json")}
    files = {"significance.csv": table.to_csv(index=False, float_format="%.6g")}
    return tracking.Content(metrics, params=about, files=files)
