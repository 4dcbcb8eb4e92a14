"""Which backend a model's folder has."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

from medprobe.backends import ABILITIES, Ability, PluginModel, find_abilities, read_plugin_model
from medprobe.core import plugins
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import EngineParams, ModelKind
from medprobe.engine import load, texts
from medprobe.engine.batching import out_of_memory
from medprobe.engine.configuration import Head, read_config
from medprobe.engine.inspection import inspect
from medprobe.engine.load import Model
from medprobe.engine.tokenizer import load_tokenizer


@dataclass
class Transformers:
    """A causal or an encoder-decoder model of transformers."""

    model: Model
    head: Head
    folder: Path
    engine: EngineParams
    abilities = ABILITIES

    @classmethod
    def load(cls, folder: Path, head: Head, engine: EngineParams) -> "Transformers":
        """Load a checkpoint."""
        return cls(load.load(folder, head, engine), head, folder, engine)

    def exact(self) -> Model:
        """Return the model in float32 if it was loaded in less; a quantised one is what it is.

        Where the device has no room for it, it is on the processor.
        """
        if self.engine.precision not in ("bfloat16", "float16"):
            return self.model
        return self._in_float32

    @cached_property
    def _in_float32(self) -> Model:
        engine = self.engine.model_copy(update={"precision": "float32"})
        try:
            return load.load(self.folder, self.head, engine)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
        return load.load(self.folder, self.head, engine.model_copy(update={"device": "cpu"}))

    def text_log_probs(
        self, sentences: Sequence[str], where: Sequence[str], answers_first: Sequence[bool] = ()
    ) -> list[list[float]]:
        """By `engine.texts`."""
        return texts.causal_log_probs(self.model, sentences, where, answers_first)


class Backend(Protocol):
    """A network that writes. `where` names each text in errors."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do."""
        ...

    def text_log_probs(
        self, texts: Sequence[str], where: Sequence[str], answers_first: Sequence[bool] = ()
    ) -> list[list[float]]:
        """Return for each text the log-probability of each token given those before it.

        A first token that nothing precedes has none, except that of an answer with which a text
        begins: `answers_first` gives for each text whether it does.
        """
        ...


class PluginBackend(Backend):
    """What a backend from outside is a subclass of; it defines what its folder's abilities need.

    docs/how-to/extending.md lists the methods of each ability.
    """

    has_template = False
    has_completion = True
    thinks = False

    def __init__(self, folder: Path, engine: EngineParams) -> None:
        self.folder, self.engine = folder, engine

    @classmethod
    def open(cls, folder: Path, engine: EngineParams) -> Backend:
        """Open the model of a folder."""
        return cls(folder, engine)

    @classmethod
    def find_tokenizer(cls, folder: Path) -> Any:
        """Return the model's tokenizer. Default: None, it is not known here."""
        return None

    @classmethod
    def describe(cls, folder: Path) -> dict[str, object]:
        """Describe the model's origin, for the record of each result. Default: nothing."""
        return {}

    @classmethod
    def check(cls, folder: Path, *, once: bool = False) -> None:
        """Raise BadInput where another model answers now. Default: it is always the same.

        With `once`, do not ask again where it does not answer.
        """

    @property
    def abilities(self) -> frozenset[Ability]:
        """What PLUGIN_MODEL says that it can do."""
        return find_abilities(self.folder)


NEEDED: Final[dict[Ability, tuple[str, ...]]] = {  # what a plugin defines for each ability
    "write": ("write", "answer_length"),
    "top_logprobs": ("word_log_probs",),
    "echo": ("text_log_probs", "tokenize", "find_likeliest"),
}


def find_kinds(folder: Path) -> tuple[ModelKind, ...]:
    """Return the kinds that the model of a folder can serve as."""
    if model := read_plugin_model(folder):
        return model.kinds
    return inspect(folder).kinds


def find(folder: Path, head: Head, engine: EngineParams) -> Backend:
    """Return the backend of a model that writes."""
    if model := read_plugin_model(folder):
        return _find_plugin(model, folder).open(folder, engine)
    return Transformers.load(folder, head, engine)


def find_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of the model of a folder; None where it is not known here."""
    if model := read_plugin_model(folder):
        return _find_plugin(model, folder).find_tokenizer(folder)
    return load_tokenizer(folder, read_config(folder))


def describe(folder: Path) -> dict[str, object]:
    """Return what a plugin's backend says of the origin of its model, for lineage; or nothing."""
    model = read_plugin_model(folder)
    return _find_plugin(model, folder).describe(folder) if model else {}


def check(folder: Path, *, once: bool = False) -> None:
    """Refuse a model behind a backend from outside that is not the one of its record."""
    if model := read_plugin_model(folder):
        _find_plugin(model, folder).check(folder, once=once)


def _find_plugin(model: PluginModel, folder: Path) -> type[PluginBackend]:
    """Return the class of a backend from outside, which has a method for each ability."""
    backends = plugins.find_plugins("backends")
    if model.backend not in backends:
        problem = f"no backend '{model.backend}'{nearest(model.backend, [*backends])}"
        raise BadInput(folder, problem, "add it to plugins/backends, or install its package")
    needed = [name for ability in model.abilities for name in NEEDED[ability]]
    attribute = plugins.class_name(model.backend)
    backend: type[PluginBackend] = plugins.load(
        backends[model.backend], attribute, PluginBackend, needed, is_class=True
    )
    return backend
