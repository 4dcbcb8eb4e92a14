"""Stage `fetch-server`: what stands for a served model, in place of a checkpoint.

Many servers answer 200 and leave out what they do not support. So each ability is asked for once,
and a method that needs another one is refused by name.
"""

import json
from pathlib import Path
from typing import Any, Final

import click

from medprobe.backends import PLUGIN_MODEL, PluginModel
from medprobe.core import places
from medprobe.core.errors import BadInput, nearest, quoting
from medprobe.core.files import replacing
from medprobe.core.params import ModelKind, Params
from medprobe.extensions.chat import extraction
from medprobe.extensions.servers import fingerprint
from medprobe.extensions.servers.backends.served import (
    Served,
    echo_body,
    read_echo,
    read_text,
    read_top,
    top_logprobs_body,
)
from medprobe.extensions.servers.client import Client, Refused, nested, read_choice
from medprobe.extensions.servers.fingerprint import FINGERPRINT, RECORD, SETTINGS, read_record

QUESTION: Final = "Which organ pumps the blood? Answer in one word."
ANSWERED: Final = 16  # tokens of an answer to it
TEXT: Final = "The heart pumps the blood through the body."
LACKS: Final = "it answered 200 and left out the numbers, or all are equal"


def fetch_server(name: str, params: Params, out: Path) -> None:
    """Ask a server what it can do, and write its record into a model's folder.

    A fingerprint that is there already stays as it is if the server still has its model. Otherwise
    a text of it that nearly ties with another would make all results stale.
    """
    servers = params.servers
    if name not in servers:
        raise BadInput("params.yaml", f"servers: no server '{name}'{nearest(name, [*servers])}")
    client, kind = Client(name, servers[name]), params.models.kind(name)
    thinks = kind == "chat" and _thinks(client)
    lacks = _lacks(client, kind)
    old, new = _recorded(out), fingerprint.take(client, kind)
    record = {
        **client.identity,
        **{"host": client.params.host, "kind": kind, "thinks": thinks},
        FINGERPRINT: (old if old and fingerprint.is_same(old, new) else new).as_json(),
    }
    model = PluginModel(
        backend="served",
        kinds=("chat", "causal") if kind == "chat" else ("causal",),
        abilities=tuple(sorted({"write", "top_logprobs", "echo"} - lacks.keys())),
        lacks=lacks,
        identity=RECORD,
        tokenizer=client.params.tokenizer,
        remote=True,
    )
    settings = client.params.model_dump(include={"own", "zero_retention", "max_requests"})
    contents = {RECORD: record, SETTINGS: settings, PLUGIN_MODEL: model.model_dump(mode="json")}
    with replacing(out) as folder:
        folder.mkdir()
        for file, content in contents.items():
            text = json.dumps(content, indent=1, sort_keys=True)
            (folder / file).write_text(f"{text}\n", encoding="utf-8")


def _recorded(folder: Path) -> fingerprint.Fingerprint | None:
    try:
        return fingerprint.Fingerprint.read(read_record(folder))
    except BadInput:
        return None


def _ask(kind: ModelKind, tokens: int, **more: Any) -> dict[str, Any]:
    """The path and body of a question."""
    body = {"max_tokens": tokens, "temperature": 0.0, **more}
    if kind == "chat":
        body["messages"] = [{"role": "user", "content": QUESTION}]
        return {"path": "chat/completions", "body": body}
    return {"path": "completions", "body": {**body, "prompt": TEXT}}


def _thinks(client: Client) -> bool:
    """Whether a chat has thoughts, parted from its text or in it."""
    answer = client.post(**_ask("chat", ANSWERED))
    text, is_cut = read_text(answer, "chat", f"servers.{client.name}")
    thoughts, _ = read_choice(nested(answer, "choices", 0))
    in_text = extraction.begins_thoughts(text) or extraction.ends_thoughts(text)
    return bool(thoughts) or in_text or (is_cut and not text)


def _lacks(client: Client, kind: ModelKind) -> dict[str, str]:
    """Why the server cannot give numbers, by ability."""
    lacks = {}
    try:
        top = read_top(client.post(**_ask(kind, 1, **top_logprobs_body(kind))), kind)
        if len({score for _, score in top}) < 2:
            lacks["top_logprobs"] = LACKS
    except Refused as error:
        lacks["top_logprobs"] = f"refused: {str(error).partition(': ')[2][:120]}"
    if client.params.tokenizer is None:
        return lacks | {"echo": "no tokenizer in params.yaml"}
    tokenizer = Served(client, kind, frozenset()).text_model.tokenizer
    row = tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    try:
        answer = client.post("completions", echo_body(row))
    except Refused as error:
        return lacks | {"echo": f"refused: {str(error).partition(': ')[2][:120]}"}
    tokens = nested(answer, "choices", 0, "logprobs", "tokens")
    texts = map(str, tokens[: len(row)] if isinstance(tokens, list) else [])
    if len({*(read_echo(answer, len(row)) or [])[1:]}) < 2:
        lacks["echo"] = LACKS
    elif "".join("".join(texts).split()) != "".join(tokenizer.decode(row).split()):
        lacks["echo"] = "its tokens are not those of the tokenizer in params.yaml"
    return lacks


@click.command(epilog="\b\nExample:\n  medprobe fetch-server --model llama")
@click.option("--model", required=True, help="A model of params.yaml.")
def command(params: Params, model: str) -> None:
    """Record what a server can do, before its model is probed."""
    quoting.set(True)  # its questions are none of the data's
    fetch_server(model, params, places.MODELS / model)


COMMAND: Final = command
