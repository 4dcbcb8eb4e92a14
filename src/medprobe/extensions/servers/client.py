"""Requests to an OpenAI-compatible server by the package `openai`: retried, several at once.

The key is in no error and no record, nor are a server's words where errors may quote no data.
"""

import asyncio
import hashlib
import importlib.util
import json
import logging
import os
import re
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from http.client import responses
from threading import Thread
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from medprobe.core.environment import find_cause
from medprobe.core.errors import BadInput, quoting
from medprobe.core.parts import fingerprint
from medprobe.core.servers import ServerParams
from medprobe.engine.load import token_counter
from medprobe.engine.tokenizer import tokenizer_files

if TYPE_CHECKING:
    import openai

TRIES: Final = 6
RETRIED: Final = (408, 409, 429)  # and from 500 on: the statuses after which `openai` asks again
OTHER_URL: Final = "correct its url, which ends in /v1 on most servers"
ELSEWHERE: Final = (301, 302, 303, 307, 308, 404, 405)  # redirects are not followed
RETRIES: Final = "x-stainless-retry-count"  # a header of `openai`
KEY: Final = re.compile(r"[!-~]+")  # what a header can hold
MESSAGE_LENGTH: Final = 200  # characters of a server's message in errors
CAP: Final = "max_tokens"  # of an answer
CHAT_CAP: Final = "max_completion_tokens"  # what OpenAI's newer models take in its place, in chats
SURROGATES: Final = "surrogatepass"  # JSON can hold half a pair, and no table can
TEXTS: Final = ("text", "output_text", None)  # types of a text's parts

Body = dict[str, Any]


class Refused(BadInput):
    """The server understands the request and refuses it, or answers what cannot be read."""


@dataclass(frozen=True)
class Client:
    """A server of params.yaml.

    Attributes:
        name: Its name in params.yaml.
        params: Its settings.
        tries: How often a request is sent while the server is busy or fails.
        clock: Returns the seconds since 1970.
    """

    name: str
    params: ServerParams
    tries: int = TRIES
    clock: Callable[[], float] = time.time

    @property
    def identity(self) -> Body:
        """What stands for the model: its names here and on the server, URL, tokenizer and extra.

        The URL is hashed, since its path may be secret. Results of another identity are not those
        of this model.
        """
        params = self.params
        url = hashlib.sha256(params.url.rstrip("/").encode()).hexdigest()
        files = tokenizer_files(params.tokenizer) if params.tokenizer else []
        return {
            **{"name": self.name, "url.sha256": url, "model": params.model, "extra": params.extra},
            "tokenizer": fingerprint(files) if files else None,
        }

    def post(self, path: str, body: Body) -> Body:
        """Send a request, and again while the server is busy or fails."""
        return self._start(self._post(path, body)).result()

    async def _post(self, path: str, body: Body) -> Body:
        whole = {"model": self.params.model, **body, **self.params.extra}
        if CHAT_CAP in self.params.extra:  # it caps chats, and the body's cap all else: never both
            whole.pop(CAP if path.startswith("chat") else CHAT_CAP, None)
        whole = {key: value for key, value in whole.items() if value is not None}
        async with self._room:
            answer = await self._send(path, whole)
        total = nested(answer, "usage", "total_tokens")
        if isinstance(total, int):  # foreign: anything can be there
            token_counter["tokens"] += total
        return answer

    def post_all(self, path: str, bodies: Sequence[Body]) -> Iterator[Body]:
        """Send requests, several at once, and yield the answers in their order."""
        futures = [self._start(self._post(path, body)) for body in bodies]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()

    def _start(self, request: Coroutine[Any, Any, Body]) -> Future[Body]:
        """Begin a request, which sees the caller's context variables, such as `quoting`."""
        return asyncio.run_coroutine_threadsafe(request, self._loop)

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """The loop of all requests: a request in a thread could not be given up at a deadline."""
        loop = asyncio.new_event_loop()
        Thread(target=loop.run_forever, daemon=True).start()
        return loop

    @cached_property
    def _room(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(self.params.requests)

    @cached_property
    def _openai(self) -> "openai.AsyncOpenAI":
        """The client, which takes no key of OpenAI's from the environment and follows no redirect.

        A redirect would carry the key and the prompts to another host, and so would a proxy those
        for a server on this machine. A request ends at its deadline, whatever has come by then. An
        error in an answer of status 200 gets the status that it names.
        """
        if importlib.util.find_spec("openai") is None:
            problem = "the package openai is not there"
            raise BadInput(f"servers.{self.name}", problem, "pip install 'medprobe[servers]'")
        import httpx2
        import openai

        seconds = self.params.timeout

        class HttpClient(openai.DefaultAsyncHttpxClient):
            async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
                try:
                    async with asyncio.timeout(seconds):
                        response = await super().send(request, **options)
                except TimeoutError:
                    raise httpx2.ReadTimeout("deadline", request=request) from None
                if response.is_success and (status := _failure(response.content)):
                    response.status_code = status
                return response

        for name in ("openai", "httpx", "httpx2"):
            logging.getLogger(name).setLevel(logging.WARNING)  # below are requests, and URLs
        key = self._key() or "none"  # the package demands one
        headers: Any = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
        headers["Authorization"] = f"Bearer {key}"
        trusts = not self.params.is_loopback
        try:
            http_client = HttpClient(follow_redirects=False, trust_env=trusts)
        except (OSError, ImportError, ValueError) as error:
            raise BadInput(
                f"servers.{self.name}", find_cause(error) or f"no client: {error}"
            ) from error
        return openai.AsyncOpenAI(
            api_key=key,
            admin_api_key="",
            base_url=self.params.url,
            timeout=None,
            max_retries=self.tries - 1,
            default_headers=headers,
            http_client=http_client,
        )

    async def _send(self, path: str, body: Body) -> Body:
        client = self._openai
        import openai

        try:
            text = await client.post(f"/{path}", body=body, cast_to=str)
            whole = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-16", SURROGATES)
            answer = json.loads(whole.decode("utf-16", "replace"))
        except (openai.APIStatusError, openai.APIConnectionError) as error:
            problem = self._describe(error)
            if isinstance(error, openai.APIStatusError):
                status = error.status_code
                if status not in RETRIED and status < 500:
                    raise Refused(self._where(path), problem, _remedy(error, body)) from None
            tries = 1 + int(error.request.headers[RETRIES])
            remedy = "see whether it runs, then go on: finished parts are kept"
            raise BadInput(self._where(path), f"{problem} (tries: {tries})", remedy) from None
        except (openai.OpenAIError, ValueError, RecursionError):
            problem = "an answer that is not JSON"
            raise Refused(self._where(path), problem, OTHER_URL) from None
        if not isinstance(answer, dict):
            raise Refused(self._where(path), "the answer is not a JSON object")
        return answer

    def _describe(self, error: "openai.APIStatusError | openai.APIConnectionError") -> str:
        import openai

        if isinstance(error, openai.APIStatusError):
            status = error.status_code
            return f"{status} {responses.get(status, '')}".strip() + self._said(error)
        if isinstance(error, openai.APITimeoutError):
            return f"no answer in {self.params.timeout:g} s"
        if blamed := find_cause(error.__cause__ or error):
            return blamed
        cause = type(error.__cause__).__name__
        is_cut = cause in ("RemoteProtocolError", "ReadError")
        return "an answer that is cut" if is_cut else f"no connection ({cause})"

    def _said(self, error: "openai.APIStatusError") -> str:
        """Return a server's own words, which can repeat the request, where errors may quote it."""
        message = nested(error.body, "message") or nested(error.body, "detail") or error.body
        if not quoting.get() or not isinstance(message, str) or message.lstrip().startswith("<"):
            return ""  # or a page
        message = " ".join(message.split())
        secrets = [self._key(), self.params.url]
        said = f"{message} {unquote(message)}"
        if not message or any(secret and secret in said for secret in secrets):
            return ""
        return f": {message[:MESSAGE_LENGTH]}"

    def _key(self) -> str:
        if self.params.key is None:
            return ""
        variable = self.params.key.removeprefix("$")
        if not (key := os.environ.get(variable, "").strip()):
            problem = f"the environment variable {variable}, which holds its key, is not set"
            raise BadInput(f"servers.{self.name}", problem, f"export {variable}=…")
        if not KEY.fullmatch(key):
            problem = f"the environment variable {variable} holds what no key has: a blank, a line"
            problem += " end or a letter that is not ASCII"
            raise BadInput(f"servers.{self.name}", problem, f"export {variable}=…")
        return key

    def _where(self, path: str) -> str:
        return f"servers.{self.name} ({self.params.host}, {path})"


def nested(content: Any, *keys: str | int) -> Any:
    """Return what is below keys and indices of foreign JSON; None where anything is missing."""
    for key in keys:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def read_choice(choice: Any) -> tuple[str, str | None]:
    """Return the thoughts parted from the text of an answer, and the text, or None if it has none.

    Of a text in parts, those of another type are thoughts.

    >>> parts = [{"type": "thinking", "thinking": "a pump?"}, {"type": "text", "text": "heart"}]
    >>> read_choice({"message": {"content": parts}})[1], read_choice({"message": {}})
    ('heart', ('', ''))
    """
    message, text = nested(choice, "message"), nested(choice, "text")
    thoughts = [nested(message, name) for name in ("reasoning_content", "reasoning")]
    if isinstance(message, dict):
        text = message.get("content") or ""
    if isinstance(text, list):
        thoughts += [str(part) for part in text if nested(part, "type") not in TEXTS]
        parts = [part for part in text if nested(part, "type") in TEXTS]
        texts = [part if isinstance(part, str) else nested(part, "text") or "" for part in parts]
        text = "".join(texts) if all(isinstance(part, str) for part in texts) else None
    said = "".join(thought for thought in thoughts if isinstance(thought, str))
    return said, text if isinstance(text, str) else None


def _failure(content: bytes) -> int:
    """Return the status of an error in an answer without a status of its own; 0: no error."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return 0
    error = nested(answer, "error") or nested(answer, "choices", 0, "error")
    if nested(answer, "object") == "error":  # as vLLM has it
        error = answer
    code = nested(error, "code")
    return 0 if not error else code if code in range(400, 600) else 500


def _remedy(error: "openai.APIStatusError", body: Body) -> str:
    """Return what to set where a server names the field that it refuses, or is elsewhere."""
    if error.status_code in ELSEWHERE and not nested(error.body, "message"):
        return OTHER_URL
    field = nested(error.body, "param")
    if not isinstance(field, str) or field not in body or field in ("prompt", "messages"):
        return ""
    other = f"{{{CHAT_CAP}: 4096}}" if field == CAP else f"{{{field}: null}} to leave it out"
    return f"it refuses {field}: set extra: {other}"
