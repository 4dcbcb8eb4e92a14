"""`medprobe run`: probe models on a benchmark at once, and say which one is better."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from medprobe.cli.ask import choose_method, find_model, find_tables, make_prober
from medprobe.core.answers import describe_unanswered
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.core.progress import print_above
from medprobe.core.tables import BASELINE, BenchmarkTables, Metadata, write_predictions
from medprobe.library.comparing import ModelComparison, compare
from medprobe.library.probing import ProbeResult, draw_queries, probe_tables, score
from medprobe.metrics import Scoring
from medprobe.metrics.baselines import LETTERS, MAJORITY, RANKING, SHOWN, majority
from medprobe.metrics.letters import RANKED, letters
from medprobe.metrics.power import describe, power
from medprobe.metrics.results import (
    COMPARISON,
    main_variants,
    primary_metric,
    select,
    select_systems,
    subsets,
    to_rows,
)
from medprobe.metrics.shuffled import shuffled_name
from medprobe.metrics.statistics import holm
from medprobe.metrics.summary import MEANS, cluster_queries
from medprobe.pipeline.outputs import to_json
from medprobe.report.numbers import format_difference, format_interval, format_value
from medprobe.report.numbers import metric as find_metric
from medprobe.report.verdicts import TITLES, p_value

MEAN: Final = "macro"
MOST: Final = 8  # rows of numbers that are printed of a model
CHECKS: Final = ("_tied", "_by_answer")  # end accuracies counted otherwise


def run(
    names: Sequence[str],
    method: str | None,
    benchmark: str,
    params: Params,
    *,
    prompts: Path | None = None,
    limit: int | None = None,
    out: Path | None = None,
    every: bool = False,
    as_json: bool = False,
) -> None:
    """Probe models on a benchmark, and print what each reaches and how they differ.

    Before the work it says what the facts can show. Each model has one line: the main metric, with
    its interval, and its answers to other subjects. Every two models are compared over the same
    facts. `limit` queries are drawn by the seed, evenly over relations and subsets. With `every`,
    all numbers are printed. Without a method, one that ranks candidates and serves the model is
    taken.
    """
    tables, metadata = find_tables(benchmark, prompts, params)
    if limit is not None:
        tables = replace(tables, queries=draw_queries(tables.queries, limit, params.seed))
    if len({*names}) < len(names):
        raise BadInput("MODELS", "one of them is there twice", "name each once")
    found = [find_model(name, method, params) for name in names]
    asked = [method or choose_method(model, "rank") for model in found]
    if out and out.parent.is_file():
        raise BadInput(out.parent, "a file is where a folder is expected", "name another folder")
    for model, own in zip(found, asked, strict=True):  # before any of them is probed
        model.check_kind(own)
        model.check_texts(tables)
    results: list[ProbeResult] = []
    for model, own, label in zip(found, asked, _labels(names), strict=True):
        prober = make_prober(model, own, benchmark, params)
        if metadata.ranks_answers and not as_json and not results:
            print(_what_it_can_show(tables, metadata, params.seed))
        scoring = Scoring.for_model(model.folder, metadata, params)
        result = probe_tables(model, prober, tables, metadata, scoring, system=(label, own))
        if warning := describe_unanswered(result.predictions):
            print_above(f"{model.name}: warning: {warning}")
        if out:
            write_predictions(result.predictions, out, prober.METRIC)
        results.append(result)
    metric = primary_metric(results[0].scores, metadata)
    beside = _baselines(tables, metadata, params)
    main = [_main_result(result, metric, metadata) for result in results]
    for row, p in zip(main, _corrected([row["p"] for row in main]), strict=True):
        row["p"] = p
    comparisons = _compare(results, metric, params.score.confidence)
    if as_json:
        print(to_json(_as_object(results, beside, main, comparisons, every=every)))
        return
    _print(results, beside, main, comparisons, metric=metric, every=every)


def _labels(names: Sequence[str]) -> list[str]:
    """What models are called: the ends of paths, where these differ.

    >>> _labels(["models/bert", "hub/smollm.gguf"]), _labels(["a/bert", "b/bert"])
    (['bert', 'smollm'], ['a/bert', 'b/bert'])
    """
    short = [Path(name).name.removesuffix(".gguf") or name for name in names]
    return short if len({*short}) == len(short) else [*names]


def _what_it_can_show(tables: BenchmarkTables, metadata: Metadata, seed: int) -> str:
    queries = cluster_queries(tables, metadata.cluster)
    first = queries[queries["subset"] == queries["subset"].iloc[0]]
    return describe(power(first, seed), len(first)) + "."


def _baselines(tables: BenchmarkTables, metadata: Metadata, params: Params) -> pd.DataFrame:
    """The scores of what is reached without a model on these queries."""
    rows: list[tuple[Any, ...]] = []
    if metadata.ranks_answers:
        scoring = Scoring(params.score, params.seed, metadata.cluster)
        ranked = {MAJORITY: majority(tables, RANKED), LETTERS: letters(tables)}
        for name, table in ranked.items():
            if len(table):
                scores = score(table, tables, RANKING, scoring).scores
                rows += to_rows({"": scores}, BASELINE, name)
    return pd.DataFrame(rows, columns=COMPARISON)


def _main_result(result: ProbeResult, metric: str, metadata: Metadata) -> dict[str, Any]:
    """A model's main metric on the main subset, beside its answers to other subjects."""
    [(_, method)] = main_variants(result.scores)
    subset = subsets(result.scores, metadata)[0]
    keys = {"subset": subset, "relation": MEAN, "metric": metric, "method": method}
    row = select(result.scores, **keys).iloc[0]
    about = {"model": result.model, "method": method, "subset": subset, "metric": metric}
    names = ("value", "low", "high", "n")
    numbers = {name: float(x) for name, x in pd.to_numeric(row[[*names]]).items()}
    tests = result.controls
    own = tests[
        (tests["variant"] == method.partition(":")[2])
        & (tests["subset"] == subset)
        & (tests["metric"] == metric)
    ]
    gap, p = (own["difference"].iloc[0], own["p"].iloc[0]) if len(own) else (np.nan, np.nan)
    return {**about, **numbers, "control": row["value"] - gap, "above": float(gap), "p": float(p)}


def _corrected(chances: Sequence[float]) -> list[float]:
    known = [p for p in chances if not np.isnan(p)]
    corrected = iter(holm(np.array(known)).tolist())
    return [p if np.isnan(p) else next(corrected) for p in chances]


def _compare(
    results: Sequence[ProbeResult], metric: str, confidence: float
) -> list[ModelComparison]:
    pairs = [
        pair for pair in combinations(results, 2) if all(metric in result.values for result in pair)
    ]
    found = [
        compare(*pair, metric=metric, confidence=confidence, tests=len(pairs)) for pair in pairs
    ]
    corrected = holm(np.array([one.p for one in found]))
    return [replace(one, p=float(p)) for one, p in zip(found, corrected, strict=True)]


def _print(
    results: Sequence[ProbeResult],
    beside: pd.DataFrame,
    main: Sequence[Mapping[str, Any]],
    comparisons: Sequence[ModelComparison],
    *,
    metric: str,
    every: bool,
) -> None:
    first = main[0]
    title = find_metric(metric).title
    count = "1 query" if first["n"] == 1 else f"{first['n']:,.0f} queries"
    print(f"\n{title} on {count} ({first['subset']}), and with the answers to other subjects:")
    width = max(len(name) for name in (*(row["model"] for row in main), *TITLES.values()))
    ranked = sorted(main, key=lambda row: _order(metric, row), reverse=True)
    for row in ranked:
        print("  " + _line(row, metric, min(width, 30)))
    for name in SHOWN:
        same = {"subset": first["subset"], "relation": MEAN, "metric": metric, "method": name}
        for value in select(beside, **same)["value"]:
            print(f"  {TITLES[name]:{min(width, 30)}}  {format_value(metric, value):>6}")
    for comparison in comparisons:
        print("\n" + "\n".join(_sentences(comparison)))
    if every or len(results) == 1:
        for result in results:
            print("\n" + "\n".join(_numbers(result, every=every)))


def _order(metric: str, row: Mapping[str, Any]) -> float:
    is_lower = find_metric(metric).better_on(row["subset"]) == "lower"
    return float(-row["value"] if is_lower else row["value"])


def _line(row: Mapping[str, Any], metric: str, width: int) -> str:
    """A model's result in one line."""
    interval = format_interval(metric, row["low"], row["high"])
    line = f"{row['model'][-width:]:{width}}  {format_value(metric, row['value']):>6} {interval}"
    if not np.isnan(row["above"]):
        line += f"  others {format_value(metric, row['control'])}, {p_value(row['p'])}"
    return line


def _sentences(found: ModelComparison) -> Iterator[str]:
    """Say which of two models is better, by how much, on how many facts."""
    (a, b), metric = found.models, found.metric
    gap = format_difference(metric, found.difference)
    bounds = "no interval"
    if not np.isnan(found.low):
        low, high = (format_difference(metric, edge) for edge in (found.low, found.high))
        bounds = f"[{low}, {high}]"
    unit = " points" if find_metric(metric).share else ""
    if found.untestable:
        verdict = f"cannot be tested: {found.untestable}"
    elif found.significant:
        is_first = (found.difference > 0) == (find_metric(metric).better == "higher")
        verdict = f"{a if is_first else b} is significantly better, {p_value(found.p)}"
    else:
        verdict = f"not significantly different, {p_value(found.p)}"
        if np.isfinite(found.smallest_difference):
            size = format_difference(metric, found.smallest_difference).lstrip("+")
            verdict += f"; these facts would show {size}{unit}"
    yield f"{a} − {b}: {gap}{unit} {bounds}"
    yield f"  {verdict}"
    if metric.startswith("acc_at_"):
        yield (
            f"  facts right: only {a} {found.only_first}, both {found.both}, "
            f"only {b} {found.only_second}, neither {found.neither}"
        )


def _numbers(result: ProbeResult, *, every: bool) -> Iterator[str]:
    """The numbers of a model's main variant, or all: at most eight rows of one line each."""
    rows = result.scores[result.scores["relation"].isin(MEANS)]
    if not every:
        names = result.tables.candidates["name"].nunique()
        main = select_systems(rows, main_variants(rows))
        main = main[(main["relation"] == MEAN) & ~main["subset"].str.contains("/")]
        main = main[[_is_meaningful(metric, names) for metric in main["metric"]]].head(MOST)
        others = {shuffled_name(name.partition(":")[2]) for name in main["method"].unique()}
        control = rows[rows["method"].str.partition(":")[2].isin(others)]
        keys = ["subset", "relation", "metric"]
        values = control.drop_duplicates(keys).set_index(keys)["value"].to_dict()
        yield f"{'subset':12} {'metric':22} {'value':>6}  {'interval':16} other subjects"
        for row in main.itertuples():
            other = values.get((row.subset, row.relation, row.metric))
            numbers = f"{format_value(row.metric, row.value):>6}"
            interval = format_interval(row.metric, row.low, row.high)
            beside = "" if other is None else format_value(row.metric, other)
            title = find_metric(row.metric).title
            yield f"{row.subset[:12]:12} {title[:22]:22} {numbers}  {interval:16} {beside}".rstrip()
        return
    for row in rows.itertuples():
        names_of = f"{row.method}, {row.subset}, {row.relation}, {row.metric}"
        interval = format_interval(row.metric, row.low, row.high)
        yield f"{names_of}: {row.value:.3f} {interval}".rstrip()


def _is_meaningful(metric: str, names: int) -> bool:
    """Whether a metric says something of so many names: acc@k of fewer than half of them."""
    at = re.fullmatch(r"acc_at_(\d+)", metric)
    return not metric.endswith(CHECKS) and (not at or 2 * int(at[1]) < max(names, 3))


def _as_object(
    results: Sequence[ProbeResult],
    beside: pd.DataFrame,
    main: Sequence[Mapping[str, Any]],
    comparisons: Sequence[ModelComparison],
    *,
    every: bool,
) -> dict[str, Any]:
    numbers = pd.concat([result.scores for result in results], ignore_index=True)

    def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
        rows = rows[rows["relation"].isin(MEANS)]
        if not every:
            is_main = (rows["relation"] == MEAN) & ~rows["subset"].str.contains("/")
            rows = rows[is_main & ~rows["metric"].str.endswith("_tied")]
        return rows.drop(columns="std").to_dict("records")

    return {
        "models": [dict(row) for row in main],
        "numbers": records(numbers),
        **{name: records(select(beside, method=name)) for name in SHOWN},
        "comparisons": [
            {
                "a": found.models[0],
                "b": found.models[1],
                **{
                    name: getattr(found, name)
                    for name in (
                        *("metric", "difference", "low", "high", "p", "smallest_difference"),
                        *("untestable", "only_first", "both", "only_second", "neither"),
                    )
                },
                "by_relation": found.by_relation.to_dict("records"),
            }
            for found in comparisons
        ],
    }
