"""MLflow runs over several results.

These are the paired tests of each benchmark, the ratings by experts, and the comparison of
template-based and template-free data sets.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.core import places
from medprobe.core.params import Params
from medprobe.core.parts import fingerprint, table_fingerprint
from medprobe.core.tables import Metadata, read_about
from medprobe.metrics import significance
from medprobe.metrics.results import (
    comparison,
    prediction_tables,
    primary_metric,
    select,
    subsets,
)
from medprobe.metrics.significance import SIGNIFICANCE, read_tests
from medprobe.papers.medlama.metrics import expert
from medprobe.papers.template_free.analyses.ranks import BETWEEN
from medprobe.tracking.benchmark_numbers import count_parameters
from medprobe.tracking.headlines import legal
from medprobe.tracking.lineage import UNKNOWN, hashes
from medprobe.tracking.store import Content, Dataset, Result

TEMPLATE_FREE: Final = "Filled templates against natural sentences: do they measure the same?"
LOGGED: Final = ("difference", "p")  # p is the one that decides: the larger of both questions


def results(single: Sequence[Result], params: Params) -> list[Result]:
    """List the runs over the results of single models; a run with new content has a new key.

    The paired tests are those of the stage `significance`, if it has run.
    """
    entries = []
    tests = read_tests() if places.SIGNIFICANCE.is_file() else pd.DataFrame(columns=SIGNIFICANCE)
    for benchmark, table in tests.groupby("benchmark"):
        key = _key({}, table_fingerprint(table), repr(params.score), params.seed)
        content = partial(_tests, str(benchmark), table, params)
        entries.append(Result(str(benchmark), "all", "paired-tests", key, content))
    for benchmark in sorted({result.benchmark for result in single}):
        for folder in expert.folders(places.BENCHMARKS / benchmark, params.benchmark_names):
            key = _key(_keys(single, {benchmark}), fingerprint([folder]))
            content = partial(_ratings, benchmark, folder.name, params)
            entries.append(Result(benchmark, "all", f"ratings-{folder.name}", key, content))
    builders = _template_free_builders(single)
    if builders:
        models = params.models.model_dump(mode="json")
        settings = (repr(params.score), params.seed, params.track.text)
        key = _key(_keys(single, {*builders}), models, *settings)
        content = partial(_template_free, builders, params)
        identity = ("template-free", "all", "comparison", key)
        entries.append(Result(*identity, content, about=TEMPLATE_FREE))
    return entries


def above_baseline(single: Sequence[Result]) -> list[Result]:
    """Add the difference to the strongest baseline to results.

    `above_baseline` is the difference of the main metric, and `above_baseline_p` the stricter
    corrected p of its paired test (`significance.above_baseline`). A result that is compared with
    no baseline has neither.
    """
    if not places.SIGNIFICANCE.is_file():
        return list(single)
    numbers = significance.above_baseline(read_tests())
    results = []
    for result in single:
        test = numbers.get((result.benchmark, result.model, result.method))
        late = {"above_baseline": test["difference"], "above_baseline_p": test["p"]} if test else {}
        results.append(replace(result, late=late))
    return results


def _template_free_builders(single: Sequence[Result]) -> dict[str, str]:
    """The benchmarks that hold data sets of the template-free comparison, and their builders."""
    from medprobe.papers.template_free.analyses.data_sets import data_sets

    names = sorted({result.benchmark for result in single})
    builders = {name: read_about(places.BENCHMARKS / name)["builder"] for name in names}
    members = {data.benchmark for data in data_sets(builders)}
    return {name: builder for name, builder in builders.items() if name in members}


def _keys(single: Sequence[Result], benchmarks: set[str]) -> dict[str, str]:
    """The keys of these benchmarks' results, by the result's name."""
    return {result.name: result.key for result in single if result.benchmark in benchmarks}


def _key(used: dict[str, str], *about: Any) -> str:
    return hashlib.sha256(json.dumps([used, *about], sort_keys=True).encode()).hexdigest()


def _tests(benchmark: str, table: pd.DataFrame, params: Params) -> Content:
    """All tests as a table.

    Those between models under one method, by the main metric on the main subset, are metrics too.
    """
    metrics: dict[str, float] = {}
    metadata = Metadata.read(places.ABOUT / f"{benchmark}.json")
    main = select(table, metric=primary_metric(table, metadata), subset=subsets(table, metadata)[0])
    main = main.assign(p=significance.decisive_p(main))
    for row in main[main["method_a"] == main["method_b"]].to_dict("records"):
        place = f"tests/{row['method_a']}/{row['model_a']} - {row['model_b']}"
        values = {f"{place}/{name}": float(row[name]) for name in LOGGED}
        metrics |= {name: value for name, value in values.items() if np.isfinite(value)}
    settings = {"seed": params.seed, **params.score.model_dump(mode="json")}
    files = {"significance.csv": table.to_csv(index=False, float_format="%.6g")}
    return Content(metrics, params=settings, files=files)


def _ratings(benchmark: str, name: str, params: Params) -> Content:
    """The agreement of raters, their ratings, and ratings against answers; items by number."""
    (evaluation,) = expert.evaluations(places.BENCHMARKS / benchmark, [name])
    metrics = {
        legal(f"ratings/agreement/{row['of']}/{row['measure']}/{row['raters']}"): row["value"]
        for row in evaluation.agreement.dropna(subset="value").to_dict("records")
    }
    for row in evaluation.rated.to_dict("records"):
        place = f"ratings/rated/{row['subset']}/{row['rater']}"
        metrics |= {legal(place): row["rated"], legal(f"{place}/right"): row["right"]}
    tables = [
        path for path in prediction_tables(places.PREDICTIONS, params) if path.stem == benchmark
    ]
    folder = f"outputs/benchmarks/{name}"
    files = {
        "agreement": evaluation.agreement,
        "rated": evaluation.rated,
        "ratings": evaluation.ratings[["item", "rater", "rating", "right"]],
        "confusion": expert.confusions(evaluation, tables),
    }
    return Content(
        {key: float(value) for key, value in metrics.items()},
        params={
            "asked": evaluation.target,
            "queries": len(evaluation.queries),
            "items": len(evaluation.items),
        },
        files={f"{key}.csv": table.to_csv(index=False) for key, table in files.items()},
        datasets=[Dataset(folder, hashes().get(folder, UNKNOWN))],
    )


def _template_free(builders: dict[str, str], params: Params) -> Content:
    """All analyses of the scores in metrics/scores, as tables and drawings."""
    from medprobe.papers.template_free.analyses.analyses import analyses
    from medprobe.papers.template_free.sections.template_free import chapter
    from medprobe.report.blocks import drawings
    from medprobe.report.results import Results

    scores = comparison(places.SCORES)
    numbers = scores[scores["benchmark"].isin(builders)].reset_index(drop=True)
    kinds = {places.MODELS / name: params.models.kind(name) for name in params.models.all()}
    tables = analyses(
        numbers,
        places.PREDICTIONS,
        places.BENCHMARKS,
        builders,
        params,
        parameters=count_parameters(kinds),
    )
    files = {f"{name}.csv": table.to_csv(index=False) for name, table in tables.items()}
    chapters = chapter(Results(numbers, builders=builders, template_free=tables))
    svgs = drawings(part for content in chapters for part in content.parts)
    files |= {f"figures/{name}": svg for name, svg in svgs.items()}
    return Content(_summary(tables), files=files)


def _summary(tables: dict[str, pd.DataFrame]) -> dict[str, float]:
    """Kendall's tau and displacement between the kinds by domain, and Pearson's r by kind."""
    numbers: dict[str, Any] = {}
    if "displacement" in tables:
        means = tables["displacement-means"]
        for row in means[means["kinds"] == BETWEEN].to_dict("records"):
            numbers[f"{row['domain']}/displacement"] = row["mean"]
            numbers[f"{row['domain']}/tau"] = row["tau"]
    if "correlation" in tables:
        over_sets = tables["correlation"]["over"] == "data sets"
        for row in tables["correlation"][over_sets].to_dict("records"):
            numbers |= {f"{row['kind']}/pearson_r": row["r"], f"{row['kind']}/pearson_p": row["p"]}
    return {name: float(value) for name, value in numbers.items() if pd.notna(value)}
