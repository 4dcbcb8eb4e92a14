"""What MLflow is told of all results together: the paired tests of each benchmark, what experts
said of it, and the comparison of template-based and template-free data sets."""

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core import places
from medprobe.core.params import Params
from medprobe.core.parts import fingerprint, table_fingerprint
from medprobe.core.tables import Metadata, read_about
from medprobe.metrics import expert
from medprobe.metrics.results import comparison, primary, subsets, where
from medprobe.metrics.significance import SIGNIFICANCE, read_tests
from medprobe.tracking.headlines import legal
from medprobe.tracking.lineage import UNKNOWN, hashes
from medprobe.tracking.store import Content, Dataset, Result

LOGGED: Final = ("difference", "p_holm")


def results(single: Sequence[Result], params: Params) -> list[Result]:
    """Runs over the results of single models, each logged anew where it would say something new:
    the paired tests that the stage `significance` made, if it has run."""
    made = []
    tests = read_tests() if places.SIGNIFICANCE.is_file() else pd.DataFrame(columns=SIGNIFICANCE)
    for benchmark, table in tests.groupby("benchmark"):
        key = _key({}, table_fingerprint(table), repr(params.score), params.seed)
        content = partial(_tests, str(benchmark), table, params)
        made.append(Result(str(benchmark), "all", "paired-tests", key, content))
    for benchmark in sorted({one.benchmark for one in single}):
        for folder in expert.folders(places.BENCHMARKS / benchmark):
            key = _key(_keys(single, {benchmark}), fingerprint([folder]))
            content = partial(_ratings, benchmark, folder.name)
            made.append(Result(benchmark, "all", f"ratings-{folder.name}", key, content))
    builders = _compared(single)
    if builders:
        models = params.models.model_dump(mode="json")
        key = _key(_keys(single, {*builders}), models, params.track.text)
        content = partial(_template_free, builders, params)
        made.append(Result("template-free", "all", "comparison", key, content))
    return made


def _compared(single: Sequence[Result]) -> dict[str, str]:
    """The benchmarks that hold data sets of the template-free comparison, and their builders."""
    from medprobe.metrics.template_free.data_sets import data_sets

    names = sorted({one.benchmark for one in single})
    builders = {name: read_about(places.BENCHMARKS / name)["builder"] for name in names}
    compared = {data.benchmark for data in data_sets(builders)}
    return {name: builder for name, builder in builders.items() if name in compared}


def _keys(single: Sequence[Result], benchmarks: set[str]) -> dict[str, str]:
    """By name, those of the results that a run over them uses."""
    return {one.name: one.key for one in single if one.benchmark in benchmarks}


def _key(used: dict[str, str], *about: Any) -> str:
    return hashlib.sha256(json.dumps([used, *about], sort_keys=True).encode()).hexdigest()


def _tests(benchmark: str, table: pd.DataFrame, params: Params) -> Content:
    """All tests as a table; as metrics those between two models under one method, by the main
    metric on the main subset."""
    metrics: dict[str, float] = {}
    metadata = Metadata.read(places.ABOUT / f"{benchmark}.json")
    main = where(table, metric=primary(table, metadata), subset=subsets(table, metadata)[0])
    for row in main[main["method_a"] == main["method_b"]].to_dict("records"):
        place = f"tests/{row['method_a']}/{row['model_a']} - {row['model_b']}"
        found = {f"{place}/{name}": float(row[name]) for name in LOGGED}
        metrics |= {name: value for name, value in found.items() if np.isfinite(value)}
    about = {"seed": params.seed, **params.score.model_dump(mode="json")}
    files = {"significance.csv": table.to_csv(index=False, float_format="%.6g")}
    return Content(metrics, params=about, files=files)


def _ratings(benchmark: str, name: str) -> Content:
    """How far raters agree and what they rated, and ratings against answers; items go by their
    numbers."""
    rated = expert.evaluations(places.BENCHMARKS / benchmark)
    one = next(found for found in rated if found.name == name)
    metrics = {
        legal(f"ratings/agreement/{row['of']}/{row['measure']}/{row['raters']}"): row["value"]
        for row in one.agreement.dropna(subset="value").to_dict("records")
    }
    for row in one.rated.to_dict("records"):
        place = f"ratings/rated/{row['subset']}/{row['rater']}"
        metrics |= {legal(place): row["rated"], legal(f"{place}/right"): row["right"]}
    tables = sorted(places.PREDICTIONS.glob(f"*/*/{benchmark}.parquet"))
    folder = f"outputs/benchmarks/{name}"
    files = {
        "agreement": one.agreement,
        "rated": one.rated,
        "ratings": one.ratings[["item", "rater", "rating", "right"]],
        "confusion": expert.confusions(one, tables),
    }
    return Content(
        {key: float(value) for key, value in metrics.items()},
        params={"asked": one.asked, "queries": len(one.queries), "items": len(one.items)},
        files={f"{key}.csv": table.to_csv(index=False) for key, table in files.items()},
        datasets=[Dataset(folder, hashes([folder]).get(folder, UNKNOWN))],
    )


def _template_free(builders: dict[str, str], params: Params) -> Content:
    """All analyses of the scores in metrics/scores, as tables and drawings."""
    from medprobe.metrics.template_free.analyses import analyses
    from medprobe.report.blocks import drawings
    from medprobe.report.results import Results
    from medprobe.report.template_free import chapter

    scores = comparison(places.SCORES)
    numbers = scores[scores["benchmark"].isin(builders)].reset_index(drop=True)
    tables = analyses(numbers, places.PREDICTIONS, places.BENCHMARKS, builders, params)
    files = {f"{name}.csv": table.to_csv(index=False) for name, table in tables.items()}
    shown = chapter(Results(numbers, builders=builders, template_free=tables))
    svgs = drawings(part for one in shown for part in one.parts)
    files |= {f"figures/{name}": svg for name, svg in svgs.items()}
    return Content(_summary(tables), files=files)


def _summary(tables: dict[str, pd.DataFrame]) -> dict[str, float]:
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
