"""The work of probing: one model under one method on one benchmark, in parts that are kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from medprobe import backends, methods
from medprobe.core import places
from medprobe.core.code import code_key
from medprobe.core.errors import BadInput, NotAsked
from medprobe.core.executor import Executor, Job
from medprobe.core.params import EngineParams, ModelKind, Params
from medprobe.core.parts import (
    fingerprint,
    part_path,
    read_part,
    table_fingerprint,
    write_part,
)
from medprobe.core.plugins import find_plugins
from medprobe.core.progress import print_above, show_progress, with_progress
from medprobe.core.servers import check_requests, check_terms
from medprobe.core.settings import parse_section
from medprobe.core.tables import (
    BenchmarkTables,
    Metadata,
    check_scores,
    check_texts,
)
from medprobe.engine.batching import out_of_memory
from medprobe.engine.configuration import read_config
from medprobe.engine.inspection import MissingHead
from medprobe.engine.load import NotANumber, choose_device, token_budget
from medprobe.engine.tokenizer import load_tokenizer, special_tokens
from medprobe.engine.windows import (
    describe_long_names,
    describe_shorter,
    find_long_names,
    shorten_prompts,
)
from medprobe.methods import Method, Task

CODE: Final = (  # of each result, beside that of its method
    *("core", "engine", "backends", "methods/__init__.py"),
    *("pipeline/probing.py", "pipeline/stages/probe.py"),
)
SMALLEST: Final = 64  # tokens of a batch, below which halving its budget frees nothing of note


def prepare(model: str, method: str, benchmark: str, params: Params) -> "Probing":
    """The work of the stage, finished parts too."""
    kind = params.models.kind(model)
    settings = parse_settings(model, method, benchmark, params)
    _check_abilities(model, method, kind)
    if server := params.servers.get(model):
        metadata = Metadata.read(places.ABOUT / f"{benchmark}.json")
        check_terms(server, f"{benchmark} on {model}", metadata)
    tables = BenchmarkTables.read(places.BENCHMARKS / benchmark)
    tables, _ = shorten_prompts(places.MODELS / model, tables)
    recipe = {
        "method": method,
        "settings": settings.model_dump(mode="json", exclude={*methods.find(method).ONLY_SELECTS}),
        "precision": params.engine.precision,
        "seed": params.seed,
        "normalise": tables.normalise,
        "code": method_code(method, places.MODELS / model),
    }
    probing = Probing(
        title=f"{model}, {method}, {benchmark}",
        method=method,
        checkpoint=places.MODELS / model,
        settings=settings,
        engine=params.engine,
        seed=params.seed,
        tables=tables,
        recipe=recipe,
        keeps_states=True,
    )
    with naming_suitable_methods(model, method):
        if not probing.tasks:  # this loads the model
            raise BadInput(probing.title, "the benchmark has no queries")
        if not probing.prober.passes():
            problem = "the model's backend can give none of the variants in params.yaml"
            raise NotAsked(f"{method} on {model}", problem, "`medprobe doctor` shows what it can")
    if server:
        check_requests(server, probing.title, probing.count_requests())
    return probing


def parse_settings(model: str, method: str, benchmark: str, params: Params) -> Any:
    """The settings of a method on a benchmark, as params.yaml has them for the model's kind."""
    kind = params.models.kind(model)
    plugin = methods.find(method)
    if kind not in plugin.KINDS:
        raise methods.mismatch_error(method, model, f"this one is {kind}", [kind])
    choices = params.choices(model, method, benchmark)
    return parse_section(
        plugin.Settings, choices, f"params.yaml: methods.{kind}.{method}.{benchmark}"
    )


def method_code(method: str, checkpoint: Path) -> str:
    """What stands for the code of a result in its key: of method, backend and engine."""
    plugins = [find_plugins("methods")[method]]
    if model := backends.read_plugin_model(checkpoint):
        plugins += [find_plugins("backends")[model.backend]]
    return code_key(*CODE, version=methods.find(method).VERSION, plugins=plugins)


def check_benchmark(name: str, benchmark: str) -> None:
    """Refuse a benchmark in which a text is a special token to the model's tokenizer.

    That of a plugin's model is not always known. What is longer than the model reads is printed.
    """
    checkpoint, tables = places.MODELS / name, BenchmarkTables.read(places.BENCHMARKS / benchmark)
    long = describe_long_names(find_long_names(checkpoint, tables))
    for line in filter(None, [describe_shorter(shorten_prompts(checkpoint, tables)[1]), long]):
        print_above(f"warning: {name}, {benchmark}: {line}")
    model = backends.read_plugin_model(checkpoint)
    folder = model.tokenizer if model else checkpoint
    if folder and (folder / "config.json").is_file():
        check_texts(tables, special_tokens(load_tokenizer(folder, read_config(folder))))


def _check_abilities(model: str, method: str, kind: ModelKind) -> None:
    """Refuse a method if the model's backend can do nothing of what it needs."""
    plugin, folder = methods.find(method), places.MODELS / model
    abilities = backends.find_abilities(folder)
    if plugin.NEEDS & abilities:
        return
    described = backends.read_plugin_model(folder)
    lacks = described.lacks if described else {}
    problem, lack = "its backend cannot do what the method needs", "not by this backend"
    needs = "; ".join(f"{need}: {lacks.get(need, lack)}" for need in sorted(plugin.NEEDS))
    suitable = [
        name for name in methods.find_by_kind([kind]) if methods.find(name).NEEDS & abilities
    ]
    remedy = f"choose one of: {', '.join(suitable) or 'none'}"
    raise NotAsked(f"{method} on {model}", f"{problem} ({needs})", remedy)


@contextmanager
def naming_suitable_methods(model: str, method: str) -> Iterator[None]:
    """If the checkpoint lacks a head, name the methods that could be used."""
    try:
        yield
    except MissingHead as error:
        raise methods.mismatch_error(method, model, str(error), error.kinds) from error


class TaskGroup(NamedTuple):
    """Tasks that are predicted together: one pass of tasks that share computation."""

    pass_: Any
    tasks: tuple[int, ...]  # their numbers
    halved: int = 0  # how often the budget of tokens must be halved at least


@dataclass
class Probing:
    """A model under a method on a benchmark's tables: the work of this stage.

    A copy that is sent to a worker has no model; the worker loads it. If a part does not fit into
    memory, the budget of tokens is halved for it and for all later parts.
    """

    title: str  # in errors and progress
    method: str
    checkpoint: Path
    settings: Any
    engine: EngineParams
    seed: int
    tables: BenchmarkTables
    recipe: dict[str, Any]  # what the results of all parts depend on
    keeps_states: bool = False  # of trainings; a worker's copy keeps none
    halved: int = 0  # how often the budget of tokens has been halved

    def __reduce__(self) -> Any:
        arguments = (self.title, self.method, self.checkpoint, self.settings)
        return type(self), (*arguments, self.engine.for_worker, self.seed, self.tables, self.recipe)

    @cached_property
    def prober(self) -> Method:
        """The method with its model."""
        plugin = methods.find(self.method)
        return plugin(self.checkpoint, self.settings, self.engine.for_driver, self.seed)

    @cached_property
    def tasks(self) -> list[Task]:
        """All tasks; the same in every copy."""
        return self.prober.tasks(self.tables, methods.K)

    def task_groups(self) -> list[TaskGroup]:
        """All groups of tasks, in the order in which they are computed."""
        groups = []
        for pass_ in self.prober.passes():
            numbers = [n for n, task in enumerate(self.tasks) if task.is_of(pass_)]
            for _, together in groupby(
                numbers, key=lambda number: self.prober.batch_key(self.tasks[number])
            ):
                groups.append(TaskGroup(pass_, tuple(together)))
        return groups

    def parts(self) -> list[tuple[TaskGroup, list[Path]]]:
        """All groups of tasks, each with the files that keep its tasks' tables."""
        return [
            (group, [self._part_path(number, group.pass_) for number in group.tasks])
            for group in self.task_groups()
        ]

    def unfinished(self) -> list[tuple[TaskGroup, list[Path]]]:
        """Those of `parts` that lack a table."""
        return [
            (group, paths)
            for group, paths in self.parts()
            if any(read_part(path) is None for path in paths)
        ]

    def count_requests(self) -> int:
        """The requests to a server that unfinished parts send."""
        return sum(
            self.prober.requests(self.tasks[number], group.pass_)
            for group, _ in self.unfinished()
            for number in group.tasks
        )

    @cached_property
    def _hashes(self) -> tuple[list[list[str]], dict[Any, str]]:
        """The fingerprints of each task's tables, and of the inputs of each pass."""
        inputs = {
            pass_: fingerprint(map(backends.hashed_path, self.prober.inputs(pass_)))
            for pass_ in self.prober.passes()
        }
        return _fingerprint_tables(self.tasks), inputs

    def _part_path(self, number: int, pass_: Any) -> Path:
        """The file that keeps the table of a task under a pass."""
        tables, inputs = self._hashes
        key = {**self.recipe, "inputs": inputs[pass_], "pass": str(pass_)}
        task_key = {**key, "task": self.tasks[number].name, "tables": tables[number]}
        return part_path(places.PARTS, task_key)

    def job(self, group: TaskGroup) -> Job:
        """A group of tasks as a job for an executor."""
        reads = tuple(self.prober.inputs(group.pass_))
        attempts = (group, group._replace(halved=2))  # two workers are not lost by chance
        return Job(self.name(group), group, reads, retry_arguments=attempts)

    def name(self, group: TaskGroup) -> str:
        """What a group of tasks is called in errors."""
        is_split = len(group.tasks) < len(self.tasks)
        names = (str(group.pass_), self.tasks[group.tasks[0]].name if is_split else "")
        name = " ".join(filter(None, names))
        return f"{self.title}: {name}" if name else self.title

    def __call__(self, group: TaskGroup) -> list[pd.DataFrame]:
        """A table for each task of a group."""
        while self.halved < group.halved and self._halve():
            pass
        while True:
            try:
                return [self._predict(number, group.pass_) for number in group.tasks]
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
            if not self._halve():  # once the error has let go of what it held
                problem = "out of memory, even with the smallest batches"
                raise BadInput(self.name(group), problem, "use a machine with more memory")

    def _predict(self, number: int, pass_: Any) -> pd.DataFrame:
        task = self.tasks[number]
        if self.keeps_states:
            task = replace(task, state=state_path(self._part_path(number, pass_)))
        return _predict_task(self.prober, task, pass_, self.title)

    def _halve(self) -> bool:
        """Load the model again, for batches of half the size. False if they cannot be smaller."""
        if "weights" not in backends.find_abilities(self.checkpoint):
            return False
        device = choose_device(self.engine.for_driver.device)
        budget = self.engine.token_budget or token_budget(device, read_config(self.checkpoint))
        if budget <= SMALLEST:
            return False
        self.engine = self.engine.model_copy(update={"token_budget": max(SMALLEST, budget // 2)})
        self.halved += 1
        self.__dict__.pop("prober", None)
        return True


def state_path(part: Path) -> Path:
    """The file of a training's state, before its part is finished."""
    return part.with_suffix(".pt")


def compute_parts(probing: Probing, executor: Executor) -> list[Path]:
    """The parts of a result, which a stopped run keeps: one table per pass and task.

    Tasks that share computation are computed together: if one table is missing, all are computed.
    """
    missing = probing.unfinished()
    tasks = probing.tasks
    sizes = [sum(len(tasks[number].queries) for number in group.tasks) for group, _ in missing]
    jobs = [probing.job(group) for group, _ in missing]
    with show_progress(probing.title, sum(sizes), "queries") as bar:
        bar.advance_to(0)
        for number, tables in with_progress(executor(probing, jobs), sizes, bar):
            for table, path in zip(tables, missing[number][1], strict=True):
                write_part(table, path)
                state_path(path).unlink(missing_ok=True)
    return [path for _, paths in probing.parts() for path in paths]


def _predict_task(prober: Method, task: Task, pass_: Any, title: str) -> pd.DataFrame:
    """Return the predictions of one task under one pass.

    Raises BadInput, with the task, if a score is not a number.
    """
    try:
        table = prober.predict(task, pass_)
    except NotANumber as error:
        raise BadInput(f"{title}: {task.name}", str(error)) from error
    check_scores(table, f"{title}: {task.name}")
    return table


def _fingerprint_tables(tasks: list[Task]) -> list[list[str]]:
    """The fingerprints of each task's tables. A table that tasks share is read once."""
    tables = [[task.queries, task.candidates, *task.tables.values()] for task in tasks]
    # By identity: tasks share tables of a hundred thousand names, which take seconds to compare.
    distinct = {id(table): table for of_task in tables for table in of_task}
    hashes = {key: table_fingerprint(table) for key, table in distinct.items()}
    return [[hashes[id(table)] for table in of_task] for of_task in tables]
