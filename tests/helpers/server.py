"""An OpenAI-compatible server over a tiny checkpoint, exact or with a server's usual faults."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch

from medprobe.core.params import EngineParams
from medprobe.engine import load

Body = dict[str, Any]
Memory = dict[tuple[Path | torch.dtype | int, ...], torch.Tensor]


class TinyServer:
    """The model, and how it answers.

    Attributes:
        fault: What goes wrong.
        failures: How many of the next requests fail.
        refuses: A text; requests about it are refused. Empty: none.
        top: The most tokens in `top_logprobs`.
        batch: How many rows are computed at once.
        memory: The numbers of texts that it has read; None computes them each time.
    """

    def __init__(
        self, folder: Path, fault: str = "", failures: int = 0, memory: Memory | None = None
    ) -> None:
        self.memory = memory
        self.load(folder)
        self.fault, self.failures = fault, failures
        self.refuses, self.top, self.batch = "", 20, 1
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.tokens: dict[int, str] = {}  # by id; the vocabularies of tiny models are the same
        self.lock = threading.Lock()

    def load(self, folder: Path) -> None:
        """Answer by this checkpoint from now on."""
        self.folder = folder
        self.model = load.load(folder, "causal", EngineParams(device="cpu"))

    def answer(self, path: str, body: Body) -> Body:
        """Answer a request as OpenAI's interface has it."""
        if path.endswith("models"):
            return {"data": [{"id": "tiny", "owned_by": "tests", "created": len(self.requests)}]}
        chat = path.endswith("chat/completions")
        ids = self._ids(body, chat)
        written, rows = self._write(ids, body["max_tokens"])
        places = [self._likeliest(row) for row in rows]
        choice: Body = {"index": 0, "finish_reason": "stop"}
        text = self._text(written)
        choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        if self.fault != "leaves out" and body.get("logprobs"):
            choice["logprobs"] = self._chat_tokens(places) if chat else self._echo(ids, places)
        return {"choices": [choice], "usage": {"total_tokens": len(ids) + len(written)}}

    def is_about(self, body: Body, text: str) -> bool:
        """Return whether a text is in the prompt of a request."""
        return bool(body) and text in self._text(self._ids(body, "messages" in body))

    def _ids(self, body: Body, chat: bool) -> list[int]:
        tokenizer = self.model.tokenizer
        if chat:
            encoded = tokenizer.apply_chat_template(body["messages"], add_generation_prompt=True)
            return list(encoded["input_ids"])
        if isinstance(body["prompt"], list):
            return list(body["prompt"])
        return list(tokenizer(body["prompt"])["input_ids"])

    def _log_probs(self, ids: list[int]) -> torch.Tensor:
        if self.memory is None:
            return self._compute(ids)
        key = (self.folder, self.model.model.dtype, *ids)
        if key not in self.memory:
            self.memory[key] = self._compute(ids)
        return self.memory[key]

    def _compute(self, ids: list[int]) -> torch.Tensor:
        with self.lock, torch.inference_mode():
            logits = self.model.model(torch.tensor([ids] * self.batch)).logits
            return logits[0].float().log_softmax(-1)

    def _write(self, ids: list[int], count: int) -> tuple[list[int], list[torch.Tensor]]:
        written: list[int] = []
        rows = []
        for _ in range(count):
            rows.append(self._log_probs([*ids, *written])[-1])
            written.append(int(rows[-1].argmax()))
        return written, rows

    def _likeliest(self, row: torch.Tensor) -> list[tuple[str, float]]:
        scores, ids = row.topk(min(self.top, len(row)))
        tokens = [*zip(map(self._token, ids.tolist()), scores.tolist(), strict=True)]
        return [(token, 0.0) for token, _ in tokens] if self.fault == "zeros" else tokens

    def _token(self, id_: int) -> str:
        if id_ not in self.tokens:
            self.tokens[id_] = self._text([id_])
        return self.tokens[id_]

    def _text(self, ids: list[int]) -> str:
        return str(self.model.tokenizer.decode(ids))

    def _chat_tokens(self, places: list[list[tuple[str, float]]]) -> Body:
        tops = [[{"token": token, "logprob": s} for token, s in tokens] for tokens in places]
        return {"content": [{**top[0], "top_logprobs": top} for top in tops]}

    def _echo(self, ids: list[int], places: list[list[tuple[str, float]]]) -> Body:
        scores = self._log_probs(ids)
        echoed = scores[range(len(ids) - 1), ids[1:]].tolist()
        if self.fault == "zeros":
            echoed = [0.0] * len(echoed)
        texts = [self._token(token) for token in ids]
        if self.fault == "other tokens":
            texts = ["other"] * len(ids)
        written = [tokens[0] for tokens in places]
        return {
            "tokens": [*texts, *(token for token, _ in written)],
            "token_logprobs": [None, *echoed, *(score for _, score in written)],
            "top_logprobs": [dict(tokens) for tokens in places],
        }


class Quiet(BaseHTTPRequestHandler):
    """Prints nothing."""

    def log_message(self, *arguments: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Takes many connections at once; one that is put off is tried again after a second."""

    request_queue_size = 128


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve by a handler; yields the URL."""
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


class _Handler(Quiet):
    served: TinyServer

    def do_GET(self) -> None:
        self._respond({})

    def do_POST(self) -> None:
        self._respond(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _respond(self, body: Body) -> None:
        """Record a request, then answer it, or fail as the served fault says."""
        served = self.served
        with served.lock:
            served.requests.append(body)
            served.headers.append({name.lower(): value for name, value in self.headers.items()})
            fails, served.failures = served.failures > 0, served.failures - 1
        if fails and served.fault in ("429", "500", "401"):
            self._send_head(int(served.fault))
        elif served.refuses and served.is_about(body, served.refuses):
            self._send_head(400)
        elif body and body["model"] != "tiny":
            self._send_head(404)
        else:
            content = json.dumps(served.answer(self.path, body)).encode()
            if fails and served.fault == "hangs":
                threading.Event().wait(0.5)
            self._send_head(200, len(content))
            self.wfile.write(content[: len(content) // 2] if fails else content)

    def _send_head(self, status: int, length: int = 0) -> None:
        self.send_response(status)
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            self.send_header("Retry-After", "7")
        self.send_header("Content-Length", str(length))
        self.end_headers()


@contextmanager
def serving(
    folder: Path, fault: str = "", failures: int = 0, memory: Memory | None = None
) -> Iterator[tuple[str, TinyServer]]:
    """Serve a checkpoint as the model `tiny`; yields the URL and what answers.

    Args:
        folder: A causal checkpoint.
        fault: `leaves out`, `zeros`, `other tokens`, `429`, `500`, `401`, `half`, `hangs`, or none.
        failures: How many requests fail, with the last five.
        memory: See `TinyServer`.
    """
    served = TinyServer(folder, fault, failures, memory)
    with listening(type("Handler", (_Handler,), {"served": served})) as url:
        yield url, served
