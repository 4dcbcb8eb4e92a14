"""What the folder of a served model holds in place of a checkpoint, and the terms of benchmarks."""

import json
from pathlib import Path
from typing import Any, Final

from medprobe.core.errors import BadInput, NotAsked
from medprobe.core.tables import Metadata
from medprobe.extensions.servers.settings.servers import ServerParams

RECORD: Final = "server.json"  # it stands for the checkpoint
SETTINGS: Final = "settings.json"  # next to it: settings on which results depend, not their parts
PROVED: Final = "proved"  # what a record says of an ability
PROVE_AGAIN: Final = "run `dvc repro --force --single-item prove@{}`, then `medprobe repro`"
REASONS: Final = {  # why prompts of a benchmark do not go to others' servers
    "umls": "the UMLS licence forbids to pass its content on",
    "physionet": "PhysioNet forbids to share credentialed data through APIs (24 September 2025)",
}


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


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings next to a record."""
    content: dict[str, Any] = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    return content


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
