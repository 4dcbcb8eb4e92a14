"""Stage `prove`: what a server has proved, in place of a checkpoint."""

import json
from pathlib import Path

from medprobe.backends import RECORD, SETTINGS
from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.extensions.servers.client import Client
from medprobe.extensions.servers.proof import prove as proof_of


def prove(name: str, params: Params, out: Path) -> None:
    """Ask a server what it can do, and write its record into a model's folder.

    Raises:
        BadInput: `servers` does not name the model, or the server cannot be used.
    """
    if name not in params.servers:
        problem = f"servers: no server '{name}'{nearest(name, [*params.servers])}"
        raise BadInput("params.yaml", problem)
    server = params.servers[name]
    record = proof_of(Client(name, server), params.models.kind(name))
    with replacing(out) as folder:
        folder.mkdir()
        settings = server.model_dump(include={"own", "zero_retention", "max_requests"})
        (folder / SETTINGS).write_text(_as_json(settings), encoding="utf-8")
        (folder / RECORD).write_text(_as_json(record), encoding="utf-8")


def _as_json(content: object) -> str:
    return json.dumps(content, indent=1, sort_keys=True) + "\n"
