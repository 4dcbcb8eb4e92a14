"""What methods ask of a network that writes from left to right, wherever it runs.

A `base.Backend` answers for a checkpoint in this process (`transformers`), for a model behind a
server (`served`), or for what a plugin opens (PLUGIN_MODEL). It says itself what it can do, and a
method says what it needs (`Method.NEEDS`).
Methods that read a network's inside, such as masked ones, use `medprobe.engine` directly.
"""

import json
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from medprobe.core.errors import BadInput, NotAsked
from medprobe.core.settings import Section, parse_section
from medprobe.core.tables import Metadata
from medprobe.extensions.servers.settings.servers import ServerParams

RECORD: Final = "server.json"  # in a model's folder: it stands for the checkpoint of a served model
SETTINGS: Final = "settings.json"  # next to it: settings on which results depend, not their parts
PLUGIN_MODEL: Final = "backend.json"  # in a model's folder: a `PluginModel`, which a plugin opens

Ability = Literal[
    "weights",  # the network itself: encodings, gradients, masks
    "write",  # free answers
    "top_logprobs",  # the likeliest first tokens of an answer
    "echo",  # the log-probability of each token of a given text
]
ABILITIES: Final[frozenset[Ability]] = frozenset({"weights", "write", "top_logprobs", "echo"})
REASONS: Final = {  # why prompts of a benchmark do not go to others' servers
    "umls": "the UMLS licence forbids to pass its content on",
    "physionet": "PhysioNet forbids to share credentialed data through APIs (24 September 2025)",
}


class PluginModel(Section):
    """What the folder of a model says that a backend from outside opens."""

    backend: str
    """The name of the plugin."""
    kinds: tuple[Literal["chat", "causal", "seq2seq"], ...] = Field(min_length=1)
    """The kinds of model that it can serve as."""
    abilities: tuple[Literal["write", "top_logprobs", "echo"], ...] = Field(min_length=1)
    """What it can do."""


def is_served(folder: Path) -> bool:
    """Return whether a model's folder stands for a model behind a server."""
    return (folder / RECORD).is_file()


def read_record(folder: Path) -> dict[str, Any]:
    """Return what a server has proved.

    Raises:
        BadInput: The record is missing or cut.
    """
    try:
        content: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise BadInput(folder / RECORD, "missing or cut", "run `medprobe repro`") from None
    return content


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
    """Return what stands for a model in the keys of parts: its folder, or a server's record."""
    return folder / RECORD if is_served(folder) else folder


def find_abilities(folder: Path) -> frozenset[Ability]:
    """Return what the model of a folder can do: all, or what its server has proved."""
    if model := read_plugin_model(folder):
        return frozenset(model.abilities)
    if not is_served(folder):
        return ABILITIES
    proof = read_record(folder)["proof"]
    return frozenset(ability for ability in ABILITIES if proof.get(ability) == "proved")


def check_terms(name: str, server: ServerParams, benchmark: str, metadata: Metadata) -> None:
    """Refuse prompts that must not go to a server.

    Args:
        name: The model's name in params.yaml.
        server: Where it is.
        benchmark: The name of the benchmark.
        metadata: Its terms.

    Raises:
        NotAsked: With the reason of the terms.
    """
    if server.own or server.is_loopback or metadata.invented or metadata.terms not in REASONS:
        return
    problem = f"its prompts do not go to {server.host}: {REASONS[metadata.terms]}"
    remedy = "serve the model on your own machine; if the server is yours, set own: true"
    raise NotAsked(f"{benchmark} on {name}", problem, remedy)
