"""Requests to an OpenAI-compatible server: retried, several at once.

The key is in no error and no record.
"""

import email.utils
import hashlib
import http.client
import json
import math
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from medprobe.core.errors import BadInput, quoting
from medprobe.engine.load import token_counter
from medprobe.extensions.servers.settings.servers import ServerParams

TRIES: Final = 6
LONGEST_WAIT: Final = 300.0  # seconds between two tries, whatever a server asks for
BUSY: Final = 429  # too many requests
MESSAGE_LENGTH: Final = 200  # characters of a server's message in errors

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
        sleep: Waits before a further try.
        clock: Returns the seconds since 1970.
    """

    name: str
    params: ServerParams
    tries: int = TRIES
    sleep: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = time.time

    @property
    def identity(self) -> dict[str, str]:
        """What stands for the model: its name in params.yaml and on the server, and the URL.

        The URL is hashed, since its path may be secret. Results of another identity are not those
        of this model.
        """
        url = hashlib.sha256(self.params.url.rstrip("/").encode()).hexdigest()
        return {"name": self.name, "url.sha256": url, "model": self.params.model}

    def post(self, path: str, body: Body) -> Body:
        """Send a request, and again while the server is busy or fails.

        Args:
            path: Below the server's URL, such as `completions`.
            body: Without the model, which is added.

        Raises:
            Refused: The server refuses the request.
            BadInput: The server does not answer, or no key is set.
        """
        answer = self._send(path, {"model": self.params.model, **body})
        total = nested(answer, "usage", "total_tokens")
        if isinstance(total, int):  # foreign: anything can be there
            token_counter["tokens"] += total
        return answer

    def models(self) -> list[Body]:
        """Return the server's list of models."""
        listed = self._send("models", None).get("data")
        if not isinstance(listed, list):
            return []
        return [model for model in listed if isinstance(model, dict)]

    def post_all(self, path: str, bodies: Sequence[Body]) -> Iterator[Body]:
        """Send requests, several at once, and yield the answers in their order."""
        with ThreadPoolExecutor(self.params.requests) as pool:
            futures = [pool.submit(self.post, path, body) for body in bodies]
            try:
                for future in futures:
                    yield future.result()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _send(self, path: str, body: Body | None) -> Body:
        problem = ""
        for attempt in range(self.tries):
            wait = 2.0**attempt
            try:
                return self._send_once(path, body)
            except urllib.error.HTTPError as error:
                with error:
                    problem = f"{error.code} {http.client.responses.get(error.code, '')}".strip()
                    if error.code != BUSY and error.code < 500:
                        raise Refused(self._where(path), problem + _message(error)) from None
                    wait = self._asked_wait(error.headers.get("Retry-After"), wait)
            except TimeoutError:
                problem = f"no answer in {self.params.timeout:g} s"
            except urllib.error.URLError as error:
                problem = f"no connection ({error.reason})"
            except (OSError, http.client.HTTPException, ValueError, RecursionError):
                problem = "an answer that is cut or not JSON"
            if attempt < self.tries - 1:
                self.sleep(min(wait, LONGEST_WAIT))
        remedy = "see whether it runs, then go on: finished parts are kept"
        raise BadInput(self._where(path), f"{problem} (tries: {self.tries})", remedy)

    def _send_once(self, path: str, body: Body | None) -> Body:
        request = urllib.request.Request(
            f"{self.params.url.rstrip('/')}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **self._authorization()},
        )
        with _opener(self.params).open(request, timeout=self.params.timeout) as response:
            answer = json.loads(response.read())
        if not isinstance(answer, dict):
            raise Refused(self._where(path), "the answer is not a JSON object")
        return answer

    def _authorization(self) -> dict[str, str]:
        if self.params.key is None:
            return {}
        variable = self.params.key.removeprefix("$")
        if not (key := os.environ.get(variable, "").strip()):
            problem = f"the environment variable {variable}, which holds its key, is not set"
            raise BadInput(f"servers.{self.name}", problem, f"export {variable}=…")
        return {"Authorization": f"Bearer {key}"}

    def _asked_wait(self, value: str | None, wait: float) -> float:
        """Return the seconds of a `Retry-After`, which has seconds or a date, otherwise `wait`."""
        if value is None:
            return wait
        try:
            seconds = float(value)
        except ValueError:
            pass
        else:
            return wait if math.isnan(seconds) else max(0.0, seconds)
        try:
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - self.clock())
        except ValueError:
            return wait

    def _where(self, path: str) -> str:
        return f"servers.{self.name} ({self.params.host}, {path})"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would carry the key and the prompts to another host."""

    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        return None


def _opener(params: ServerParams) -> urllib.request.OpenerDirector:
    """Return what opens URLs; without a proxy for this machine, whose prompts stay on it."""
    proxies = [urllib.request.ProxyHandler({})] if params.is_loopback else []
    return urllib.request.build_opener(_NoRedirect, *proxies)


def nested(content: Any, *keys: str | int) -> Any:
    """Return what is below keys and indices of foreign JSON; None where anything is missing."""
    for key in keys:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def _message(error: urllib.error.HTTPError) -> str:
    """Return what a server says of its refusal, where errors may quote data."""
    if not quoting.get():
        return ""
    try:
        text = error.read(10_000).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return ""
    return f": {' '.join(text.split())[:MESSAGE_LENGTH]}" if text else ""
