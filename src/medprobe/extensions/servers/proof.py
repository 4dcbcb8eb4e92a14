"""The proof of what a server can do: requests whose answer is known.

Many servers answer 200 and leave out what they do not support. A number is asked of a server only
if it has proved here that it gives it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from medprobe.core.answers import THINK_END, THOUGHTS
from medprobe.core.errors import BadInput, nearest
from medprobe.core.params import ModelKind
from medprobe.extensions.chat.extraction import Extraction, Names, strip_thoughts
from medprobe.extensions.servers.backends.served import (
    Served,
    echo_body,
    read_echo,
    read_text,
    read_top,
    top_logprobs_body,
)
from medprobe.extensions.servers.client import Client, Refused, nested, read_choice
from medprobe.extensions.servers.records import PROVED

QUESTION: Final = "Which organ pumps the blood? Answer in one word."
ANSWER: Final = "heart"
ANSWERED: Final = 16  # tokens of an answer to it
TEXT: Final = "The heart pumps the blood through the body."
DESCRIBED: Final = ("id", "owned_by", "root", "max_model_len")  # of a server's entry of a model
DIFFERENCE: Final = 1e-3  # nats between the same number of two answers, rounding of batches


def prove(client: Client, kind: ModelKind) -> dict[str, Any]:
    """Return the record of a server: what it is, and what it has proved.

    Args:
        client: The server.
        kind: `chat` or `causal`.

    Raises:
        BadInput: The server does not answer, does not serve the model, or writes nothing.
    """
    params, tokenizer = client.params, client.params.tokenizer
    entries = _entries(client)
    try:
        written, about = _write(client, kind)
    except Refused:
        if params.model in entries or not entries:
            raise
        problem = f"{params.host} serves no model '{params.model}'"
        remedy = f"there are: {', '.join(entries)}"
        problem += nearest(params.model, [*entries])
        raise BadInput(f"servers.{client.name}.model", problem, remedy) from None
    return {
        **client.identity,
        **about,
        "host": params.host,
        "kind": kind,
        "entry": entries.get(params.model, "not listed by /v1/models"),
        "weights": "not hashed: the server does not show them",
        "proof": {
            "write": written,
            "top_logprobs": _attempt(client, kind, _top_logprobs),
            "echo": _attempt(client, kind, _echo) if tokenizer else "no tokenizer in params.yaml",
        },
    }


def _entries(client: Client) -> dict[str, dict[str, Any]]:
    """Return what `/v1/models` says of each model; nothing where the server has no such list."""
    try:
        models = replace(client, tries=1).models()
    except BadInput:
        return {}
    return {str(model.get("id")): {key: model.get(key) for key in DESCRIBED} for model in models}


def _attempt(client: Client, kind: ModelKind, proof: Callable[[Client, ModelKind], str]) -> str:
    """Return what a proof says; a request that is refused proves nothing."""
    try:
        return proof(client, kind)
    except Refused as error:
        return f"refused: {str(error).partition(': ')[2][:120]}"


def _question(kind: ModelKind) -> dict[str, Any]:
    body: dict[str, Any] = {"max_tokens": ANSWERED, "temperature": 0.0}
    if kind == "chat":
        return {**body, "messages": [{"role": "user", "content": QUESTION}]}
    return {**body, "prompt": TEXT}


def _path(kind: ModelKind) -> str:
    return "chat/completions" if kind == "chat" else "completions"


def _write(client: Client, kind: ModelKind) -> tuple[str, dict[str, bool | None]]:
    """Return what is proved of written answers; whether a chat thinks, and knows the answer.

    Raises:
        BadInput: A chat gives no answer to the question, so that none could be right.
    """
    where, names = f"servers.{client.name}", Names([(ANSWER, ANSWER)])
    body = _question(kind)
    if kind != "chat":
        texts = {read_text(client.post(_path(kind), body), kind, where)[0] for _ in range(2)}
        return _same(texts), {"thinks": False, "knows": None}
    answer = client.post(_path(kind), body)
    thinks = _thinks(answer, where)
    if thinks:
        body["max_tokens"] += THOUGHTS
        answer = client.post(_path(kind), body)
    text, is_cut = read_text(answer, kind, where)
    read = Extraction().read(text, names, is_cut=is_cut and thinks)
    if read.unanswered in ("cut", "no text"):
        room = f"{body['max_tokens']:,} tokens"
        problem = f"it gives no answer to a simple question in {room} ({read.unanswered})"
        remedy = "let it think less by extra, such as {reasoning_effort: low} or "
        remedy += "{chat_template_kwargs: {enable_thinking: false}}"
        raise BadInput(where, problem, remedy if thinks or is_cut else "is it a chat model?")
    again = read_text(client.post(_path(kind), body), kind, where)[0]
    return _same({strip_thoughts(one).strip() for one in (text, again)}), {
        "thinks": thinks,
        "knows": bool(read.name),
    }


def _thinks(answer: dict[str, Any], where: str) -> bool:
    """Return whether an answer has thoughts, parted from its text or in it."""
    text, is_cut = read_text(answer, "chat", where)
    begins = text.lstrip().startswith(THINK_END.replace("/", ""))
    thoughts, _ = read_choice(nested(answer, "choices", 0))
    return bool(thoughts) or begins or THINK_END in text or (is_cut and not text)


def _same(texts: set[str]) -> str:
    return PROVED if len(texts) == 1 else "the same request gives two texts at temperature 0"


def _top_logprobs(client: Client, kind: ModelKind) -> str:
    body = {**_question(kind), "max_tokens": 1, **top_logprobs_body(kind)}
    answers = [client.post(_path(kind), body) for _ in range(2)]
    first, second = (dict(read_top(answer, kind)) for answer in answers)
    if not first:
        return "answered 200 and left out top_logprobs"
    if len(set(first.values())) < 2 or max(first.values()) > 0:
        return "all log-probabilities are equal, or one is above 0"
    token, _ = read_text(answers[0], kind, "proof")
    if token.strip() not in {text.strip() for text in first}:
        return "the token that it wrote is not among the likeliest"
    if first.keys() != second.keys() or not _are_close([*first.values()], [*second.values()]):
        return "the same request gives other numbers"
    return PROVED


def _echo(client: Client, kind: ModelKind) -> str:
    tokenizer = Served(client, kind, frozenset()).text_model.tokenizer
    row = tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    answers = [client.post("completions", echo_body(row)) for _ in range(2)]
    scores, again = (read_echo(answer, len(row)) for answer in answers)
    if scores is None or again is None:
        return "answered 200 and left out the log-probability of some tokens"
    if len(set(scores[1:])) < 2:
        return "all log-probabilities are equal"
    if not _are_close(scores, again):
        return "the same request gives other numbers"
    tokens = nested(answers[0], "choices", 0, "logprobs", "tokens")
    texts = tokens[: len(row)] if isinstance(tokens, list) else []
    if _squeezed("".join(map(str, texts))) != _squeezed(tokenizer.decode(row)):
        return "its tokens are not those of the tokenizer in params.yaml"
    return PROVED


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _are_close(scores: list[float], others: list[float]) -> bool:
    pairs = zip(scores, others, strict=True)
    return all(abs(first - second) <= DIFFERENCE for first, second in pairs)
