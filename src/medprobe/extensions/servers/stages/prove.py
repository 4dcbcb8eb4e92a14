"""Stage `prove`: what a server has proved, in place of a checkpoint."""

import json
from pathlib import Path
from typing import Any, Final

import click

from medprobe.backends import ABILITIES, PLUGIN_MODEL, PluginModel
from medprobe.core import places
from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.extensions.servers.client import Client
from medprobe.extensions.servers.fingerprint import FINGERPRINT, Fingerprint, compare, take
from medprobe.extensions.servers.proof import prove as proof_of
from medprobe.extensions.servers.records import PROVED, RECORD, SETTINGS, read_record
from medprobe.extensions.servers.settings.servers import SERVERS, ServerParams


def prove(name: str, params: Params, out: Path) -> None:
    """Ask a server what it can do, and write its record into a model's folder.

    A fingerprint that is there already stays as it is if the server still has its model. Otherwise
    the last digits of a new one would make all results stale.

    Raises:
        BadInput: `servers` does not name the model, or the server cannot be used.
    """
    if name not in SERVERS.of(params):
        problem = f"servers: no server '{name}'{nearest(name, [*SERVERS.of(params)])}"
        raise BadInput("params.yaml", problem)
    server = SERVERS.of(params)[name]
    client = Client(name, server)
    record = proof_of(client, params.models.kind(name))
    old, new = _recorded(out), take(client, record)
    fingerprint = old if old and compare(old, new) <= old.allowed else new
    record[FINGERPRINT] = fingerprint.as_json()
    with replacing(out) as folder:
        folder.mkdir()
        settings = server.model_dump(include={"own", "zero_retention", "max_requests"})
        (folder / SETTINGS).write_text(_as_json(settings), encoding="utf-8")
        (folder / RECORD).write_text(_as_json(record), encoding="utf-8")
        model = describe(record, server).model_dump(mode="json")
        (folder / PLUGIN_MODEL).write_text(_as_json(model), encoding="utf-8")


def describe(record: dict[str, Any], server: ServerParams) -> PluginModel:
    """Say what the backend `served` can do."""
    proof = record["proof"]
    return PluginModel(
        backend="served",
        kinds=("chat", "causal") if record["kind"] == "chat" else ("causal",),
        abilities=tuple(sorted(name for name in ABILITIES if proof.get(name) == PROVED)),
        lacks={name: why for name, why in proof.items() if why != PROVED},
        identity=RECORD,
        tokenizer=server.tokenizer,
        remote=True,
    )


def _recorded(folder: Path) -> Fingerprint | None:
    """Return the fingerprint of an earlier proof."""
    try:
        content = read_record(folder).get(FINGERPRINT)
    except BadInput:
        return None
    return Fingerprint.read(content) if content else None


def _as_json(content: object) -> str:
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


@click.command(epilog="\b\nExample:\n  medprobe prove --model llama")
@click.option("--model", required=True, help="A model of params.yaml.")
def command(params: Params, model: str) -> None:
    """Ask the server of a model what it can do, before it is probed."""
    prove(model, params, places.MODELS / model)


COMMAND: Final = command
