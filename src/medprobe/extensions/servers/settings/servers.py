"""Section `servers` of `params.yaml`: models behind a server.

Its keys are names of your choice, its values say where the server is.
"""

import ipaddress
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints

from medprobe.core import places
from medprobe.core.errors import BadInput, NotAsked
from medprobe.core.params import Params, Settings
from medprobe.core.settings import Name, Section

KeyVariable = Annotated[str, StringConstraints(pattern=r"^\$[A-Za-z_][A-Za-z0-9_]*$")]


class ServerParams(Section):
    """A model behind an OpenAI-compatible server, of the kind under which `models` lists it."""

    QUOTED: ClassVar[bool] = False  # a value may be a key

    url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(/[^\s?#@]*)?$")]
    """Where it is, such as `http://127.0.0.1:8000/v1`. It contains no key."""
    model: str
    """The model's name on the server, one of those that `/v1/models` lists."""
    key: KeyVariable | None = None
    """The environment variable with its key, such as `$LLAMA_KEY`. Empty: no key."""
    requests: int = Field(8, gt=0)
    """Requests at once."""
    timeout: float = Field(300, gt=0)
    """Seconds within which an answer must be complete. Otherwise the request is sent again."""
    max_requests: int = Field(1_000_000, gt=0)
    """The most requests that one method may send for one benchmark. More are refused."""
    extra: dict[str, Any] = Field({})
    """Further fields of each request, such as `reasoning_effort`, `chat_template_kwargs` or
    `max_completion_tokens` (in place of `max_tokens`). One that is null is left out of requests."""
    own: bool = False
    """The server is under your control. Otherwise, and unless it is on this machine, it gets no
    prompt of a benchmark whose terms forbid to share it."""
    zero_retention: bool = False
    """Your statement that the server keeps no prompt. It is recorded with every result."""
    tokenizer: Path | None = None
    """A folder with the model's `config.json` and tokenizer. Ranking names and scoring texts need
    it."""

    @property
    def host(self) -> str:
        """The host, without port and path."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine.

        >>> ServerParams(url="http://127.0.0.1:8000/v1", model="m").is_loopback
        True
        """
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def _check(params: Params) -> None:
    """Refuse a served model of a kind that no server can have."""
    for name in SERVERS.of(params):
        if (kind := params.models.kind(name)) not in ("chat", "causal"):
            where = f"params.yaml: models.{kind}.{name}"
            raise BadInput(where, "a model behind a server is of kind chat or causal")


def describe(name: str, params: Params) -> str:
    """Name the server, and say whether it answers now, as the model that has proved itself."""
    from medprobe.extensions.servers.backends.served import open_server
    from medprobe.extensions.servers.client import Client
    from medprobe.extensions.servers.fingerprint import check
    from medprobe.extensions.servers.records import RECORD, read_record

    server, folder = SERVERS.of(params)[name], places.MODELS / name
    client = Client(name, server, tries=1)
    is_proved = (folder / RECORD).is_file()
    try:
        if is_proved:
            open_server(folder)  # refuses the record of another URL
            check(client, read_record(folder))
        else:
            client.models()
    except BadInput as error:
        state = "" if is_proved else "has no /models now: "
        state += str(error).partition(": ")[2]
    else:
        state = "answers"
    return f"server {server.host}, {state}"


class ServerGuard:
    """Before prompts go to a server: the terms of the benchmark, the number of requests, the model.

    See `core.params.Guard`.
    """

    def check_benchmark(self, model: str, benchmark: str, params: Params) -> None:
        """Refuse the prompts of a benchmark whose terms keep them from the server."""
        from medprobe.core.tables import Metadata
        from medprobe.extensions.servers.records import check_terms

        metadata = Metadata.read(places.ABOUT / f"{benchmark}.json")
        check_terms(model, SERVERS.of(params)[model], benchmark, metadata)

    def check_requests(
        self, model: str, title: str, params: Params, count: Callable[[], int]
    ) -> None:
        """Refuse more requests than `max_requests`."""
        allowed = SERVERS.of(params)[model].max_requests
        if (requests := count()) > allowed:
            problem = f"it would send {requests:,} requests, max_requests: {allowed} is allowed"
            remedy = "rank fewer names (an answer space), ask free answers, or allow more"
            raise NotAsked(title, problem, remedy)

    def check_answers(self, model: str, params: Params) -> None:
        """Refuse a server that has another model now, and say how many answers differ."""
        from medprobe.extensions.servers import fingerprint
        from medprobe.extensions.servers.client import Client
        from medprobe.extensions.servers.records import read_record

        client = Client(model, SERVERS.of(params)[model])
        fingerprint.check(client, read_record(places.MODELS / model))


SERVERS: Final = Settings(
    "servers",
    dict[Name, ServerParams],
    models=True,
    check=_check,
    describe_model=describe,
    guard=ServerGuard(),
)
SETTINGS: Final = SERVERS
