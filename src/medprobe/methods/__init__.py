"""The probing methods, one per file.

`methods/<name>.py` holds a class named after the file (`mask_average` → `MaskAverage`) that is a
`Method`. To add a method, write that file, here or in a project's folder `plugins/methods`, or name
the class as an entry point `medprobe.methods` of your own package. Nothing else has to change:

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

from medprobe.backends import Ability
from medprobe.core import answers, plugins
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import EngineParams, ModelKind, Section
from medprobe.core.tables import DISTRACTOR, BenchmarkTables

K: Final = 10  # predictions kept for each query: acc@10 is the deepest that the papers report
NEEDED: Final = ("KINDS", "Settings", "predict")  # of a plugin's class


@dataclass(frozen=True)
class Task:
    """The input of a method for one table of predictions.

    Attributes:
        name: unique within a benchmark, usually `<relation>/<subset>`.
        queries: a table with at least the columns `core.tables.QUERY_COLUMNS`, one row per query.
        candidates: the names to rank, with the columns `core.tables.CANDIDATE_COLUMNS`.
        k: number of predictions wanted for each query.
        tables: further tables by name, such as `train` and `dev`.
        normalise: two texts are the same answer if this function makes them equal.
        neutral: whether the prompts are without their subjects.
        lists: whether the best names themselves are wanted, whatever decides about the answers.
        state: a file for a training's state, if one is to be kept.
    """

    name: str
    queries: pd.DataFrame
    candidates: pd.DataFrame
    k: int
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    normalise: Callable[[str], str] = answers.exact
    neutral: bool = False
    lists: bool = False
    state: Path | None = None

    @property
    def benchmark_candidates(self) -> pd.DataFrame:
        """The benchmark's candidates without distractors."""
        return self.candidates[self.candidates["type"] != DISTRACTOR]

    @property
    def query_labels(self) -> list[str]:
        """The name of each query in error messages, in the order of `queries`."""
        return [f"query {query}" for query in self.queries["query_id"]]

    @property
    def label_by_prompt(self) -> dict[str, str]:
        """Each distinct prompt, with the label of its first query for error messages."""
        labels: dict[str, str] = {}
        for prompt, label in zip(self.queries["prompt"], self.query_labels, strict=True):
            labels.setdefault(prompt, label)
        return labels


class Method(Protocol):
    """A way to probe a model. An object is made once per checkpoint and then given its tasks.

    The work of a method is divided into *passes*, such as checkpoints or seeds. Each pass of each
    task gives one table, which is stored: a run that was stopped does not compute it again.

    Attributes:
        KINDS: the kinds of model that the method can probe.
        WHY: why it cannot probe others, if the names of the kinds do not explain it.
        NEEDS: abilities of a backend, of which it needs one at least (`medprobe.backends`).
        METRIC: the family of `medprobe.metrics` that scores its predictions.
        WRITES: whether the model writes its predictions freely, without regard to candidates.
        NOTES: names of the tables that `notes` returns. They become outputs of the DVC stage.
        Settings: the settings of the method, as in `params.yaml`.
        SELECTING: settings that only select passes and tasks and change no prediction.
    """

    KINDS: ClassVar[tuple[ModelKind, ...]]
    WHY: ClassVar[str] = ""
    NEEDS: ClassVar[frozenset[Ability]] = frozenset({"weights"})
    METRIC: ClassVar[str] = "accuracy"
    WRITES: ClassVar[bool] = False
    NOTES: ClassVar[tuple[str, ...]] = ()
    Settings: ClassVar[type[Section]]
    SELECTING: ClassVar[frozenset[str]] = frozenset()

    checkpoint: Path

    def __init__(self, checkpoint: Path, settings: Any, engine: EngineParams, seed: int) -> None:
        """Prepare to probe a checkpoint.

        Args:
            checkpoint: folder of the model.
            settings: an instance of `Settings`.
            engine: device, precision and batch size.
            seed: of every random draw.

        Raises:
            BadInput: the method cannot probe this checkpoint.
        """

    def passes(self) -> list[str]:
        """List the passes, the main one first. Default: a single pass without a name."""
        return [""]

    def inputs(self, pass_: str) -> list[Path]:
        """List the files and folders that a pass reads. Default: the checkpoint.

        Args:
            pass_: one of `passes()`.
        """
        return [self.checkpoint]

    @classmethod
    def needs_tables(cls, settings: Any) -> tuple[str, ...]:
        """Name the benchmark's further tables without which nothing can be predicted.

        Default: none. A benchmark whose builder makes no such table is refused by `medprobe check`.

        Args:
            settings: those of the method, as in `params.yaml`.
        """
        return ()

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """Divide a benchmark into tasks. Default: one per relation and subset.

        A relation with an answer space ranks the names of that space alone.

        The subsets of a relation follow one another, so that a prompt that occurs in several of
        them can be scored once.

        Args:
            tables: the benchmark.
            k: number of predictions wanted for each query.

        Raises:
            BadInput: the benchmark lacks a table that the method needs.
        """
        rule = answers.find_rule(tables.normalise)
        candidates = {subset: names for subset, _, names in tables.subsets()}
        return [
            Task(
                name=f"{relation}/{subset}",
                queries=rows.reset_index(drop=True),
                candidates=tables.restrict(candidates[subset], str(relation)),
                k=k,
                normalise=rule,
            )
            for (relation, subset), rows in tables.queries.groupby(["relation", "subset"])
        ]

    def asks(self, pass_: str, task: Task) -> bool:
        """Return whether a pass predicts a task. Default: every pass predicts every task.

        Args:
            pass_: one of `passes()`.
            task: one of `tasks()`.
        """
        return True

    def shares(self, task: Task) -> str:
        """Return a key; tasks with equal keys share computations. Default: the relation.

        Tasks with equal keys that follow one another are predicted by the same object, so a later
        one can use what an earlier one has computed.

        Args:
            task: one of `tasks()`.
        """
        return str(next(iter(task.queries["relation"]), task.name))

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """Predict the answers of a task.

        Args:
            task: the queries and what the method may read to answer them.
            pass_: one of `passes()`.

        Returns:
            At most `task.k` predictions for each query, best first, followed by a few whose score
            equals the last. Columns: `variant, replicate, query_id, rank, prediction, score`; also
            `hit` and `prediction_id` if they do not follow from the benchmark's rule and the
            candidates' identifiers.

        Raises:
            BadInput: a prompt or name does not suit the model, such as one that is too long.
        """
        ...

    def reads(self, task: Task, pass_: str) -> list[int] | None:
        """Count the tokens that the network will read, for estimates of the running time.

        Args:
            task: one of `tasks()`.
            pass_: one of `passes()`.

        Returns:
            The number of tokens of each text, without the texts of earlier tasks that are not read
            again; None if only a run of the model can tell.
        """
        return None

    def requests(self, task: Task, pass_: str) -> tuple[Ability, int] | None:
        """Count the requests to a server, for estimates of the running time.

        Args:
            task: one of `tasks()`.
            pass_: one of `passes()`.

        Returns:
            The ability that the requests use, and their number; None if the method asks no server.
        """
        return None

    def notes(self, predictions: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
        """Separate the prediction table from tables for people.

        Args:
            predictions: those of all passes.

        Returns:
            The predictions as they are written, and the further tables named in `NOTES`.
        """
        return predictions, {}


def list_names() -> list[str]:
    """List the names of all methods in alphabetical order, those of plugins included.

    Example:
        >>> "contrastive" in list_names()
        True
    """
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    return sorted([*names, *plugins.find_plugins("methods", names)])


def find(name: str) -> type[Method]:
    """Return the class of a method.

    Args:
        name: of the method's file, such as `mask_average`.

    Raises:
        BadInput: no method has this name, or a plugin's file is broken.

    Example:
        >>> find("contrastive").KINDS
        ('masked', 'encoder')
    """
    if name not in list_names():
        problem = f"no method '{name}'{nearest(name, list_names())}"
        raise BadInput("methods", problem, f"one of {', '.join(list_names())}")
    attribute = plugins.class_name(name)
    if outside := plugins.find_plugins("methods").get(name):
        external: type[Method] = plugins.load(outside, attribute, Method, NEEDED, is_class=True)
        return external
    plugin: type[Method] = vars(importlib.import_module(f"{__name__}.{name}"))[attribute]
    return plugin


def find_by_kind(kinds: Iterable[str]) -> list[str]:
    """List the methods that can probe a model of at least one of these kinds.

    Args:
        kinds: such as `masked` or `causal`.

    Example:
        >>> find_by_kind(["encoder"])
        ['classifier', 'contrastive']
    """
    kinds = {*kinds}
    return [name for name in list_names() if kinds & {*find(name).KINDS}]


def describe_needs(plugin: type[Method]) -> str:
    """Say which models a method can probe, and why no others.

    Args:
        plugin: the class of the method.

    Example:
        >>> describe_needs(find("generative"))
        'the method needs a model of kind seq2seq'
    """
    reason = f" ({plugin.WHY})" if plugin.WHY else ""
    return f"the method needs a model of kind {' or '.join(plugin.KINDS)}{reason}"


def mismatch_error(method: str, model: str, reason: str, kinds: Iterable[str]) -> BadInput:
    """Make the error for a method that cannot probe a model.

    Args:
        method: name of the method.
        model: name of the model.
        reason: what the model is, such as "this one is causal".
        kinds: the kinds of the model, from which methods that suit it are proposed.
    """
    problem = f"{describe_needs(find(method))}, {reason}"
    remedy = f"choose one of: {', '.join(find_by_kind(kinds))}"
    return BadInput(f"{method} on {model}", problem, remedy)
