"""`medprobe ask` and `medprobe run`: probe a model at once, without the pipeline.

`ask` is for one prompt, `run` for a benchmark. Both use the models and settings of a project, and
record nothing.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import pandas as pd

from medprobe import methods
from medprobe.benchmarks.table import METADATA
from medprobe.core import places
from medprobe.core.answers import describe_unanswered
from medprobe.core.baselines import METHOD, baselines
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.core.progress import print_above
from medprobe.core.tables import BASELINE, DISTRACTOR, BenchmarkTables, Metadata
from medprobe.engine.gguf import is_gguf
from medprobe.library import model as library
from medprobe.library.model import Model
from medprobe.library.probing import draw_queries, pair, predict, score, to_tables
from medprobe.methods import Method
from medprobe.metrics import Scoring
from medprobe.metrics.results import COMPARISON, primary_metric, select, to_rows
from medprobe.metrics.significance import (
    guesses,
    significance,
    split_by_variant,
    strongest_baselines,
)
from medprobe.metrics.summary import MEANS
from medprobe.pipeline import outputs, terminal
from medprobe.report.figures.rows import without_repeats
from medprobe.report.numbers import format_difference, format_value
from medprobe.report.numbers import metric as find_metric
from medprobe.report.verdicts import p_value

MEAN: Final = "macro"


def ask(
    name: str,
    prompt: str,
    method: str | None,
    benchmark: str | None,
    params: Params,
    *,
    as_json: bool = False,
) -> None:
    """Print the ten best answers to a prompt, with scores, and mark those that are right.

    The answers are those of the method's first pass and variant, which is the paper's. Only prompts
    of the benchmark have marks.

    Args:
        name: a model of params.yaml, the folder of a checkpoint, or a GGUF file.
        prompt: a text with one slot `[Y]`.
        method: None takes a method that serves the model (`Method.ASKED`).
        benchmark: whose candidates are ranked. None takes the first of params.yaml; if there is
            none, the model writes answers of its own.
        params: the project's.
        as_json: print one object, `outputs.Ask`.

    Raises:
        BadInput: for a prompt without exactly one slot.
    """
    if benchmark is None:
        benchmark = next((name for named in params.benchmarks.values() for name in named), None)
    model = _model(name, params)
    if method is None:
        method = _choose_method(model, "rank" if benchmark else "write")
    if benchmark:
        best = answers(name, prompt, method, benchmark, params)
    else:
        best = model.ask(prompt, method).rename(columns={"answer": "prediction"})
    has_hits = "hit" in best
    rows = [
        outputs.Ranked(
            rank=row["rank"],
            answer=row["prediction"],
            score=row["score"],
            right=bool(row["hit"]) if has_hits else None,
        )
        for row in best.to_dict("records")
    ]
    if as_json:
        outputs.Ask(prompt=prompt, method=method, answers=rows).print()
        return
    cells = [
        (str(row.rank), row.answer, f"{row.score:.4f}", "yes" if row.right else "no")
        for row in rows
    ]
    count = 4 if has_hits else 3
    columns = ("rank", "answer", "score", "right")[:count]
    terminal.print_table(columns, (row[:count] for row in cells), f"{prompt} ({method})")


def _choose_method(model: Model, purpose: Literal["rank", "write"]) -> str:
    """Choose a method that ranks candidates, or one that writes."""
    asked = {name: methods.find(name) for name in methods.list_names()}
    asked = {name: method for name, method in asked.items() if purpose in method.ASKED}
    serving = [name for name, method in asked.items() if {*model.kinds} & {*method.KINDS}]
    if not asked:
        raise BadInput("ask", "no method can be chosen", "name one by --method")
    return max(serving or asked, key=lambda name: asked[name].ASKED[purpose])


def answers(
    name: str, prompt: str, method: str, benchmark: str, params: Params, *, k: int = methods.K
) -> pd.DataFrame:
    """Rank the candidates of a benchmark as answers to one prompt.

    Returns:
        The first k, with columns rank, prediction and score, and hit if the benchmark has a query
        with this prompt.

    Raises:
        BadInput: for a method that does not rank candidates.
    """
    model = _model(name, params)
    serving = library.find_answering(model.kinds)
    if method not in serving:
        ranks = methods.find(method).METRIC == library.ANSWER_METRIC
        kinds = " or ".join(model.kinds) or "nothing"
        problem = f"{name} serves as {kinds}" if ranks else "this method does not rank candidates"
        remedy = f"choose one of {', '.join(serving)}" if serving else "choose another model"
        raise BadInput(f"ask --method {method}", problem, remedy)
    tables = _tables(benchmark, params)
    candidates = tables.candidates[tables.candidates["type"] != DISTRACTOR]
    queries = tables.queries[tables.queries["prompt"] == prompt].head(1).reset_index(drop=True)
    if queries.empty:
        queries = library.make_query(prompt).assign(benchmark=benchmark)
    else:
        candidates = candidates[candidates["subset"] == queries["subset"].item()]
    names = candidates.drop_duplicates("name").assign(subset=queries["subset"].item())
    prober = _prober(model, method, benchmark, params)
    tables = replace(tables, queries=queries, candidates=names)
    model.check_texts(tables)
    return library.predict_answers(prober, tables, k)


def run(
    name: str,
    method: str,
    benchmark: str,
    params: Params,
    *,
    prompts: Path | None = None,
    limit: int | None = None,
    out: Path | None = None,
    every: bool = False,
    as_json: bool = False,
) -> None:
    """Probe a model on a benchmark, and print a headline and the means over relations.

    The headline is the main metric, next to the strongest baseline: a guess, the prior, or a
    control that the method's settings ask for. `limit` queries are drawn by the seed, evenly over
    relations and subsets. With `every`, the parts of subsets and the means over queries are printed
    as well.

    Raises:
        BadInput: for an unknown model, method, benchmark or file.
    """
    model = _model(name, params)
    tables, metadata = _tables_of(benchmark, prompts, params)
    references = baselines(tables, metadata.cluster) if metadata.ranks_answers else {}
    if limit is not None:
        tables = replace(tables, queries=draw_queries(tables.queries, limit, params.seed))
    scoring = Scoring.for_model(model.folder, metadata, params)
    prober = _prober(model, method, benchmark, params)
    model.check_texts(tables)
    predictions = predict(prober, tables, name)
    if warning := describe_unanswered(predictions):
        print_above(f"{name}: warning: {warning}")
    scores = score(predictions, tables, prober.METRIC, scoring, out)
    rows = pd.DataFrame(to_rows({"": scores}, name, "main"), columns=COMPARISON)
    rows = rows[rows["relation"].isin(MEANS)]
    for reference, (table, family) in references.items():  # of all queries, not only of those drawn
        is_drawn = table["query_id"].isin(tables.queries["query_id"])
        references[reference] = (table[is_drawn], family)
    references = {key: value for key, value in references.items() if len(value[0])}
    values = pair(predictions, tables, prober.METRIC, scoring)
    systems = split_by_variant(values, name, "main")
    for reference, (table, family) in references.items():
        rows_of = pair(table, tables, family, scoring)
        systems |= split_by_variant(rows_of, BASELINE, reference)
    tests = significance(systems | guesses(systems), "", params.score, params.seed)
    strongest = select(strongest_baselines(tests), method="main")
    headline = _headline(rows, metadata, strongest)
    if as_json:
        prior_rows = _prior(references, tables, scoring)
        if not every:
            rows, prior_rows = _main(rows), _main(prior_rows)
        metric = primary_metric(rows, metadata)
        above = [
            outputs.AboveBaseline(
                **{name: row[name] for name in outputs.AboveBaseline.model_fields}
            )
            for row in select(strongest, metric=metric).to_dict("records")
        ]
        numbers, prior_numbers = _numbers(rows), _numbers(prior_rows)
        outputs.RunMeans(numbers=numbers, prior=prior_numbers, above_baseline=above).print()
        return
    rows = rows if every else _main(rows)
    print(headline)
    _print_rows(without_repeats(rows))


def _tables_of(
    benchmark: str, prompts: Path | None, params: Params
) -> tuple[BenchmarkTables, Metadata]:
    """Read a benchmark of params.yaml, or a file of facts with the templates in `prompts`."""
    if Path(benchmark).exists() and benchmark not in params.benchmark_names:
        return to_tables(benchmark, prompts), METADATA
    return _tables(benchmark, params), Metadata.read(places.ABOUT / f"{benchmark}.json")


def _print_rows(rows: pd.DataFrame) -> None:
    cells = []
    for row in rows.itertuples():
        interval = f"{row.low:.3f} – {row.high:.3f}" if pd.notna(row.low) else ""
        count = f"{row.n:.0f}" if pd.notna(row.n) else ""
        names = (row.method, row.subset, row.relation, row.metric)
        cells.append((*names, f"{row.value:.3f}", interval, count))
    columns = ("variant", "subset", "relations", "metric", "value", "interval", "queries")
    terminal.print_table(columns, cells)


def _main(rows: pd.DataFrame) -> pd.DataFrame:
    """Select the means of whole subsets."""
    is_mean = rows["relation"] == MEAN if (rows["relation"] == MEAN).any() else True
    is_main = is_mean & ~rows["subset"].str.contains("/")
    return rows[is_main & ~rows["metric"].str.endswith("_tied")]


def _numbers(rows: pd.DataFrame) -> list[outputs.Number]:
    names = [*outputs.Number.model_fields]
    return [outputs.Number(**row) for row in rows[names].to_dict("records")]


def _headline(rows: pd.DataFrame, metadata: Metadata, strongest: pd.DataFrame) -> str:
    """The main metric of each whole subset by the main variant, with interval and baseline."""
    metric = primary_metric(rows, metadata)
    lines = []
    for row in select(rows, metric=metric, method="main").itertuples():
        if "/" in row.subset or row.relation != MEAN:
            continue
        interval = ""
        if pd.notna(row.low):
            low, high = format_value(metric, row.low), format_value(metric, row.high)
            interval = f" [{low}, {high}]"
        value = f"{find_metric(metric).title} {format_value(metric, row.value)}{interval}"
        against = ""
        for test in select(strongest, metric=metric, subset=row.subset).itertuples():
            difference = format_difference(metric, test.difference)
            against = (
                f"; to the strongest baseline, {test.baseline}: {difference}, {p_value(test.p)}"
            )
        lines.append(f"{row.subset}: {value}, queries: {row.n:.0f}{against}")
    return "\n".join(lines)


def _prior(
    references: Mapping[str, tuple[pd.DataFrame, str]], tables: BenchmarkTables, scoring: Scoring
) -> pd.DataFrame:
    """Rows of the comparison for the prior; none where answers are not ranked."""
    if METHOD not in references:
        return pd.DataFrame(columns=COMPARISON)
    predictions, family = references[METHOD]
    scores = score(predictions[predictions["variant"] == ""], tables, family, scoring)
    return pd.DataFrame(to_rows({"": scores}, BASELINE, METHOD), columns=COMPARISON)


def _model(name: str, params: Params) -> library.Model:
    """Find a model of params.yaml, or the checkpoint in a folder."""
    folder = Path(name)
    if is_gguf(folder):
        model = library.load(folder, seed=params.seed)
        model.engine = params.engine
        return model
    if folder.is_dir():
        kinds = library.load(folder).kinds
    else:
        kinds, folder = (params.models.kind(name),), places.MODELS / name
        if not folder.is_dir():
            raise BadInput(folder, "no such checkpoint", "run `medprobe repro` to create it")
    return library.Model(name, folder, kinds, params.engine, params.seed)


def _prober(model: library.Model, method: str, benchmark: str, params: Params) -> Method:
    """Prepare the method with its settings in params.yaml for the benchmark and the model's kind.

    If that kind has no settings, those of another kind count, then the method's defaults.
    """
    kinds = methods.find(method).KINDS
    ordered = [*(kind for kind in model.kinds if kind in kinds), *kinds]
    settings = [params.methods.get(kind, {}).get(method, {}).get(benchmark) for kind in ordered]
    chosen = next((choices for choices in settings if choices is not None), None)
    return model.make_prober(method, chosen)


def _tables(benchmark: str, params: Params) -> BenchmarkTables:
    """Read a benchmark's tables.

    Raises BadInput with the command that builds them if they do not exist.
    """
    folder = places.BENCHMARKS / benchmark
    if not folder.is_dir():
        remedy = f"run `dvc repro build-{params.builder(benchmark)}@{benchmark}`"
        raise BadInput(folder, "not built yet", remedy)
    return BenchmarkTables.read(folder)
