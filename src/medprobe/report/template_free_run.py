"""The comparison of template-based and template-free probing as one MLflow run."""

import hashlib
import json
from typing import Any

import pandas as pd

from medprobe import places, tracking
from medprobe.params import Params
from medprobe.report.data_sets import DATA_SETS
from medprobe.report.results import Results
from medprobe.report.sections import template_free as page
from medprobe.report.tables import COMPARISON, rows_of
from medprobe.report.template_free import analyses
from medprobe.stages.score import score_table
from medprobe.stages.score import tables as predictions

BENCHMARKS = {data.benchmark for data in DATA_SETS}


def result(params: Params, keys: dict[str, str]) -> tracking.Result | None:
    """The run over all results on disk, whose keys are `<benchmark>/<model>/<method>: hash`; it is
    logged anew where one of them is new. None where none of the data sets was probed."""
    used = {name: key for name, key in keys.items() if name.split("/")[0] in BENCHMARKS}
    if not used:
        return None
    models = params.models.model_dump(mode="json")
    text = json.dumps([used, models, params.track.text], sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()
    return tracking.Result("template-free", "all", "comparison", key, lambda: _content(params))


def _content(params: Params) -> tracking.Content:
    found = [
        row
        for model, method, path in predictions(places.PREDICTIONS)
        if path.stem in BENCHMARKS
        for row in rows_of({path.stem: score_table(path, places.BENCHMARKS, params)}, model, method)
    ]
    numbers = pd.DataFrame(found, columns=COMPARISON)
    tables = analyses(numbers, places.PREDICTIONS, places.BENCHMARKS, params)
    results = Results(numbers, pd.DataFrame(), {}, analyses=tables)
    page.section(results)
    files = {f"{name}.csv": table.to_csv(index=False) for name, table in tables.items()}
    drawings = {f"figures/{name}.svg": svg for name, svg in results.figures.items()}
    return tracking.Content(_metrics(tables), files=files | drawings)


def _metrics(tables: dict[str, pd.DataFrame]) -> dict[str, float]:
    """Kendall's tau and displacement by domain, Pearson's r by kind: those that exist."""
    found: dict[str, Any] = {}
    if "displacement" in tables:
        means = tables["displacement"].groupby("domain")[["mean", "tau"]].mean()
        for domain, row in means.iterrows():
            found |= {f"{domain}/displacement": row["mean"], f"{domain}/tau": row["tau"]}
    if "correlation" in tables:
        over_sets = tables["correlation"]["over"] == "data sets"
        for row in tables["correlation"][over_sets].to_dict("records"):
            found |= {f"{row['kind']}/pearson_r": row["r"], f"{row['kind']}/pearson_p": row["p"]}
    return {name: float(value) for name, value in found.items() if pd.notna(value)}
