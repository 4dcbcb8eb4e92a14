"""Stage `probe`: one model under one method on one benchmark."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import pandas as pd
from rich.console import Console
from rich.progress import track

from medprobe import methods
from medprobe.core import places
from medprobe.core.answers import with_hits
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.params import ModelKind, Params, section
from medprobe.core.parts import code_fingerprint, fingerprint, kept, table_fingerprint
from medprobe.core.tables import BenchmarkTables, check_scores, write_predictions
from medprobe.engine.inspection import MissingHead
from medprobe.engine.load import NotANumber
from medprobe.methods import Method, Task

K: Final = 10  # predictions kept for each query: acc@10 is the deepest that the papers report


class Job(NamedTuple):
    """A pass of a task: the part that a stopped run does not do again."""

    pass_: str
    task: Task
    key: dict[str, Any]  # all that its table follows from


def probe(model: str, method: str, benchmark: str, params: Params) -> None:
    """Write `outputs/predictions/<model>/<method>/<benchmark>.parquet`, and the method's notes
    beside it as `<benchmark>-<note>.csv`.

    Each finished part is kept, so that a stopped run goes on where it stopped. Raises BadInput as
    `ready` does, and where a score is no number, with the query.
    """
    title = f"{model}, {method}, {benchmark}"
    prober, tables, jobs = ready(model, method, benchmark, params)
    console = Console(stderr=True)
    with _suited(model, method):
        parts = [
            kept(places.PARTS, job.key, partial(_part, prober, job.task, job.pass_, title))
            for job in track(jobs, title, console=console, disable=not console.is_terminal)
        ]
    predictions, notes = prober.notes(pd.concat(parts, ignore_index=True))
    out = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
    for name, note in notes.items():
        with replacing(out.with_name(f"{benchmark}-{name}.csv")) as path:
            note.to_csv(path, index=False, lineterminator="\n")
    write_predictions(with_hits(predictions, tables), out, prober.METRIC)


def ready(
    model: str, method: str, benchmark: str, params: Params
) -> tuple[Method, BenchmarkTables, list[Job]]:
    """A method, ready to ask a model, and what it will do on a benchmark, finished parts too.

    Raises BadInput where the method cannot serve the model, with those that can.
    """
    kind = params.models.kind(model)
    plugin = methods.find(method)
    if kind not in plugin.KINDS:
        raise _unsuited(method, model, plugin.KINDS, f"this one is {kind}", (kind,))
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
    with _suited(model, method):
        prober = plugin(places.MODELS / model, settings, params.engine, params.seed)
        return prober, tables, list(_jobs(prober, tables, about))


def _jobs(prober: Method, tables: BenchmarkTables, about: dict[str, Any]) -> Iterator[Job]:
    tasks = [(task, _fingerprints(task)) for task in prober.tasks(tables, K)]
    for pass_ in prober.passes():
        inputs = fingerprint(prober.inputs(pass_))
        for task, hashes in tasks:
            if prober.asks(pass_, task):
                more = {"inputs": inputs, "pass": pass_, "task": task.name, "tables": hashes}
                yield Job(pass_, task, {**about, **more})


@contextmanager
def _suited(model: str, method: str) -> Iterator[None]:
    """Where the checkpoint lacks a head: which methods could be used."""
    try:
        yield
    except MissingHead as error:
        kinds = methods.find(method).KINDS
        raise _unsuited(method, model, kinds, str(error), error.kinds) from error


def _unsuited(
    method: str, model: str, kinds: tuple[ModelKind, ...], reason: str, serves: tuple[str, ...]
) -> BadInput:
    able = [name for name in methods.names() if {*serves} & {*methods.find(name).KINDS}]
    problem = f"the method needs a model of kind {' or '.join(kinds)}, {reason}"
    return BadInput(f"{method} on {model}", problem, f"choose one of: {', '.join(able)}")


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
