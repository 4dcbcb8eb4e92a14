"""`medprobe run`: a model on a benchmark at once, beside the pipeline: nothing is recorded."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from medprobe.benchmarks.table import METADATA
from medprobe.commands import asked
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.core.tables import Metadata
from medprobe.library.probing import drawn, predicted, scored, tables_of
from medprobe.metrics import Scoring
from medprobe.metrics.results import COMPARISON, rows_of
from medprobe.metrics.summary import MEANS


def run(
    model: str,
    method: str,
    benchmark: str,
    params: Params,
    *,
    prompts: Path | None = None,
    limit: int | None = None,
    out: Path | None = None,
) -> None:
    """Probe and print the means over relations, by variant and subset. `model` is a name of
    params.yaml or a folder; `benchmark` a name of params.yaml, or a file of facts, which `prompts`
    has the templates for. Of the queries `limit` are drawn by the seed, evenly over relations and
    subsets. The predictions go to the parquet file `out`, where one is named.

    Raises BadInput as the functions of `asked` and `library.probe` do.
    """
    asking = asked.model(model, params)
    if Path(benchmark).suffix and not Path(benchmark).exists():
        raise BadInput(benchmark, "no such file", "name a file of facts, or a benchmark")
    if Path(benchmark).is_file():
        tables, metadata = tables_of(benchmark, prompts), METADATA
    else:
        tables = asked.tables(benchmark, params)
        metadata = Metadata.read(places.ABOUT / f"{benchmark}.json")
    if limit is not None:
        tables = replace(tables, queries=drawn(tables.queries, limit, params.seed))
    scoring = Scoring.of(asking.folder, metadata, params)
    prober = asking.prober(method, asked.settings(asking, method, benchmark, params))
    scores = scored(predicted(prober, tables, model), tables, prober.METRIC, scoring, out)
    rows = pd.DataFrame(rows_of({"": scores}, model, "main"), columns=COMPARISON)
    shown = Table("variant", "subset", "relations", "metric", "value", "interval", "queries")
    for row in rows[rows["relation"].isin(MEANS)].itertuples():
        interval = f"{row.low:.3f} – {row.high:.3f}" if pd.notna(row.low) else ""
        count = f"{row.n:.0f}" if pd.notna(row.n) else ""
        shown.add_row(
            row.method, row.subset, row.relation, row.metric, f"{row.value:.3f}", interval, count
        )
    Console().print(shown)
