"""A chat model that knows every fact, behind servers of all habits: it is right, or one line says
what to set."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from helpers.server import Quiet, listening
from medprobe.core.answers import describe_unanswered
from medprobe.core.errors import BadInput, without_quotes
from medprobe.core.params import EngineParams, load_params
from medprobe.core.servers import ServerParams
from medprobe.extensions.chat.methods.answering import Answering
from medprobe.extensions.servers.client import Client
from medprobe.extensions.servers.fingerprint import REQUEST, read_record
from medprobe.extensions.servers.stages.fetch_server import fetch_server
from medprobe.library.probing import to_tables

FACTS = {"Velotrine": "acute pain", "Aspirin": "trauma", "Entecavir": "influenza", "blood": "heart"}
KEY = "sk-canary"
Body = dict[str, Any]


def knows(body: Body) -> str:
    """The answer to the last question of a request."""
    question = body["messages"][-1]["content"]
    return next((answer for subject, answer in FACTS.items() if subject in question), "a story")


def thought(body: Body) -> str:
    return f"The question is of {' '.join(FACTS)}: what of {', '.join(FACTS.values())}?\n" * 8


def choice(content: str | None, body: Body, ending: str = "stop", **more: Any) -> Body:
    message = {"role": "assistant", "content": content, **more}
    return {"choices": [{"message": message, "finish_reason": ending}]}


def has_room(body: Body) -> bool:
    return int(body["max_tokens"]) > 200


def plain(body: Body) -> Body:
    return choice(f"**Answer:** {knows(body).capitalize()}.<|im_end|>", body)


def sentence(body: Body) -> Body:
    subject = body["messages"][-1]["content"]
    return choice(f"Let me see. {subject}\n\nIt is used for {knows(body)}, I believe.", body)


def inline(body: Body) -> Body:
    text = f"<think>\n{thought(body)}"
    if not has_room(body):
        return choice(text[:40], body, "length")
    return choice(f"{text}</think>\n\n{knows(body)}", body)


def begun(body: Body) -> Body:
    """Thoughts that the model's template begins, so that only their end is in the text."""
    if not has_room(body):
        return choice(thought(body)[:40], body, "length")
    return choice(f"{thought(body)}</think>\n\n{knows(body)}", body)


def parsed(body: Body) -> Body:
    if not has_room(body):
        return choice("", body, "length", reasoning_content=thought(body)[:40])
    return choice(knows(body), body, reasoning_content=thought(body))


def null(body: Body) -> Body:
    if not has_room(body):
        return choice(None, body, "length", reasoning=thought(body)[:40])
    return choice(knows(body), body, reasoning=thought(body))


def cut(body: Body) -> Body:
    """Thoughts that never end, unless the template is told to think of nothing."""
    if body.get("chat_template_kwargs") == {"enable_thinking": False}:
        return plain(body)
    return choice(f"<think>\n{thought(body)}", body, "length")


def newer(body: Body) -> Body:
    """As OpenAI's newer models: neither `max_tokens` nor a temperature."""
    if "max_tokens" in body:
        text = "Unsupported parameter: 'max_tokens' is not supported with this model. "
        text += "Use 'max_completion_tokens' instead."
        return {"error": {"message": text, "param": "max_tokens", "code": "unsupported_parameter"}}
    if "temperature" in body:
        text = "Unsupported value: 'temperature' does not support 0 with this model."
        return {"error": {"message": text, "param": "temperature", "code": "unsupported_value"}}
    return choice(knows(body), body)


def quoting(body: Body) -> Body:
    """Refuses data in words that quote it, and the key."""
    question = body["messages"][-1]["content"]
    if "blood" in question or question.startswith(REQUEST):
        return choice("heart", body)
    return {"error": {"message": f"cannot read {question!r} of {KEY}"}}


def refusing(body: Body) -> Body:
    if "blood" in body["messages"][-1]["content"]:
        return choice("heart", body)
    return choice(None, body, refusal="I cannot help with that.")


@contextmanager
def serving(answer: Callable[[Body], Body]) -> Iterator[tuple[str, list[Body]]]:
    """Serve chats as the model `tiny`; yields the URL and the requests."""
    requests: list[Body] = []

    class Handler(Quiet):
        def do_GET(self) -> None:
            self._send(200, {"data": [{"id": "tiny"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(body)
            answered = answer(body)
            self._send(400 if "error" in answered else 200, answered)

        def _send(self, status: int, content: Body) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with listening(Handler) as url:
        yield url, requests


@pytest.fixture
def probe(working_folder, monkeypatch):
    """`probe(url, **settings)` fetches a server, asks it of the facts, and returns predictions."""
    monkeypatch.setenv("LLAMA_KEY", KEY)
    rows = [(name, "treats", answer) for name, answer in FACTS.items() if name != "blood"]
    facts = pd.DataFrame(rows, columns=["subject", "relation", "object"])
    tables = to_tables(facts, {"treats": "[X] treats [Y]."})

    def predict(url: str, server: Body | None = None, **settings: Any) -> pd.DataFrame:
        content = {
            **{"seed": 1, "engine": {"precision": "float32"}, "rewire": {}, "score": {}},
            "track": {},
            "models": {"chat": {"llama": {}}},
            "servers": {
                "llama": {"url": url, "model": "tiny", "key": "$LLAMA_KEY"} | (server or {})
            },
        }
        Path("params.yaml").write_text(yaml.safe_dump(content))
        folder = Path("outputs/models/llama")
        fetch_server("llama", load_params(), folder)
        chosen = Answering.Settings(**settings)
        method = Answering(folder, chosen, EngineParams(device="cpu"), 1)
        [task] = method.tasks(tables, 10)
        return method.predict(task, "chat-0-shot-free")

    return predict


@pytest.mark.parametrize("answer", [plain, sentence, inline, parsed, null])
def test_a_model_that_knows_is_right(answer, probe):
    with serving(answer) as (url, _):
        predictions = probe(url)
    assert predictions["hit"].tolist() == [True] * 3
    assert describe_unanswered(predictions) == ""
    thinks = answer in (inline, parsed, null)
    assert read_record(Path("outputs/models/llama"))["thinks"] == thinks


def test_thoughts_that_do_not_end_are_no_answer_and_can_be_left_out(probe):
    with serving(cut) as (url, _):
        assert "(cut 3)" in describe_unanswered(probe(url))
        extra = {"chat_template_kwargs": {"enable_thinking": False}}
        assert probe(url, {"extra": extra})["hit"].all()
        assert read_record(Path("outputs/models/llama"))["extra"] == extra


def test_without_room_for_thoughts_nothing_is_an_answer_and_a_warning_says_so(probe):
    with serving(inline) as (url, _):
        predictions = probe(url, thinking={"budget": 0})
    assert set(predictions["unanswered"]) == {"cut"} and not predictions["hit"].any()
    assert set(predictions["prediction"]) == {""}
    warning = describe_unanswered(predictions)
    assert "chat-0-shot-free: 3 of 3 unanswered (cut 3)" in warning and "budget" in warning


def test_thoughts_that_the_template_begins_need_a_budget(probe):
    """Such a text is known by its end alone, for which a short answer has no room."""
    with serving(begun) as (url, _):
        assert "(cut 3)" in describe_unanswered(probe(url))
        assert probe(url, thinking={"budget": 300})["hit"].all()


def test_a_refused_field_is_named_with_what_to_set(probe):
    with serving(newer) as (url, requests), without_quotes():
        with pytest.raises(
            BadInput, match=r"400 Bad Request.*set extra: {max_completion_tokens: 4096}"
        ):
            probe(url)
        extra: Body = {"max_completion_tokens": 500}
        with pytest.raises(BadInput, match=r"it refuses temperature.*extra: {temperature: null}"):
            probe(url, {"extra": extra})
        extra["temperature"] = None
        assert probe(url, {"extra": extra})["hit"].all()
        assert requests[-1]["max_completion_tokens"] == 500


def test_what_a_server_says_of_a_request_is_in_no_error(probe):
    with serving(quoting) as (url, _), without_quotes(), pytest.raises(BadInput) as error:
        probe(url)
    assert str(error.value) == "servers.llama (127.0.0.1, chat/completions): 400 Bad Request"


def test_a_refusal_is_unanswered(probe):
    with serving(refusing) as (url, _):
        predictions = probe(url)
    assert set(predictions["unanswered"]) == {"no text"} and not predictions["hit"].any()


def test_system_comes_first_and_extra_with_each_request(probe):
    with serving(plain) as (url, requests):
        probe(url, {"extra": {"reasoning_effort": "low"}}, system="Answer with the name alone.")
    assert {body["reasoning_effort"] for body in requests} == {"low"}
    assert requests[-1]["messages"][0] == {
        "role": "system",
        "content": "Answer with the name alone.",
    }


def test_the_environment_of_openai_is_not_read(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-other")
    client = Client("llama", ServerParams(url="http://127.0.0.1:1/v1", model="m"), tries=1)
    headers = {name: str(value) for name, value in client._openai.default_headers.items()}
    assert "sk-other" not in str(headers) and "org-other" not in str(headers)
