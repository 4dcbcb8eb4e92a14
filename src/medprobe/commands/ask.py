"""`medprobe ask` and `medprobe run`: a model is asked at once, beside the pipeline.

`ask` is for one prompt, `run` for a benchmark. Both name models and settings as a project does, and
record nothing.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

import pandas as pd
from rich.console import Console
from rich.table import Table

from medprobe import methods
from medprobe.benchmarks.table import METADATA
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import MODEL_KINDS, Choices, Params
from medprobe.core.tables import DISTRACTOR, BenchmarkTables, Metadata
from medprobe.library import model as library
from medprobe.library.probing import draw_queries, predict, score, to_tables
from medprobe.methods import Method
from medprobe.metrics import Scoring
from medprobe.metrics.results import COMPARISON, to_rows
from medprobe.metrics.summary import MEANS

DEFAULTS: Final = ("contrastive", "likelihood")  # every model can be asked by one of them


def ask(name: str, prompt: str, method: str | None, benchmark: str, params: Params) -> None:
    """Print the ten best answers to a prompt, with scores, and which of them are right.

    The answers are those of the method's first pass and variant: the paper's. They are known to be
    right or wrong where the benchmark has this prompt.

    Args:
        name: a model of params.yaml, or the folder of a checkpoint.
        prompt: a text with one slot `[Y]`.
        method: how to ask; None takes the first of DEFAULTS that can ask the model.
        benchmark: whose candidates are ranked.
        params: the project's.

    Raises:
        BadInput: for a prompt without exactly one slot.
    """
    if method is None:
        kinds = {*_model(name, params).kinds}
        able = (one for one in DEFAULTS if kinds & {*methods.find(one).KINDS})
        method = next(able, DEFAULTS[0])
    best = answers(name, prompt, method, benchmark, params)
    known = "hit" in best
    columns = ["rank", "answer", "score", *(["right"] if known else [])]
    table = Table(*columns, title=f"{prompt} ({method})")
    for row in best.to_dict("records"):
        right = ["yes" if row["hit"] else "no"] if known else []
        table.add_row(str(row["rank"]), row["prediction"], f"{row['score']:.4f}", *right)
    Console().print(table)


def answers(
    name: str, prompt: str, method: str, benchmark: str, params: Params, *, k: int = methods.K
) -> pd.DataFrame:
    """The first k predictions for one prompt: columns rank, prediction, score, and hit where the
    benchmark has a query of this prompt."""
    if methods.find(method).METRIC != library.ANSWER_METRIC:
        able = ", ".join(library.find_answering(MODEL_KINDS))
        raise BadInput(f"ask --method {method}", "it ranks no candidates", f"one of {able}")
    tables = _tables(benchmark, params)
    candidates = tables.candidates[tables.candidates["type"] != DISTRACTOR]
    queries = tables.queries[tables.queries["prompt"] == prompt].head(1).reset_index(drop=True)
    if queries.empty:
        queries = library.make_query(prompt).assign(benchmark=benchmark)
    else:
        candidates = candidates[candidates["subset"] == queries["subset"].item()]
    names = candidates.drop_duplicates("name").assign(subset=queries["subset"].item())
    prober = _prober(_model(name, params), method, benchmark, params)
    return library.predict_answers(prober, replace(tables, queries=queries, candidates=names), k)


def run(
    name: str,
    method: str,
    benchmark: str,
    params: Params,
    *,
    prompts: Path | None = None,
    limit: int | None = None,
    out: Path | None = None,
) -> None:
    """Probe, and print the means over relations, by variant and subset.

    Args:
        name: a model of params.yaml, or the folder of a checkpoint.
        method: how to ask.
        benchmark: a name of params.yaml, or a file of facts.
        params: the project's.
        prompts: the templates of a file of facts.
        limit: how many queries are drawn by the seed, evenly over relations and subsets.
        out: a parquet file for the predictions.

    Raises:
        BadInput: for a model, method, benchmark or file that there is none of.
    """
    model = _model(name, params)
    if Path(benchmark).suffix and not Path(benchmark).exists():
        raise BadInput(benchmark, "no such file", "name a file of facts, or a benchmark")
    if Path(benchmark).is_file():
        tables, metadata = to_tables(benchmark, prompts), METADATA
    else:
        tables = _tables(benchmark, params)
        metadata = Metadata.read(places.ABOUT / f"{benchmark}.json")
    if limit is not None:
        tables = replace(tables, queries=draw_queries(tables.queries, limit, params.seed))
    scoring = Scoring.for_model(model.folder, metadata, params)
    prober = _prober(model, method, benchmark, params)
    scores = score(predict(prober, tables, name), tables, prober.METRIC, scoring, out)
    rows = pd.DataFrame(to_rows({"": scores}, name, "main"), columns=COMPARISON)
    table = Table("variant", "subset", "relations", "metric", "value", "interval", "queries")
    for row in rows[rows["relation"].isin(MEANS)].itertuples():
        interval = f"{row.low:.3f} – {row.high:.3f}" if pd.notna(row.low) else ""
        count = f"{row.n:.0f}" if pd.notna(row.n) else ""
        table.add_row(
            row.method, row.subset, row.relation, row.metric, f"{row.value:.3f}", interval, count
        )
    Console().print(table)


def _model(name: str, params: Params) -> library.Model:
    """A model of params.yaml, or of the folder of a checkpoint."""
    folder = Path(name)
    if folder.is_dir():
        kinds = library.load(folder).kinds
    else:
        kinds, folder = (params.models.kind(name),), places.MODELS / name
        if not folder.is_dir():
            raise BadInput(folder, "no such checkpoint", "run `medprobe repro` to make it")
    return library.Model(name, folder, kinds, params.engine, params.seed)


def _prober(model: library.Model, method: str, benchmark: str, params: Params) -> Method:
    """The method with the settings that params.yaml has for it on the benchmark and the model's
    kind, or another kind where that has none.

    Without any, the method's defaults count; for a checkpoint in a folder, which no project
    rewired, those of the library.
    """
    kinds = methods.find(method).KINDS
    ordered = [*(kind for kind in model.kinds if kind in kinds), *kinds]
    settings = [params.methods.get(kind, {}).get(method, {}).get(benchmark) for kind in ordered]
    default: Choices | None = None if Path(model.name).is_dir() else {}
    chosen = next((some for some in settings if some is not None), default)
    return model.make_prober(method, chosen)


def _tables(benchmark: str, params: Params) -> BenchmarkTables:
    """A benchmark's tables. Raises BadInput where it is not built, with the command that does."""
    folder = places.BENCHMARKS / benchmark
    if not folder.is_dir():
        remedy = f"run `dvc repro build-{params.builder(benchmark)}@{benchmark}`"
        raise BadInput(folder, "not built yet", remedy)
    return BenchmarkTables.read(folder)
