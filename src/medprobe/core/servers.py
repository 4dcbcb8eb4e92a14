"""Section `servers` of `params.yaml`: models behind a server, and what may be sent to it."""

import ipaddress
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from medprobe.core.errors import NotAsked
from medprobe.core.settings import Section

if TYPE_CHECKING:
    from medprobe.core.tables import Metadata

REASONS: Final = {  # why prompts of a benchmark do not go to others' servers
    "umls": "the UMLS licence forbids to pass its content on",
    "physionet": "PhysioNet forbids to share credentialed data through APIs (24 September 2025)",
}
ADDRESS: Final = re.compile(r"https?://[^\s/?#@]+(/[^\s?#@]*)?")


def _check_url(value: str) -> str:
    """Refuse what is no address of a server, without quoting it: it may contain a key."""
    if ADDRESS.fullmatch(value) and _has_port(value):
        return value
    problem = "expected an address such as http://127.0.0.1:8000/v1"
    if "@" in value:
        problem = "an address without a name or password; write key: $VARIABLE for a key"
    elif "?" in value or "#" in value:
        problem = "an address without ? and what follows; Azure's ends in /openai/v1"
        problem += " and needs no api-version"
    elif not value.startswith(("http://", "https://")):
        problem = "it begins with http:// or https://, as in http://127.0.0.1:8000/v1"
    raise PydanticCustomError("url", problem)


def _has_port(address: str) -> bool:
    """Return whether the port of an address, if any, is one, and its brackets hold a host."""
    try:
        return urlsplit(address).port != 0
    except ValueError:
        return False


KeyVariable = Annotated[str, StringConstraints(pattern=r"^\$[A-Za-z_][A-Za-z0-9_]*$")]


class ServerParams(Section):
    """A model behind an OpenAI-compatible server, of the kind under which `models` lists it."""

    QUOTED: ClassVar[bool] = False  # a value may be a key

    url: Annotated[str, AfterValidator(_check_url)]
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


def check_terms(server: ServerParams, where: str, metadata: "Metadata") -> None:
    """Raise NotAsked where the terms of a benchmark keep its prompts from a server."""
    if server.own or server.is_loopback or metadata.invented or metadata.terms not in REASONS:
        return
    problem = f"its prompts do not go to {server.host}: {REASONS[metadata.terms]}"
    remedy = "serve the model on your own machine; if the server is yours, set own: true"
    raise NotAsked(where, problem, remedy)


def check_requests(server: ServerParams, where: str, requests: int) -> None:
    """Raise NotAsked where a result needs more requests than `max_requests`."""
    if requests > server.max_requests:
        allowed = f"max_requests: {server.max_requests} is allowed"
        remedy = "rank fewer names (an answer space), ask free answers, or allow more"
        raise NotAsked(where, f"it would send {requests:,} requests, {allowed}", remedy)
