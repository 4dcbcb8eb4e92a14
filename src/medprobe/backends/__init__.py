"""What methods ask of a network that writes from left to right, wherever it runs.

A `base.Backend` answers for a checkpoint in this process (`transformers`), or for what a plugin
opens (PLUGIN_MODEL). It says itself what it can do, and a method says what it needs
(`Method.NEEDS`).
Methods that read a network's inside, such as masked ones, use `medprobe.engine` directly.
"""

import json
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from medprobe.core.errors import BadInput
from medprobe.core.settings import Section, parse_section

PLUGIN_MODEL: Final = "backend.json"  # in a model's folder: a `PluginModel`, which a plugin opens

Ability = Literal[
    "weights",  # the network itself: encodings, gradients, masks
    "write",  # free answers
    "top_logprobs",  # the likeliest first tokens of an answer
    "echo",  # the log-probability of each token of a given text
]
ABILITIES: Final[frozenset[Ability]] = frozenset({"weights", "write", "top_logprobs", "echo"})


class PluginModel(Section):
    """What the folder of a model says that a backend from outside opens."""

    backend: str
    """The name of the plugin."""
    kinds: tuple[Literal["chat", "causal", "seq2seq"], ...] = Field(min_length=1)
    """The kinds of model that it can serve as."""
    abilities: tuple[Literal["write", "top_logprobs", "echo"], ...]
    """What it can do."""
    lacks: dict[str, str] = Field({})
    """Why it cannot do more, by ability."""
    identity: str = ""
    """The file of the folder that stands for the model in the keys of parts. Empty: the folder."""
    tokenizer: Path | None = None
    """A folder with the tokenizer, if it is known."""
    remote: bool = False
    """Whether it only sends requests, so that more workers would gain nothing."""


def read_plugin_model(folder: Path) -> PluginModel | None:
    """Return what the folder of a plugin's model says; None for any other folder.

    Raises:
        BadInput: The file is damaged, or a key or value is wrong.
    """
    path = folder / PLUGIN_MODEL
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise BadInput(path, "not JSON", "docs/how-to/extending.md has an example") from None
    return parse_section(PluginModel, content, path)


def hashed_path(folder: Path) -> Path:
    """Return what stands for a model in the keys of parts: its folder, or a file of it."""
    model = read_plugin_model(folder)
    return folder / model.identity if model and model.identity else folder


def find_abilities(folder: Path) -> frozenset[Ability]:
    """Return what the model of a folder can do: all, or what its PLUGIN_MODEL says."""
    model = read_plugin_model(folder)
    return frozenset(model.abilities) if model else ABILITIES
