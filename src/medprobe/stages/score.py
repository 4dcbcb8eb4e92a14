"""Stage `score`: every number of the project, from the predictions on disk.

Tables of ranks are scored by accuracy, tables with a column `perplexity` by its mean. A benchmark
with another metric says so in its own file, by one of two functions: `values(predictions, folder)`
gives one row an item with columns `variant, replicate, query_id, subset, relation` and one for each
metric, which are averaged here like accuracy; `score(predictions, folder, params)` gives the
finished scores (metrics that are no mean, as F1), and then `paired(predictions, folder)` gives the
rows, as of `values`, that the paired tests compare.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from medprobe import benchmarks as registry
from medprobe import places
from medprobe.errors import BadInput
from medprobe.files import replacing
from medprobe.metrics import accuracy, perplexity
from medprobe.metrics.splits import with_parts
from medprobe.metrics.summary import Scores, summarise
from medprobe.params import Params
from medprobe.tables import PREDICTION_COLUMNS, QUERY_COLUMNS, read_table

FACTS = places.DATA / "sample" / "facts.csv"  # what the sample world's models were taught


def score(
    predictions: Path, benchmarks: Path, out: Path, params: Params, facts: Path = FACTS
) -> None:
    """Write `out/<model>/<method>.json` for all of `predictions/<model>/<method>/*.parquet`.

    A file is a map: benchmark -> variant ("default" for the only or main one) -> subset ->
    relation, macro or micro -> metric -> value, low, high, n and, over replicates, std.
    Raises BadInput where there are no predictions, or predictions of another benchmark's queries.
    """
    scores: dict[tuple[str, str], dict[str, Scores]] = {}
    for model, method, table in tables(predictions):
        one = score_table(table, benchmarks, params, facts)
        scores.setdefault((model, method), {})[table.stem] = one
    with replacing(out) as folder:
        folder.mkdir()
        for (model, method), content in scores.items():
            path = folder / model / f"{method}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(_json(content), encoding="utf-8")


def _json(content: dict[str, Scores]) -> str:
    """JSON with a line for each metric, so that a change of one reads as one line in git."""
    text = json.dumps(content, indent=1, sort_keys=True)
    return re.sub(r"{([^{}]*)}", lambda found: f"{{{' '.join(found[1].split())}}}", text) + "\n"


def tables(predictions: Path) -> Iterator[tuple[str, str, Path]]:
    """`(model, method, its prediction table of one benchmark)`, in the order of their names."""
    found = sorted(predictions.glob("*/*/*.parquet"))
    if not found:
        raise BadInput(predictions, "no predictions", "run `dvc repro` to probe the models")
    for path in found:
        yield path.parent.parent.name, path.parent.name, path


def score_table(table: Path, benchmarks: Path, params: Params, facts: Path = FACTS) -> Scores:
    """The scores of one model under one method on the benchmark that the table is named after."""
    module, folder = registry.find(table.stem), benchmarks / table.stem
    if hasattr(module, "score"):
        scores: Scores = module.score(read_table(table, []), folder, params)
        return scores
    values = with_parts(per_query(table, benchmarks), folder, facts)
    return summarise(values, params.score, params.seed)


def per_query(table: Path, benchmarks: Path) -> pd.DataFrame:
    """One row a variant, replicate and query, one column a metric: what scores and paired tests
    are made of. Empty where the benchmark's metric is no mean over queries."""
    module, folder = registry.find(table.stem), benchmarks / table.stem
    if hasattr(module, "values"):
        values: pd.DataFrame = module.values(read_table(table, []), folder)
        return values
    if hasattr(module, "score"):
        return pd.DataFrame()
    predictions = read_table(table, PREDICTION_COLUMNS)
    queries = read_table(folder / "queries.parquet", QUERY_COLUMNS)
    if perplexity.COLUMN in predictions:
        return perplexity.values(predictions, queries)
    try:
        return accuracy.values(predictions, queries)
    except BadInput as error:
        raise BadInput(table, str(error)) from None
