"""Which backend a model's folder has."""

from pathlib import Path
from typing import Any, Final

from medprobe.backends import Ability, PluginModel, read_plugin_model
from medprobe.backends.base import Backend, PluginBackend
from medprobe.backends.transformers import Transformers
from medprobe.core import plugins
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import EngineParams, ModelKind
from medprobe.engine.inspection import Head, inspect, load_tokenizer, read_config

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
    """Return the backend of a model that writes.

    Args:
        folder: The model's, with a checkpoint or PLUGIN_MODEL.
        head: Of the checkpoint, `causal` or `seq2seq`.
        engine: Device, precision and token budget of a checkpoint.

    Raises:
        BadInput: There is no such plugin, or it lacks a method; or the model cannot be opened.
    """
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
