"""The probing methods. One file is one method: `methods/<name>.py` holds a class named after it
(`mask_average` → `MaskAverage`) that is a `Method`.

To add one, write that file; nothing else has to know of it:

    class MyMethod(Method):
        KINDS = ("masked",)

        class Settings(Section):
            temperature: float = 1.0

        def __init__(self, checkpoint, settings, engine, seed):
            self.checkpoint = checkpoint
            self.model = load(checkpoint, "masked", engine)

        def predict(self, task, pass_): ...
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

import pandas as pd

from medprobe.core import answers
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import EngineParams, ModelKind, Section
from medprobe.core.tables import DISTRACTOR, BenchmarkTables

K: Final = 10  # predictions kept for each query: acc@10 is the deepest that the papers report


@dataclass(frozen=True)
class Task:
    """What a method may read to make one table of predictions."""

    name: str
    queries: pd.DataFrame
    candidates: pd.DataFrame
    k: int  # predictions wanted for each query
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # further ones: train, dev, …
    normalise: Callable[[str], str] = answers.exact  # texts that it makes equal are equal answers

    @property
    def own(self) -> pd.DataFrame:
        """The benchmark's own candidates, distractors left out."""
        return self.candidates[self.candidates["type"] != DISTRACTOR]

    @property
    def where(self) -> list[str]:
        """How errors name each query."""
        return [f"query {query}" for query in self.queries["query_id"]]

    @property
    def by_prompt(self) -> dict[str, str]:
        """Each prompt once, with the name of its first query in errors."""
        where: dict[str, str] = {}
        for prompt, name in zip(self.queries["prompt"], self.where, strict=True):
            where.setdefault(prompt, name)
        return where


class Method(Protocol):
    """A way to ask a model. Made once for a checkpoint, then asked task by task.

    The work of a method has units, its *passes*, such as checkpoints or seeds. Each pass of each
    task gives one table, which is kept: a stopped run does not make it again.
    """

    KINDS: ClassVar[tuple[ModelKind, ...]]  # of models that it can probe
    WHY: ClassVar[str] = ""  # it probes no others, where their names do not tell
    METRIC: ClassVar[str] = "accuracy"  # the family of metrics/ that scores its predictions
    WRITES: ClassVar[bool] = False  # are its predictions texts of its own, whatever the candidates?
    NOTES: ClassVar[tuple[str, ...]] = ()  # the names of the tables that `notes` gives, for DVC
    Settings: ClassVar[type[Section]]  # its settings, as in params.yaml
    SELECTING: ClassVar[frozenset[str]] = frozenset()  # those that only say which passes and tasks

    checkpoint: Path

    def __init__(self, checkpoint: Path, settings: Any, engine: EngineParams, seed: int) -> None:
        """Raises BadInput where the checkpoint cannot be asked so."""

    def passes(self) -> list[str]:
        """The passes, the main one first."""
        return [""]

    def inputs(self, pass_: str) -> list[Path]:
        """The files and folders that a pass reads: the checkpoint, or another in its place."""
        return [self.checkpoint]

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """What to predict on a benchmark: a task a relation and subset. A relation's subsets follow
        one another, so that a prompt of several can be scored once."""
        rule = answers.rule(tables.normalise)
        candidates = {subset: names for subset, _, names in tables.subsets()}
        return [
            Task(f"{relation}/{subset}", queries, candidates[subset], k, normalise=rule)
            for (relation, subset), part in tables.queries.groupby(["relation", "subset"])
            for queries in [part.reset_index(drop=True)]
        ]

    def asks(self, pass_: str, task: Task) -> bool:
        """Does this pass predict this task? Every pass does, where nothing is said."""
        return True

    def shares(self, task: Task) -> str:
        """Tasks for which this is equal, and which follow one another, are predicted together: a
        later one may use what an earlier one has computed. Those of a relation, where nothing is
        said."""
        return str(next(iter(task.queries["relation"]), task.name))

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """At most `task.k` predictions of each query, best first, and behind them a few that equal
        the last: columns `variant, replicate, query_id, rank, prediction, score`, and `hit` and
        `prediction_id` where the benchmark's rule and the candidates' ids do not say them."""
        ...

    def reads(self, task: Task, pass_: str) -> list[int] | None:
        """How many tokens each text has that the network will read for this task, beside those of
        the tasks asked about before; None where only asking the model tells."""
        return None

    def notes(self, predictions: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
        """The predictions of all passes as they are written, and tables for people beside them."""
        return predictions, {}


def names() -> list[str]:
    """The names of all methods, in order.

    >>> "contrastive" in names()
    True
    """
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def find(name: str) -> type[Method]:
    """The class of a method. Raises BadInput where there is none of that name.

    >>> find("contrastive").KINDS
    ('masked', 'encoder')
    """
    if name not in names():
        problem = f"no method '{name}'{nearest(name, names())}"
        raise BadInput("methods", problem, f"one of {', '.join(names())}")
    module = importlib.import_module(f"{__name__}.{name}")
    found: type[Method] = vars(module)["".join(part.capitalize() for part in name.split("_"))]
    return found


def serving(kinds: Iterable[str]) -> list[str]:
    """The names of the methods that can ask a model of one of these kinds.

    >>> serving(["encoder"])
    ['classifier', 'contrastive']
    """
    wanted = {*kinds}
    return [name for name in names() if wanted & {*find(name).KINDS}]


def needs(plugin: type[Method]) -> str:
    """Which models a method can ask, and why no others.

    >>> needs(find("generative"))
    'the method needs a model of kind seq2seq'
    """
    why = f" ({plugin.WHY})" if plugin.WHY else ""
    return f"the method needs a model of kind {' or '.join(plugin.KINDS)}{why}"


def unsuited(method: str, model: str, reason: str, serves: Iterable[str]) -> BadInput:
    """What is said where a method cannot ask a model that `serves` as these kinds."""
    problem = f"{needs(find(method))}, {reason}"
    remedy = f"choose one of: {', '.join(serving(serves))}"
    return BadInput(f"{method} on {model}", problem, remedy)
