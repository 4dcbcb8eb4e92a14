"""The table of results: every number in one comparison, and small questions to it."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import nan
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe import metrics
from medprobe.core.code import code_key
from medprobe.core.errors import BadInput
from medprobe.core.files import write_whole
from medprobe.core.params import Params
from medprobe.core.parts import (
    fingerprint,
    read_part,
    read_whole,
    write_part,
)
from medprobe.core.places import PARTS, SCORES
from medprobe.core.plugins import find_plugins
from medprobe.core.progress import report_progress
from medprobe.core.spreadsheets import csv_text
from medprobe.core.tables import (
    BASELINE,
    BenchmarkTables,
    Metadata,
    metric_of_predictions,
    read_predictions,
    read_refusal,
    result_names,
)
from medprobe.core.variants import swept_settings
from medprobe.metrics import Evaluated, Scores, Scoring, catalog
from medprobe.metrics.shuffled import TESTS, compare_with_others, is_shuffled, original_variant
from medprobe.metrics.summary import add_scores

COMPARISON: Final = [
    "benchmark",
    "subset",
    "relation",  # or macro, micro, weighted
    "model",
    "method",  # `contrastive` for the main variant, `contrastive:original` for another
    "metric",
    "value",
    "low",
    "high",
    "n",
    "std",  # over replicates: sentence sets, seeds
]
PREDICTIONS: Final = "predictions"  # what scoring counts
CONTROLS: Final = {  # variants that know nothing, in words; and `shuffled`
    "copy": "copying the context's names",
    "always-true": "always saying true",
}
KEYS: Final = [name for name in COMPARISON[:6] if name != "method"]
PAIRED: Final = [  # of paired values; relation and answer where a scorer has them
    *("variant", "replicate", "subset", "query_id", "relation", "cluster", "answer", "weight"),
]
OTHER_NAMES: Final = ("relation", "distractors")  # variants that rank other names than the rest do


def prediction_tables(folder: Path, params: Params) -> list[Path]:
    """List the prediction tables of the results that `params.yaml` names.

    Tables of other names stay on disk when a model, method or benchmark is taken out of
    `params.yaml`. They are not listed.
    """
    paths = sorted(folder.glob("*/*/*.parquet"))
    named = [path for path in paths if _is_named(path, params)]
    if not named:
        problem = "no predictions of what params.yaml names"
        if paths:
            first = "/".join(paths[0].with_suffix("").parts[-3:])
            problem += f"; {len(paths)} of other names are there, the first {first}"
        raise BadInput(folder, problem, "run `dvc repro` to probe the models")
    return [path for path in named if not read_refusal(path)]


def refusals(folder: Path, params: Params) -> dict[Path, str]:
    """Return why models were not asked, by the prediction table that each result would have."""
    paths = [path for path in sorted(folder.glob("*/*/*.parquet")) if _is_named(path, params)]
    return {path: reason for path in paths if (reason := read_refusal(path))}


def _is_named(path: Path, params: Params) -> bool:
    return params.names_result(*result_names(path))


def scorer_names(path: Path) -> list[str]:
    """List the scorers of a prediction table, its own first (`metrics.scorers_of`)."""
    return metrics.scorers_of(metric_of_predictions(path))


def evaluate_table(path: Path, folder: Path, scoring: Scoring) -> Evaluated:
    """Compute all numbers of the prediction table in a file, a variant at a time (`evaluate`)."""
    tables, scorer = BenchmarkTables.read(folder), metric_of_predictions(path)
    try:
        return evaluate(read_predictions(path), scorer, tables, scoring)
    except BadInput as error:
        raise BadInput(path, str(error)) from None


def evaluate(
    predictions: Iterable[pd.DataFrame], scorer: str, tables: BenchmarkTables, scoring: Scoring
) -> Evaluated:
    """Compute all numbers of predictions on a benchmark.

    Args:
        predictions: a table of each variant.
        scorer: the predictions' own.
        tables: the benchmark.
        scoring: seed, clusters and settings.

    Returns:
        The scores by each of its scorers; the values that paired tests compare, one row per
        variant, subset and query, replicates averaged, without the settings of sweeps; and the
        tests of variants against their answers to other subjects.
    """
    scorers, scores = [metrics.find(name) for name in metrics.scorers_of(scorer)], Scores()
    paired, controls = [], [pd.DataFrame(columns=TESTS)]
    for of_variant in predictions:
        for one in scorers:
            found = one.evaluate(of_variant, tables, scoring)
            add_scores(scores, found.scores)
            controls.append(found.controls)
            paired.append(_tested_values(found.paired))
        report_progress(len(of_variant), PREDICTIONS)
        del of_variant  # before the next variant is read
    compared = pd.concat([table for table in paired if len(table)] or paired, ignore_index=True)
    values = {str(variant): rows for variant, rows in compared.groupby("variant")}
    others = {variant: rows for variant, rows in values.items() if is_shuffled(variant)}
    for variant, rows in others.items():
        if (own := values.get(original_variant(variant))) is not None:
            controls.append(compare_with_others(average_by_query(own), rows, scoring))
    own_values = [average_by_query(rows) for name, rows in values.items() if name not in others]
    every = pd.concat([table for table in controls if len(table)] or controls[:1])
    return Evaluated(scores, pd.concat(own_values, ignore_index=True), every)


def _tested_values(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of variants that are compared, with the columns of tested metrics."""
    tested = [name for name, metric in catalog().items() if metric.tested]
    variants = [name for name in rows["variant"].unique() if is_compared(str(name))]
    rows = rows[[name for name in (*PAIRED, *tested) if name in rows]]
    return rows[rows["variant"].isin(variants)]


def average_by_query(rows: pd.DataFrame) -> pd.DataFrame:
    """The means of a variant's values over replicates, one row per subset and query.

    Scorers of one table have rows of their own for a query; the first says what belongs together.
    """
    keys = ["variant", "subset", "query_id"]
    groups = rows.groupby(keys, sort=True)
    about = [name for name in PAIRED if name in rows and name not in (*keys, "replicate")]
    numbers = [name for name in rows if name not in PAIRED]
    return groups[about].first().join(groups[numbers].mean()).reset_index()


def further_folders(path: Path, folder: Path, scoring: Scoring) -> list[Path]:
    """List the folders beside its benchmark's from which the scores of a table follow."""
    scorers = map(metrics.find, scorer_names(path))
    read = [source for scorer in scorers for source in scorer.reads(folder, scoring)]
    return [*dict.fromkeys(read)]


def scorers_code(names: Iterable[str]) -> str:
    """What stands for the code of scores in their key."""
    found = find_plugins("metrics")
    return code_key("core", "metrics", plugins=[found[name] for name in names])


def scores_key(path: Path, folder: Path, scoring: Scoring) -> str:
    """Hash of all that the scores of a prediction table follow from.

    Predictions, benchmark, what experts said of it, rules of scoring.
    """
    facts = [scoring.facts] if scoring.facts else []
    sources = [folder, *further_folders(path, folder, scoring)]
    tables = [table for source in sources for table in sorted(source.glob("*.parquet"))]
    code = scorers_code(scorer_names(path))
    text = f"{fingerprint([path, *tables, *facts])} {code} {scoring.settings}"
    return hashlib.sha256(text.encode()).hexdigest()


def cached(path: Path, folder: Path, scoring: Scoring) -> Evaluated:
    """`evaluate_table`, from outputs/parts where it was made before."""
    part = scores_part(path, folder, scoring)
    if (found := read_evaluated(part)) is None:
        write_evaluated(found := evaluate_table(path, folder, scoring), part)
    return found


def scores_part(path: Path, folder: Path, scoring: Scoring) -> Path:
    """Where a prediction table's scores are kept; its other tables are beside them."""
    return PARTS / f"scores-{scores_key(path, folder, scoring)[:32]}.json"


def part_files(part: Path) -> tuple[Path, Path, Path]:
    """The files of scores, paired values and controls."""
    return part, part.with_suffix(".paired.parquet"), part.with_suffix(".controls.parquet")


def read_evaluated(part: Path) -> Evaluated | None:
    """Read what was computed of a prediction table; None where a file of it cannot be read."""
    _, paired, controls = part_files(part)
    tables = read_part(paired), read_part(controls)
    scores = read_scores(part)
    if scores is None or tables[0] is None or tables[1] is None:
        return None
    return Evaluated(scores, tables[0], tables[1])


def write_evaluated(found: Evaluated, part: Path) -> None:
    """Write what was computed of a prediction table, the scores last."""
    _, paired, controls = part_files(part)
    write_part(found.paired, paired)
    write_part(found.controls, controls)
    write_scores(found.scores, part)


def read_scores(part: Path) -> dict[str, Any] | None:
    """Read the scores in a part; None where there are none that can be read."""
    scores: dict[str, Any] | None = read_whole(
        part, lambda path: json.loads(path.read_text("utf-8"))
    )
    return scores


def write_scores(scores: Mapping[str, Any], part: Path) -> None:
    """Write scores to a part. Raises ValueError for NaN, which is no JSON."""
    write_whole(part, json.dumps(scores, allow_nan=False))


def comparison(folder: Path = SCORES) -> pd.DataFrame:
    """The tidy table of all scores below `metrics/scores`, one row a number, in a fixed order."""
    paths = sorted(folder.glob("*/*.json"))
    if not paths:
        raise BadInput(folder, "no scores", "run `dvc repro` to make them")
    rows = [
        row
        for path in paths
        for row in to_rows(json.loads(path.read_text("utf-8")), path.parent.name, path.stem)
    ]
    table = pd.DataFrame(rows, columns=COMPARISON)
    table[COMPARISON[6:]] = table[COMPARISON[6:]].astype(float)
    return table.sort_values(COMPARISON[:6], ignore_index=True)


def to_rows(content: dict[str, Scores], model: str, method: str) -> Iterator[tuple]:
    """The scores of a model under a method, by benchmark, as rows of the comparison."""
    for benchmark, variants in content.items():
        for variant, subsets in variants.items():
            if model == BASELINE and is_shuffled(variant):
                continue  # baselines orient, and have no control
            name = method if variant == "default" else f"{method}:{variant}"
            for subset, relations in subsets.items():
                for relation, by_metric in relations.items():
                    for metric, numbers in by_metric.items():
                        keys = (benchmark, subset, relation, model, name, metric)
                        yield (*keys, *(numbers.get(name, nan) for name in COMPARISON[6:]))


def select(rows: pd.DataFrame, **values: str) -> pd.DataFrame:
    """The rows with these values, e.g. `select(rows, subset="full", relation="macro")`."""
    is_match = pd.Series(True, index=rows.index)
    for column, value in values.items():
        is_match &= rows[column] == value
    return rows[is_match]


def primary_metric(rows: pd.DataFrame, metadata: Metadata) -> str:
    """The metric that the benchmark of these rows is judged by, or the first there is."""
    available = set(rows["metric"].unique())
    metrics_in_order = [name for name in (metadata.primary_metric, *catalog()) if name in available]
    return metrics_in_order[0] if metrics_in_order else min(available)


def subsets(rows: pd.DataFrame, metadata: Metadata) -> list[str]:
    """The subsets of a benchmark's rows, without their parts.

    Those with its main metric first, of these `full` or `target` first.
    """
    judged = set(rows.loc[rows["metric"] == primary_metric(rows, metadata), "subset"])
    names = {name for name in rows["subset"].unique() if "/" not in name}
    return sorted(names, key=lambda x: (x not in judged, x not in ("full", "target"), x))


def select_main(rows: pd.DataFrame, metadata: Metadata) -> pd.DataFrame:
    """Select the rows of a benchmark's main metric on its main subset, of those that there are."""
    subset = subsets(rows, metadata)[0]
    return select(rows, metric=primary_metric(rows, metadata), subset=subset)


def is_swept(method: str) -> bool:
    """Is it a setting of a sweep?

    >>> is_swept("contrastive:step-50"), is_swept("contrastive:original")
    (True, False)
    """
    return not is_compared(method.partition(":")[2])


def is_compared(variant: str) -> bool:
    """Is a variant compared with others, as it is no setting of a sweep?

    >>> is_compared("original"), is_compared("step-50")
    (True, False)
    """
    return not swept_settings(variant)


def is_control(method: str) -> bool:
    """Does this method or variant answer without a model, or without a subject?

    >>> is_control("rank_change:copy"), is_control("rank_change")
    (True, False)
    >>> is_control("mask_average:shuffled"), is_control("xfactr:shuffled-confidence")
    (True, True)
    """
    variant = method.partition(":")[2]
    return variant in CONTROLS or is_shuffled(variant)


def without_sweeps(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods' main variants and named ones, without the settings of sweeps."""
    return rows[~rows["method"].map(is_swept).astype(bool)]


def without_controls(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods that ask a model, without the controls that know nothing."""
    return rows[~rows["method"].map(is_control).astype(bool)]


def comparable(rows: pd.DataFrame) -> pd.DataFrame:
    """Select rows of methods that rank all of a benchmark's own names.

    The settings of sweeps, controls, and variants that rank other names are left out.
    """
    rows = without_controls(without_sweeps(rows))
    if rows.empty:  # such a column has no texts to divide
        return rows
    return rows[~rows["method"].str.partition(":")[2].isin(OTHER_NAMES)]


def without_repeats(rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out variants of a method whose numbers are digit for digit those of another variant."""
    firsts: dict[tuple[str, str], str] = {}
    numbers = rows.drop(columns="method").sort_values(KEYS, kind="stable")
    for method, of_method in numbers.groupby(rows["method"], sort=True):
        key = str(method).partition(":")[0], str(of_method.to_numpy().tolist())
        firsts.setdefault(key, str(method))
    return rows[rows["method"].isin(firsts.values())]


def by_value(rows: pd.DataFrame, column: str, *, lower: bool) -> pd.DataFrame:
    """Sort rows by the best value of each name in a column, then by value, the best first."""
    values = rows.groupby(column)["value"].agg("min" if lower else "max")
    order = values.sort_values(ascending=lower, kind="stable").index
    rows = rows.sort_values("value", ascending=lower, kind="stable")
    return rows.sort_values(column, key=lambda names: names.map(order.get_loc), kind="stable")


def main_variants(rows: pd.DataFrame) -> set[tuple[str, str]]:
    """Select the variant that represents each method, the same wherever one number stands for it.

    It is the variant that answers the most queries, among those that are no control, no setting of
    a sweep, and rank the benchmark's own names. Of several, it is the main one, or else the first
    by name. Values play no part, so that a method with many variants has no advantage.
    """
    whole = rows[~rows["subset"].str.contains("/", regex=False)]
    sizes = (whole if len(whole) else rows).groupby(["model", "method"])["n"].max().fillna(0)
    best: dict[tuple[str, str], tuple[bool, float, str]] = {}
    for (model, name), size in sizes.items():
        method, _, variant = str(name).partition(":")
        is_other = variant in OTHER_NAMES or is_control(str(name)) or is_swept(str(name))
        key = (is_other, -float(size), str(name))
        best[str(model), method] = min(best.get((str(model), method), key), key)
    return {(model, name) for (model, _), (_, _, name) in best.items()}


def main_results(
    rows: pd.DataFrame, metadata: Metadata, params: Params, preference: Mapping[str, int]
) -> dict[str, str]:
    """Choose the main result of each model on a benchmark, by rule and not by its value.

    The method is the one that `score.main` names for the model's kind, else the one that `medprobe
    run` would take, else the first that `methods` names. It must give the benchmark's main metric
    on its main subset.
    """
    judged = select(select_main(rows, metadata), relation="macro")
    variants = {(model, name.partition(":")[0]): name for model, name in main_variants(rows)}
    names = {*zip(judged["model"], judged["method"], strict=True)}
    main = {}
    for model in sorted({model for model, _ in names}):
        kind = params.models.kind(model)
        listed = [*params.methods.get(kind, {})]
        chosen = params.score.main.get(kind)
        methods = [name for name in listed if (model, variants.get((model, name), "")) in names]
        if methods:
            best = max(methods, key=lambda name: (name == chosen, preference.get(name, 0)))
            main[model] = variants[model, best]
    return main


def select_systems(rows: pd.DataFrame, systems: Collection[tuple[str, str]]) -> pd.DataFrame:
    """Select the rows of these pairs of model and method."""
    is_named = [pair in systems for pair in zip(rows["model"], rows["method"], strict=True)]
    return rows[pd.Series(is_named, index=rows.index, dtype=bool)]


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table of results as CSV, six significant digits a number."""
    write_whole(path, csv_text(table, "%.6g"))
