"""Stage `score`: every number of the project, from the predictions on disk."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe import metrics
from medprobe.core import places
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.tables import Metadata, metric_of_predictions
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.results import COMPARISON, prediction_tables, rows_of, score_table, sweep

MAIN_SUBSETS: Final = ("full", "target")  # come before a benchmark's other subsets


def score(params: Params) -> None:
    """Write all scores, `metrics/scores/<model>/<method>.json`, and for `dvc metrics` and `dvc
    plots` the main ones of them, `metrics/summary.json` and `metrics/sweeps/`.

    A file of scores is a map: benchmark -> variant ("default" for the main one) -> subset ->
    relation or a mean of relations -> metric -> value, low, high, n and, over replicates, std.
    Raises BadInput where there are no predictions, or predictions of another benchmark's queries.
    """
    scores: dict[Path, dict[str, Scores]] = {}
    values: list[pd.DataFrame] = []
    for path in prediction_tables(places.PREDICTIONS):
        model, method, benchmark = path.parent.parent.name, path.parent.name, path.stem
        folder = places.BENCHMARKS / benchmark
        found = score_table(path, folder, Scoring.of_model(places.MODELS / model, params))
        scores.setdefault(Path(model, f"{method}.json"), {})[benchmark] = found
        rows = pd.DataFrame(rows_of({benchmark: found}, model, method), columns=COMPARISON)
        primary = Metadata.read(places.ABOUT / f"{benchmark}.json").primary_metric
        first = metrics.find(metric_of_predictions(path)).METRICS[0].name
        values.append(main_values(rows, primary if (rows["metric"] == primary).any() else first))
    table = pd.concat(values)
    with replacing(places.SCORES) as folder:
        for file, content in scores.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(_json(content), encoding="utf-8")
    with replacing(places.SUMMARY) as path:
        path.write_text(_json(summary(table)), encoding="utf-8")
    with replacing(places.SWEEPS) as folder:
        folder.mkdir()
        for name, steps in sweeps(table).items():
            steps.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def main_values(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Of one result's rows of the comparison, those that stand for it: a variant's macro mean of
    `metric` over its main subset."""
    means = rows[(rows["metric"] == metric) & (rows["relation"] == "macro")]
    subsets = {subset for subset in means["subset"] if "/" not in subset}
    main = min(subsets, key=lambda subset: (subset not in MAIN_SUBSETS, subset), default="")
    return means[means["subset"] == main]


def summary(values: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Benchmark -> model -> method -> value of its main variant, or of the first where none is."""
    content: dict[str, dict[str, dict[str, float]]] = {}
    for row in values.sort_values("method").itertuples():
        method = row.method.partition(":")[0]
        content.setdefault(row.benchmark, {}).setdefault(row.model, {}).setdefault(
            method, row.value
        )
    return content


def sweeps(values: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Tables `step, value` of variants that sweep over a setting, named
    `<benchmark>-<model>-<method>-<setting>`."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in values.itertuples():
        if at := sweep(row.method):
            method = row.method.partition(":")[0]
            name = "-".join((row.benchmark, row.model, method, at[0]))
            lines.setdefault(name, []).append((at[1], row.value))
    return {
        name: pd.DataFrame(sorted(steps), columns=["step", "value"])
        for name, steps in lines.items()
    }


def _json(content: Any) -> str:
    """JSON with a line for each innermost map, so that a change of one reads as one line in git."""
    text = json.dumps(content, indent=1, sort_keys=True)
    return re.sub(r"{([^{}]*)}", lambda found: f"{{{' '.join(found[1].split())}}}", text) + "\n"
