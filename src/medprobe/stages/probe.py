"""Stage `probe`: one model under one method on one benchmark."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from medprobe import methods
from medprobe.core import neutral, places
from medprobe.core.answers import with_hits
from medprobe.core.errors import BadInput
from medprobe.core.executor import Executor, Job, in_this_process
from medprobe.core.files import replacing
from medprobe.core.params import EngineParams, Params, RankingSettings, parse_section
from medprobe.core.parts import (
    code_fingerprint,
    fingerprint,
    part_path,
    table_fingerprint,
    write_part,
)
from medprobe.core.progress import show_progress, with_progress
from medprobe.core.tables import BenchmarkTables, check_scores, write_predictions
from medprobe.engine.batching import out_of_memory
from medprobe.engine.inspection import MissingHead, read_config
from medprobe.engine.load import NotANumber, device_of, token_budget
from medprobe.methods import Method, Task

SMALLEST: Final = 64  # tokens of a batch, below which halving its budget frees nothing of note


def probe(
    model: str, method: str, benchmark: str, params: Params, executor: Executor = in_this_process
) -> None:
    """Write `outputs/predictions/<model>/<method>/<benchmark>.parquet`, and the method's notes
    beside it as `<benchmark>-<note>.csv`.

    Each finished part is kept, so that a stopped run goes on where it stopped. Raises BadInput as
    `ready` does, where a score is no number, with the query, and where the notes are not those that
    the method's NOTES names, and so no outputs of the stage.
    """
    probing = ready(model, method, benchmark, params)
    with _suited(model, method):
        parts = _parts(probing, executor)
    predictions, notes = probing.prober.notes(pd.concat(parts, ignore_index=True))
    if {*notes} != {*probing.prober.NOTES}:
        problem = f"the method's notes are {[*notes]}, its NOTES name {[*probing.prober.NOTES]}"
        raise BadInput(f"methods/{method}.py", problem, "name all, then run medprobe pipeline")
    out = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
    for name, note in notes.items():
        with replacing(out.with_name(f"{benchmark}-{name}.csv")) as path:
            note.to_csv(path, index=False, lineterminator="\n")
    write_predictions(with_hits(predictions, probing.tables), out, probing.prober.METRIC)


def ready(model: str, method: str, benchmark: str, params: Params) -> "Probing":
    """All that the stage will do, finished parts too. Raises BadInput where the method cannot
    serve the model, with those that can."""
    kind = params.models.kind(model)
    plugin = methods.find(method)
    if kind not in plugin.KINDS:
        raise methods.mismatch_error(method, model, f"this one is {kind}", [kind])
    where = f"params.yaml: methods.{kind}.{method}.{benchmark}"
    settings = parse_section(plugin.Settings, params.choices(model, method, benchmark), where)
    tables = BenchmarkTables.read(places.BENCHMARKS / benchmark)
    about = {
        "method": method,
        "settings": settings.model_dump(mode="json", exclude={*plugin.SELECTING, neutral.VARIANT}),
        "precision": params.engine.precision,
        "seed": params.seed,
        "normalise": tables.normalise,
        "code": code_fingerprint(__name__, {"methods": [method]}),
    }
    probing = Probing(
        title=f"{model}, {method}, {benchmark}",
        method=method,
        checkpoint=places.MODELS / model,
        settings=settings,
        engine=params.engine,
        seed=params.seed,
        tables=tables,
        about=about,
    )
    with _suited(model, method):
        if not probing.tasks:  # this loads the model
            raise BadInput(probing.title, "the benchmark has no queries")
    return probing


@contextmanager
def _suited(model: str, method: str) -> Iterator[None]:
    """Where the checkpoint lacks a head: which methods could be used."""
    try:
        yield
    except MissingHead as error:
        raise methods.mismatch_error(method, model, str(error), error.kinds) from error


class Asked(NamedTuple):
    """What is predicted together: one pass of tasks that share what they compute, by numbers."""

    pass_: str
    tasks: tuple[int, ...]
    halved: int = 0  # how often the budget of tokens is to be halved at least


@dataclass
class Probing:
    """A model under a method on a benchmark's tables: the work of this stage.

    A copy sent to a worker is without the model, which is loaded there. Where the memory does not
    suffice for a part, the budget of tokens is halved for it and all later ones.
    """

    title: str  # in errors and progress
    method: str
    checkpoint: Path
    settings: Any
    engine: EngineParams
    seed: int
    tables: BenchmarkTables
    about: dict[str, Any]  # what all parts follow from
    halved: int = 0  # how often the budget of tokens was

    def __reduce__(self) -> Any:
        recipe = (self.title, self.method, self.checkpoint, self.settings)
        return type(self), (*recipe, self.engine.for_worker, self.seed, self.tables, self.about)

    @cached_property
    def prober(self) -> Method:
        """The method, at the model."""
        plugin = methods.find(self.method)
        return plugin(self.checkpoint, self.settings, self.engine.for_driver, self.seed)

    @cached_property
    def tasks(self) -> list[Task]:
        """All tasks, those without subjects last; the same in every copy."""
        return [*self._with_subjects, *self._without_subjects]

    @cached_property
    def _with_subjects(self) -> list[Task]:
        return self.prober.tasks(self.tables, methods.K)

    @cached_property
    def _without_subjects(self) -> list[Task]:
        settings = self.settings
        if not (isinstance(settings, RankingSettings) and settings.neutral):
            return []
        tasks = self.prober.tasks(neutral.neutral_tables(self.tables), methods.K)
        return [replace(task, name=f"{task.name} {neutral.VARIANT}") for task in tasks]

    def is_neutral(self, number: int) -> bool:
        """Is this task without subjects?"""
        return number >= len(self._with_subjects)

    def asked(self) -> list[Asked]:
        """All there is to do, in order."""
        return [
            Asked(pass_, tuple(number for number, _ in together))
            for pass_ in self.prober.passes()
            for _, together in groupby(
                (one for one in enumerate(self.tasks) if self.prober.asks(pass_, one[1])),
                key=lambda one: (self.is_neutral(one[0]), self.prober.shares(one[1])),
            )
        ]

    def parts(self) -> list[tuple[Asked, list[Path]]]:
        """All there is to do, with where each task's table is kept."""
        hashes = _fingerprints(self.tasks)
        inputs = {pass_: fingerprint(self.prober.inputs(pass_)) for pass_ in self.prober.passes()}
        found = []
        for asked in self.asked():
            key = {**self.about, "inputs": inputs[asked.pass_], "pass": asked.pass_}
            of_tasks = [
                {**key, "task": self.tasks[number].name, "tables": hashes[number]}
                for number in asked.tasks
            ]
            found.append((asked, [part_path(places.PARTS, one) for one in of_tasks]))
        return found

    def job(self, asked: Asked) -> Job:
        """For an executor."""
        reads = tuple(self.prober.inputs(asked.pass_))
        again = (asked, asked._replace(halved=2))  # two workers are not lost by chance
        return Job(self.name(asked), asked, reads, retry_arguments=again)

    def name(self, asked: Asked) -> str:
        """What it is called in errors."""
        some = len(asked.tasks) < len(self.tasks)
        names = (asked.pass_, self.tasks[asked.tasks[0]].name if some else "")
        name = " ".join(filter(None, names))
        return f"{self.title}: {name}" if name else self.title

    def __call__(self, asked: Asked) -> list[pd.DataFrame]:
        """A table for each task. Raises BadInput where the memory does not suffice for the smallest
        batches."""
        while self.halved < asked.halved and self._halve():
            pass
        while True:
            try:
                return [self._part(number, asked.pass_) for number in asked.tasks]
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
            if not self._halve():  # once the error has let go of what it held
                problem = "the memory does not hold it, with the smallest batches either"
                raise BadInput(self.name(asked), problem, "use a machine with more")

    def _part(self, number: int, pass_: str) -> pd.DataFrame:
        """The table of a task under a pass."""
        table = _part(self.prober, self.tasks[number], pass_, self.title)
        return neutral.as_control(table) if self.is_neutral(number) else table

    def _halve(self) -> bool:
        """Load the model anew, for batches half as large, if they can be smaller."""
        device = device_of(self.engine.for_driver.device)
        budget = self.engine.token_budget or token_budget(device, read_config(self.checkpoint))
        if budget <= SMALLEST:
            return False
        self.engine = self.engine.model_copy(update={"token_budget": max(SMALLEST, budget // 2)})
        self.halved += 1
        self.__dict__.pop("prober", None)
        return True


def _parts(probing: Probing, executor: Executor) -> list[pd.DataFrame]:
    """One table a pass and task: the parts that a stopped run does not do again, but for those that
    share what they compute, which are done together or not at all."""
    parts = probing.parts()
    missing = [one for one in parts if not all(path.is_file() for path in one[1])]
    sizes, unit = _sizes(probing, [asked for asked, _ in missing])
    jobs = [probing.job(asked) for asked, _ in missing]
    with show_progress(probing.title, sum(sizes), unit) as now:
        now.advance_to(0)
        for number, tables in with_progress(executor(probing, jobs), sizes, now):
            for table, path in zip(tables, missing[number][1], strict=True):
                write_part(table, path)
    return [pd.read_parquet(path) for _, paths in parts for path in paths]


def _sizes(probing: Probing, asked: list[Asked]) -> tuple[list[int], str]:
    """How much there is to do, and of what: tokens to read where they are known beforehand, so that
    progress is heard of batch by batch, else queries."""
    prober, tasks = probing.prober, probing.tasks
    lengths = [[prober.reads(tasks[n], one.pass_) for n in one.tasks] for one in asked]
    if all(some is not None for of_job in lengths for some in of_job):
        return [sum(sum(some or ()) for some in of_job) for of_job in lengths], "tokens"
    return [sum(len(tasks[n].queries) for n in one.tasks) for one in asked], "queries"


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
    """The id of a query that the model has no number for: half of them are asked anew each time.
    Of queries that cannot be asked apart, the first and the last."""
    queries = task.queries
    while len(queries) > 1:
        half = queries.iloc[: len(queries) // 2].reset_index(drop=True)
        try:
            prober.predict(replace(task, queries=half), pass_)
            queries = queries.iloc[len(half) :]
        except NotANumber:
            queries = half
        except BadInput:
            break
    return " to ".join(map(str, queries["query_id"].iloc[[0, -1]].unique()))


def _fingerprints(tasks: list[Task]) -> list[list[str]]:
    """Those of each task's tables; of a table that tasks share, once."""
    tables = [[one.queries, one.candidates, *one.tables.values()] for one in tasks]
    known = {id(table): table for of_task in tables for table in of_task}
    found = {key: table_fingerprint(table) for key, table in known.items()}
    return [[found[id(table)] for table in of_task] for of_task in tables]
