"""Stage `prove`: what a server has proved, in place of a checkpoint."""

import json
from pathlib import Path

from medprobe.backends import RATES, RECORD, SETTINGS
from medprobe.backends.client import Client
from medprobe.backends.proof import measure_rates
from medprobe.backends.proof import prove as proof_of
from medprobe.core import places
from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.params import Params


def prove(name: str, params: Params, out: Path) -> None:
    """Ask a server what it can do, and write its record into a model's folder.

    Its rates are not part of the record, so that another proof makes no result stale.

    Raises:
        BadInput: `servers` does not name the model, or the server cannot be used.
    """
    if name not in params.servers:
        problem = f"servers: no server '{name}'{nearest(name, [*params.servers])}"
        raise BadInput("params.yaml", problem)
    server, kind = params.servers[name], params.models.kind(name)
    client = Client(name, server)
    record = proof_of(client, kind)
    rates = measure_rates(client, kind, record["proof"], thinks=record["thinks"])
    with replacing(places.RUNS / name / RATES) as path:
        path.write_text(_as_json(rates), encoding="utf-8")
    with replacing(out) as folder:
        folder.mkdir()
        settings = server.model_dump(include={"own", "zero_retention", "hours"})
        (folder / SETTINGS).write_text(_as_json(settings), encoding="utf-8")
        (folder / RECORD).write_text(_as_json(record), encoding="utf-8")


def _as_json(content: object) -> str:
    return json.dumps(content, indent=1, sort_keys=True) + "\n"
