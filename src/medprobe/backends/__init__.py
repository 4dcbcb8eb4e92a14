"""What methods ask of a network that writes from left to right, wherever it runs.

A `base.Backend` answers for a checkpoint in this process (`transformers`) or for a model behind a
server (`served`). It says itself what it can do, and a method says what it needs (`Method.NEEDS`).
Methods that read a network's inside, such as masked ones, use `medprobe.engine` directly.
"""

import json
from pathlib import Path
from typing import Any, Final, Literal

from medprobe.core.errors import BadInput

RECORD: Final = "server.json"  # in a model's folder: it stands for the checkpoint of a served model

Ability = Literal[
    "weights",  # the network itself: encodings, gradients, masks
    "write",  # free answers
    "top_logprobs",  # the likeliest first tokens of an answer
    "echo",  # the log-probability of each token of a given text
]
ABILITIES: Final[frozenset[Ability]] = frozenset({"weights", "write", "top_logprobs", "echo"})


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
    except (OSError, ValueError):
        raise BadInput(folder / RECORD, "missing or cut", "run `medprobe repro`") from None
    return content


def proved_abilities(folder: Path) -> frozenset[Ability]:
    """Return what the model of a folder can do: all, or what its server has proved."""
    if not is_served(folder):
        return ABILITIES
    proof = read_record(folder)["proof"]
    return frozenset(ability for ability in ABILITIES if proof.get(ability) == "proved")
