"""`medprobe run`: a model on a benchmark at once, beside the pipeline: nothing is recorded."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from rich.console import Console
from rich.progress import track
from rich.table import Table

from medprobe.commands import asked
from medprobe.core import places
from medprobe.core.answers import with_hits
from medprobe.core.params import Params
from medprobe.core.tables import BenchmarkTables, Metadata, write_predictions
from medprobe.methods import Method
from medprobe.metrics import Scoring
from medprobe.metrics.results import COMPARISON, rows_of, score_table
from medprobe.metrics.summary import MEANS

K = 10  # predictions of each query, as in the pipeline


def run(
    model: str,
    method: str,
    benchmark: str,
    params: Params,
    *,
    limit: int | None = None,
    out: Path | None = None,
) -> None:
    """Probe and print the means over relations, by variant and subset. `model` is a name of
    params.yaml or a folder; of the queries `limit` are drawn by the seed, evenly over relations and
    subsets. The predictions go to the parquet file `out`, where one is named.

    Raises BadInput as `asked.prober` and `asked.tables` do.
    """
    tables = asked.tables(benchmark, params)
    if limit is not None:
        tables = replace(tables, queries=drawn(tables.queries, limit, params.seed))
    prober = asked.prober(model, method, benchmark, params)
    metadata = Metadata.read(places.ABOUT / f"{benchmark}.json")
    scores = scored(prober, tables, Scoring.of(prober.checkpoint, metadata, params), model, out)
    shown = Table("variant", "subset", "relations", "metric", "value", "interval", "queries")
    for row in scores[scores["relation"].isin(MEANS)].itertuples():
        interval = f"{row.low:.3f} – {row.high:.3f}" if pd.notna(row.low) else ""
        count = f"{row.n:.0f}" if pd.notna(row.n) else ""
        shown.add_row(
            row.method, row.subset, row.relation, row.metric, f"{row.value:.3f}", interval, count
        )
    Console().print(shown)


def drawn(queries: pd.DataFrame, limit: int, seed: int) -> pd.DataFrame:
    """At most `limit` queries, in their order: one of each relation and subset, then a second, and
    so on, the order of each drawn by the seed.

    >>> table = pd.DataFrame({"subset": "full", "relation": ["a", "a", "a", "b"]})
    >>> sorted(drawn(table, 2, 0)["relation"])
    ['a', 'b']
    """
    shuffled = queries.sample(frac=1, random_state=seed)
    turn = shuffled.groupby(["subset", "relation"]).cumcount()
    chosen = turn.sort_values(kind="stable").index[:limit]
    return queries.loc[sorted(chosen)].reset_index(drop=True)


def scored(
    prober: Method, tables: BenchmarkTables, scoring: Scoring, model: str, out: Path | None
) -> pd.DataFrame:
    """What a prober's predictions are worth: rows of the comparison."""
    tasks = prober.tasks(tables, K)
    jobs = [
        (task, pass_) for pass_ in prober.passes() for task in tasks if prober.asks(pass_, task)
    ]
    console = Console(stderr=True)
    shown = track(jobs, model, console=console, disable=not console.is_terminal)
    parts = [prober.predict(task, pass_) for task, pass_ in shown]
    predictions, _ = prober.notes(pd.concat(parts, ignore_index=True))
    with TemporaryDirectory() as scratch:
        folder = Path(scratch, "benchmark")
        tables.write(folder)
        path = out or Path(scratch, "predictions.parquet")
        write_predictions(with_hits(predictions, tables), path, prober.METRIC)
        found = score_table(path, folder, scoring)
    return pd.DataFrame(rows_of({"": found}, model, "main"), columns=COMPARISON)
