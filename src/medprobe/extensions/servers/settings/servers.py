"""Section `servers` of `params.yaml`: models behind a server.

Its keys are names of your choice, its values say where the server is.
"""

import ipaddress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints

from medprobe.core.settings import Name, Section, Settings

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


SETTINGS: Final = Settings(dict[Name, ServerParams], models=True)
