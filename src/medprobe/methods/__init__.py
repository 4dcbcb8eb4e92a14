"""The probing methods, one per file.

`methods/<name>.py` holds a class named after the file (`mask_average` → `MaskAverage`) that is a
`Method`. To add a method, write that file, in any place of plugins (`core.plugins`), such as a
project's folder `plugins/`. Nothing else has to change:

    class MyMethod(Method):
        KINDS = ("masked",)

        class Settings(Section):
            temperature: float = 1.0

        def __init__(self, checkpoint, settings, engine, seed):
            self.checkpoint = checkpoint
            self.model = load(checkpoint, "masked", engine)

        def predict(self, task, pass_): ...
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Protocol

import pandas as pd

from medprobe.backends import Ability
from medprobe.core import answers, plugins
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import EngineParams, ModelKind
from medprobe.core.settings import Section
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
        keep_best: keep the k best names, not only whether an answer is among them.
        state: a file for a training's state, if one is to be kept.
        passes: the passes that predict it; None if all do.
    """

    name: str
    queries: pd.DataFrame
    candidates: pd.DataFrame
    k: int
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    normalise: Callable[[str], str] = answers.exact
    keep_best: bool = False
    state: Path | None = None
    passes: tuple[Any, ...] | None = None

    def is_of(self, pass_: Any) -> bool:
        """Whether a pass of the method predicts this task."""
        return self.passes is None or pass_ in self.passes

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
        VERSION: a whole number. Raise it when a number moves: results of an installed method are
            made again where it is another one.
        WHY: why it cannot probe others, if the names of the kinds do not explain it.
        NEEDS: abilities of a backend, of which it needs one at least (`medprobe.backends`).
        METRIC: what scores its predictions, a module of `medprobe.metrics`.
        WRITES_WITH: settings with which the model writes its predictions, without regard to
            candidates; empty if it always does, None if it only ranks candidates.
        SIDE_TABLES: tables for people, such as training curves, each with its columns. The
            predictions have a column of the table's name, with its rows as JSON. The stage writes
            them, once each, to a file of their own.
        Settings: the settings of the method, as in `params.yaml`.
        ONLY_SELECTS: settings that only select passes and tasks and change no prediction.
        ASK_PRIORITY: whether `medprobe ask` and `run` take it, where no method is named, to rank
            candidates or to write: of those that serve the model the one with the highest number.
        READS: further outputs that it reads, as dvc.yaml names them: `${item.model}` is the model.
    """

    KINDS: ClassVar[tuple[ModelKind, ...]]
    VERSION: ClassVar[int] = 1
    WHY: ClassVar[str] = ""
    NEEDS: ClassVar[frozenset[Ability]] = frozenset({"weights"})
    METRIC: ClassVar[str] = "accuracy"
    WRITES_WITH: ClassVar[Mapping[str, Any] | None] = None
    SIDE_TABLES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    Settings: ClassVar[type[Section]]
    ONLY_SELECTS: ClassVar[frozenset[str]] = frozenset()
    READS: ClassVar[tuple[str, ...]] = ()
    ASK_PRIORITY: ClassVar[Mapping[Literal["rank", "write"], int]] = {}

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

    def passes(self) -> list[Any]:
        """List the passes, the main one first. Default: a single pass without a name.

        A pass is a text, or anything hashable whose `str` names it.
        """
        return [""]

    def inputs(self, pass_: Any) -> list[Path]:
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

    def batch_key(self, task: Task) -> str:
        """Return a key; tasks with equal keys share computations. Default: the relation.

        Tasks with equal keys that follow one another are predicted by the same object, so a later
        one can use what an earlier one has computed.

        Args:
            task: one of `tasks()`.
        """
        return str(next(iter(task.queries["relation"]), task.name))

    def predict(self, task: Task, pass_: Any) -> pd.DataFrame:
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

    def requests(self, task: Task, pass_: Any) -> int:
        """Count the requests that a task sends to a model behind a server.

        Args:
            task: one of `tasks()`.
            pass_: one of `passes()`.
        """
        return 0


def list_names() -> list[str]:
    """List the names of all methods in alphabetical order, those of plugins included.

    Example:
        >>> "contrastive" in list_names()
        True
    """
    return [*plugins.find_plugins("methods")]


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
    found = plugins.find_plugins("methods")
    if name not in found:
        problem = f"no method '{name}'{nearest(name, [*found])}"
        raise BadInput("methods", problem, f"choose one of {', '.join(found)}")
    method: type[Method] = plugins.load(
        found[name], plugins.class_name(name), Method, NEEDED, is_class=True
    )
    return method


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
    able = find_by_kind(kinds)
    remedy = f"choose one of: {', '.join(able)}" if able else "no method here probes such a model"
    return BadInput(f"{method} on {model}", problem, remedy)
