"""A model on a benchmark at once, beside the pipeline: nothing is recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pandas as pd

from medprobe import methods
from medprobe.benchmarks import table
from medprobe.core.answers import with_hits
from medprobe.core.params import ScoreParams
from medprobe.core.progress import show_progress
from medprobe.core.tables import BenchmarkTables, write_predictions
from medprobe.library.model import Model
from medprobe.methods import Method
from medprobe.metrics import Scores, Scoring
from medprobe.metrics.results import COMPARISON, rows_of, score_table
from medprobe.sources import facts as sources


@dataclass(frozen=True)
class Probed:
    """What probing gave."""

    scores: pd.DataFrame  # rows of the comparison (`metrics/results.py` has its columns)
    predictions: pd.DataFrame  # `core/tables.py` has its columns
    tables: BenchmarkTables  # what was asked


def probe(
    model: Model,
    facts: pd.DataFrame | str | Path,
    method: str,
    *,
    prompts: Mapping[str, str] | str | Path | None = None,
    limit: int | None = None,
    normalise: Literal["exact", "biolama"] = "exact",
    settings: Mapping[str, Any] | None = None,
    bootstrap: int = 1000,
    confidence: float = 0.95,
) -> Probed:
    """Ask a model about facts, and score its answers.

    `facts` is a data frame, or a file of such rows: subject, relation, object, and maybe prompt,
    aliases, type, subject_id and object_id (`sources/facts.py`). All objects of a subject are right
    answers, and all objects are the candidates. `prompts` gives each relation's template, with
    `[X]` and `[Y]`, as a map or a file; a row's own prompt goes before it. Of the queries `limit`
    are drawn by the model's seed, evenly over relations.

    Raises BadInput with the row for a fact that cannot be asked, and as `Model.prober` does.
    """
    tables = tables_of(facts, prompts, normalise)
    if limit is not None:
        tables = replace(tables, queries=drawn(tables.queries, limit, model.seed))
    prober = model.prober(method, settings)
    predictions = predicted(prober, tables, model.name)
    params = ScoreParams(bootstrap=bootstrap, confidence=confidence)
    scoring = Scoring(params, model.seed, table.METADATA.cluster)
    scores = scored(predictions, tables, prober.METRIC, scoring)
    rows = rows_of({_name(facts): scores}, model.name, method)
    return Probed(pd.DataFrame(rows, columns=COMPARISON), predictions, tables)


def tables_of(
    facts: pd.DataFrame | str | Path,
    prompts: Mapping[str, str] | str | Path | None = None,
    normalise: Literal["exact", "biolama"] = "exact",
) -> BenchmarkTables:
    """Facts as a benchmark's tables; `probe` says what they are."""
    read = (
        sources.read_frame(facts) if isinstance(facts, pd.DataFrame) else sources.read(Path(facts))
    )
    if not isinstance(prompts, Mapping):
        prompts = sources.read_templates(Path(prompts)) if prompts else {}
    return table.tables(read, prompts, _name(facts), normalise)


def _name(facts: pd.DataFrame | str | Path) -> str:
    return "facts" if isinstance(facts, pd.DataFrame) else Path(facts).stem


def predicted(prober: Method, tables: BenchmarkTables, title: str) -> pd.DataFrame:
    """All passes and tasks of a prober on a benchmark, as its prediction table."""
    tasks = prober.tasks(tables, methods.K)
    jobs = [
        (task, pass_) for pass_ in prober.passes() for task in tasks if prober.asks(pass_, task)
    ]
    parts = []
    with show_progress(title, sum(len(task.queries) for task, _ in jobs), "queries") as now:
        now.advance_to(0)
        for task, pass_ in jobs:
            parts.append(prober.predict(task, pass_))
            now.advance_to(now.count + len(task.queries))
    predictions, _ = prober.notes(pd.concat(parts, ignore_index=True))
    return with_hits(predictions, tables)


def scored(
    predictions: pd.DataFrame,
    tables: BenchmarkTables,
    family: str,
    scoring: Scoring,
    out: Path | None = None,
) -> Scores:
    """What predictions are worth by a family of metrics; they go to the parquet file `out` too,
    where one is named.
    """
    with TemporaryDirectory() as scratch:
        folder = Path(scratch, "benchmark")
        tables.write(folder)
        path = out or Path(scratch, "predictions.parquet")
        write_predictions(predictions, path, family)
        return score_table(path, folder, scoring)


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
