"""Stage `prove`: what a server has proved, in place of a checkpoint."""

import json
from pathlib import Path

from medprobe.backends import RECORD
from medprobe.backends.client import Client
from medprobe.backends.proof import prove as proof_of
from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.params import Params


def prove(name: str, params: Params, out: Path) -> None:
    """Ask a server what it can do, and write its record into a model's folder.

    Args:
        name: the model's name in params.yaml.
        params: the content of params.yaml.
        out: the folder to write.

    Raises:
        BadInput: `servers` does not name the model, or the server cannot be used.
    """
    if name not in params.servers:
        problem = f"servers: no server '{name}'{nearest(name, [*params.servers])}"
        raise BadInput("params.yaml", problem)
    record = proof_of(Client(name, params.servers[name]), params.models.kind(name))
    with replacing(out) as folder:
        folder.mkdir()
        text = json.dumps(record, indent=1, sort_keys=True) + "\n"
        (folder / RECORD).write_text(text, encoding="utf-8")
