"""Stage `probe`: one model under one method on one benchmark."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
from rich.console import Console
from rich.progress import track

from medprobe import methods
from medprobe.core import places
from medprobe.core.answers import with_hits
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.params import Params, section
from medprobe.core.parts import code_fingerprint, fingerprint, kept, table_fingerprint
from medprobe.core.tables import BenchmarkTables, check_scores, write_predictions
from medprobe.engine.inspection import MissingHead
from medprobe.engine.load import NotANumber
from medprobe.methods import Method, Task


def probe(model: str, method: str, benchmark: str, params: Params) -> None:
    """Write `outputs/predictions/<model>/<method>/<benchmark>.parquet`, and the method's notes
    beside it as `<benchmark>-<note>.csv`.

    Each finished part is kept, so that a stopped run goes on where it stopped. Raises BadInput
    where the method cannot serve the model, with those that can, and where a score is no number,
    with the query.
    """
    kind = params.models.kind(model)
    plugin = methods.find(method)
    if kind not in plugin.KINDS:
        raise methods.unsuited(method, model, f"this one is {kind}", [kind])
    where = f"params.yaml: methods.{kind}.{method}.{benchmark}"
    settings = section(plugin.Settings, params.choices(model, method, benchmark), where)
    tables = BenchmarkTables.read(places.BENCHMARKS / benchmark)
    about = {
        "method": method,
        "settings": settings.model_dump(mode="json", exclude={*plugin.SELECTING}),
        "precision": params.engine.precision,
        "seed": params.seed,
        "normalise": tables.normalise,
        "code": code_fingerprint(__name__, {"methods": [method]}),
    }
    try:
        prober = plugin(places.MODELS / model, settings, params.engine, params.seed)
        parts = list(_parts(prober, tables, about, f"{model}, {method}, {benchmark}"))
    except MissingHead as error:
        raise methods.unsuited(method, model, str(error), error.kinds) from error
    predictions, notes = prober.notes(pd.concat(parts, ignore_index=True))
    out = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
    for name, note in notes.items():
        with replacing(out.with_name(f"{benchmark}-{name}.csv")) as path:
            note.to_csv(path, index=False, lineterminator="\n")
    write_predictions(with_hits(predictions, tables), out, plugin.METRIC)


def _parts(
    prober: Method, tables: BenchmarkTables, about: dict[str, Any], title: str
) -> Iterator[pd.DataFrame]:
    """One table a pass and task: the parts that a stopped run does not do again."""
    tasks = [(task, _fingerprints(task)) for task in prober.tasks(tables, methods.K)]
    jobs = [
        (pass_, *job) for pass_ in prober.passes() for job in tasks if prober.asks(pass_, job[0])
    ]
    inputs: dict[str, str] = {}
    console = Console(stderr=True)
    for pass_, task, hashes in track(jobs, title, console=console, disable=not console.is_terminal):
        if pass_ not in inputs:
            inputs[pass_] = fingerprint(prober.inputs(pass_))
        key = {
            **about,
            "inputs": inputs[pass_],
            "pass": pass_,
            "task": task.name,
            "tables": hashes,
        }
        yield kept(places.PARTS, key, partial(_part, prober, task, pass_, title))


def _part(prober: Method, task: Task, pass_: str, title: str) -> pd.DataFrame:
    """One part, all of whose scores are numbers. Raises BadInput with the query of the first that
    is none."""
    try:
        table = prober.predict(task, pass_)
    except NotANumber as error:
        where = f"{title}: {task.name}, query {_culprit(prober, task, pass_)}"
        raise BadInput(where, str(error)) from error
    check_scores(table, f"{title}: {task.name}")
    return table


def _culprit(prober: Method, task: Task, pass_: str) -> str:
    """The id of a query that the model has no number for: half of them are asked anew each time."""
    queries = task.queries
    while len(queries) > 1:
        half = queries.iloc[: len(queries) // 2].reset_index(drop=True)
        try:
            prober.predict(replace(task, queries=half), pass_)
            queries = queries.iloc[len(half) :]
        except NotANumber:
            queries = half
    return str(queries["query_id"].iloc[0])


def _fingerprints(task: Task) -> list[str]:
    return [table_fingerprint(t) for t in (task.queries, task.candidates, *task.tables.values())]
