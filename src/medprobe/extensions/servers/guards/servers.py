"""Before prompts go to a server: the terms of the benchmark, the number of requests, the model."""

from collections.abc import Callable

from medprobe.core import places
from medprobe.core.errors import NotAsked
from medprobe.core.params import Params
from medprobe.core.tables import Metadata
from medprobe.extensions.servers import fingerprint
from medprobe.extensions.servers.client import Client
from medprobe.extensions.servers.records import check_terms, read_record


def check_benchmark(model: str, benchmark: str, params: Params) -> None:
    """Refuse to ask a served model if the prompts of a benchmark must not go to its server.

    Raises:
        NotAsked: with the reason of the terms.
    """
    if server := params.servers.get(model):
        metadata = Metadata.read(places.ABOUT / f"{benchmark}.json")
        check_terms(model, server, benchmark, metadata)


def check_requests(model: str, title: str, params: Params, count: Callable[[], int]) -> None:
    """Refuse to ask a served model more often than params.yaml allows.

    Args:
        model: in params.yaml.
        title: of the result, in messages.
        params: the content of params.yaml.
        count: counts the requests.

    Raises:
        NotAsked: with both numbers.
    """
    server = params.servers.get(model)
    if server and (requests := count()) > server.max_requests:
        allowed = f"max_requests: {server.max_requests} is allowed"
        problem = f"it would send {requests:,} requests, {allowed}"
        remedy = "rank fewer names (an answer space), ask free answers, or allow more"
        raise NotAsked(title, problem, remedy)


def check_answers(model: str, params: Params) -> None:
    """Refuse to ask a served model whose server has another one now.

    Raises:
        BadInput: with how many answers differ.
    """
    if server := params.servers.get(model):
        fingerprint.check(Client(model, server), read_record(places.MODELS / model))
