"""Section `servers` of `params.yaml`: models behind a server.

Its keys are names of your choice, its values say where the server is.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from medprobe.core import places
from medprobe.core.errors import BadInput, NotAsked
from medprobe.core.params import Params, Settings
from medprobe.core.settings import Name
from medprobe.extensions.servers.server_params import ServerParams, servers_of

if TYPE_CHECKING:
    from medprobe.core.tables import Metadata

REASONS: Final = {  # why prompts of a benchmark do not go to others' servers
    "umls": "the UMLS licence forbids to pass its content on",
    "physionet": "PhysioNet forbids to share credentialed data through APIs (24 September 2025)",
}


def _check(params: Params) -> None:
    for name in servers_of(params):
        if (kind := params.models.kind(name)) not in ("chat", "causal"):
            where = f"params.yaml: models.{kind}.{name}"
            raise BadInput(where, "a model behind a server is of kind chat or causal")


def describe(name: str, params: Params) -> str:
    """Name the server, and say whether it answers now, as the model of its record."""
    from medprobe.extensions.servers.backends.served import open_server
    from medprobe.extensions.servers.fingerprint import RECORD, check, read_record

    host, folder = servers_of(params)[name].host, places.MODELS / name
    if not (folder / RECORD).is_file():
        return f"server {host}, not asked yet"
    try:
        client = open_server(folder).client  # refuses the record of another URL
        check(replace(client, tries=1), read_record(folder))
    except BadInput as error:
        return f"server {host}, {str(error).partition(': ')[2]}"
    return f"server {host}, answers"


def check_terms(server: ServerParams, where: str, metadata: "Metadata") -> None:
    """Raise NotAsked where the terms of a benchmark keep its prompts from a server."""
    if server.own or server.is_loopback or metadata.invented or metadata.terms not in REASONS:
        return
    problem = f"its prompts do not go to {server.host}: {REASONS[metadata.terms]}"
    remedy = "serve the model on your own machine; if the server is yours, set own: true"
    raise NotAsked(where, problem, remedy)


class ServerGuard:
    """Before prompts go to a server: the terms of the benchmark, the number of requests, the model.

    See `core.params.Guard`.
    """

    def check_benchmark(self, model: str, benchmark: str, params: Params) -> None:
        """Refuse the prompts of a benchmark whose terms keep them from the server."""
        from medprobe.core.tables import Metadata

        metadata = Metadata.read(places.ABOUT / f"{benchmark}.json")
        check_terms(servers_of(params)[model], f"{benchmark} on {model}", metadata)

    def check_requests(
        self, model: str, title: str, params: Params, count: Callable[[], int]
    ) -> None:
        """Refuse more requests than `max_requests`."""
        allowed = servers_of(params)[model].max_requests
        if (requests := count()) > allowed:
            problem = f"it would send {requests:,} requests, max_requests: {allowed} is allowed"
            remedy = "rank fewer names (an answer space), ask free answers, or allow more"
            raise NotAsked(title, problem, remedy)

    def check_answers(self, model: str, params: Params) -> None:
        """Refuse a server that has another model now, and say how many answers differ."""
        from medprobe.extensions.servers import fingerprint
        from medprobe.extensions.servers.client import Client

        client = Client(model, servers_of(params)[model])
        fingerprint.check(client, fingerprint.read_record(places.MODELS / model))


SETTINGS: Final = Settings(
    "servers",
    dict[Name, ServerParams],
    models=True,
    check=_check,
    describe_model=describe,
    guard=ServerGuard(),
)
