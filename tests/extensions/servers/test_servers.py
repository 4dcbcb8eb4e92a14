"""A model behind a server gives the numbers of the same model in this process, or is refused."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event

import anyio
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import nightly, probing, tiny
from helpers import server as servers
from helpers.server import Quiet, listening
from medprobe.backends import PLUGIN_MODEL, PluginModel, finder, read_plugin_model
from medprobe.core import places
from medprobe.core.errors import BadInput, without_quotes
from medprobe.core.params import EngineParams, load_params
from medprobe.core.parts import fingerprint
from medprobe.core.servers import ServerParams
from medprobe.core.tables import BenchmarkTables, Metadata, read_refusal
from medprobe.extensions.chat.methods.answering import Answering
from medprobe.extensions.chat.methods.judgment import Judgment
from medprobe.extensions.chat.prompt_texts import Chat
from medprobe.extensions.chat.writer import writer_of
from medprobe.extensions.chat.writing import WritingSettings
from medprobe.extensions.likelihood.methods.likelihood import Likelihood
from medprobe.extensions.servers.backends.served import CUT, ENDED, read_echo, read_text, read_top
from medprobe.extensions.servers.client import TRIES, Client, read_choice
from medprobe.extensions.servers.fingerprint import RECORD
from medprobe.extensions.servers.stages.fetch_server import LACKS, fetch_server
from medprobe.methods.perplexity import Perplexity
from medprobe.metrics.results import prediction_tables, refusals
from medprobe.pipeline import plan
from medprobe.pipeline.probing import prepare
from medprobe.pipeline.stages.probe import probe
from medprobe.pipeline.stale_stages import Stage

FIXED = """\
seed: 1
engine: {precision: float32, device: cpu}
rewire: {}
score: {}
track: {}
"""
ENGINE = EngineParams(device="cpu")
serving = partial(servers.serving, memory={})  # each text is computed once
NAMES = probing.NAMES[3:7]
WORDINGS = [("Is it [1] or [2]?", "x", "z")]  # letters that no other token begins with
TEMPLATE = "{% for m in messages %}{{ m.content }}\n{% endfor %}"


@pytest.fixture(scope="module")
def checkpoint(tiny_model):
    return tiny_model("gpt2")


@pytest.fixture(scope="module")
def chat_checkpoint(checkpoint, tmp_path_factory):
    return tiny.with_template(checkpoint, tmp_path_factory.mktemp("served") / "chat", TEMPLATE)


@pytest.fixture
def project(working_folder, checkpoint):
    """`project(url)` writes params.yaml with a server, and returns its model's folder."""

    def make(url: str, kind: str = "causal", methods: object = None, **more: object) -> Path:
        server = {"url": url, "model": "tiny", "tokenizer": str(checkpoint), "requests": 2}
        server |= more
        models = json.dumps({kind: {"llama": {}}})
        benchmarks = json.dumps({"table": {"facts": {}}})
        text = f"{FIXED}servers: {json.dumps({'llama': server})}\nmodels: {models}\n"
        text += f"methods: {json.dumps({kind: methods or {}})}\nbenchmarks: {benchmarks}\n"
        Path("params.yaml").write_text(text)
        return Path("outputs/models/llama")

    return make


def fetch_and_open(folder):
    return finder.find(fetched(folder), "causal", ENGINE)


PASSES = {  # of a served model, by kind
    Likelihood: {"causal": [""], "chat": [""]},
    Perplexity: {"causal": [""], "chat": [""]},
    Answering: {"causal": ["none-0-shot-constrained"], "chat": ["chat-0-shot-constrained"]},
    Judgment: {"causal": ["none", "likelihood"], "chat": ["chat", "likelihood"]},
}
SETTINGS = {
    Likelihood: {"per_token": True, "ranks": True},
    Answering: {"forms": ["constrained"]},
    Judgment: {"wordings": WORDINGS},
}


@pytest.mark.parametrize("kind", ["causal", *nightly("chat")])
@pytest.mark.parametrize("method", PASSES)
def test_a_server_gives_the_numbers_of_the_model_in_this_process(
    method, kind, project, checkpoint, chat_checkpoint
):
    folder = chat_checkpoint if kind == "chat" else checkpoint
    chosen = method.Settings(**SETTINGS.get(method, {}))
    queries = probing.queries(probing.PROMPTS[1:3])
    queries["answers"] = [[NAMES[number % 2]] for number in range(len(queries))]
    queries["answer_ids"] = queries["answers"]
    queries["subject"] = queries["subject_id"] = queries["query_id"]
    tables = BenchmarkTables(queries, probing.candidates(NAMES))
    with serving(folder) as (url, server):
        server.top = 100_000  # all words are among the likeliest, so their numbers are exact
        record = fetched(project(url, kind, tokenizer=str(folder)))
        served, local = method(record, chosen, ENGINE, 1), method(folder, chosen, ENGINE, 1)
        assert served.passes() == PASSES[method][kind]
        for task in local.tasks(tables, 3):
            for pass_ in served.passes():
                ours, theirs = local.predict(task, pass_), served.predict(task, pass_)
                pd.testing.assert_frame_equal(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("per_token", [False, True])
def test_a_server_proves_whether_an_answer_is_among_the_best(per_token, project, checkpoint):
    queries = probing.queries(probing.PROMPTS[1:3] * 5)
    queries["answers"] = [[NAMES[number % len(NAMES)]] for number in range(len(queries))]
    queries["query_id"] = [f"q{number}" for number in range(len(queries))]
    task = probing.task(queries, probing.candidates(NAMES), 3)
    with serving(checkpoint) as (url, _):
        record = fetched(project(url, "causal", tokenizer=str(checkpoint)))
        tables = []
        for folder, lists in ((record, False), (checkpoint, True)):
            chosen = Likelihood.Settings(per_token=per_token, lists=lists)
            tables.append(Likelihood(folder, chosen, ENGINE, 1).predict(task, ""))
    right = queries.set_index("query_id")["answers"].str[0]
    ranks = []
    for table in tables:
        hits = table[table["prediction"] == right.loc[table["query_id"]].to_numpy()]
        ranks.append(hits[hits["rank"] <= 3].set_index(["variant", "query_id"])["rank"])
    assert 0 < len(ranks[0]) < len(queries) * (1 + per_token)
    pd.testing.assert_series_equal(*ranks)


def test_a_chat_is_asked_by_turns_and_answers_with_its_first_line(project, chat_checkpoint):
    chat = Chat((("Aspirin treats ____ .", "pain"),), "Velotrine treats ____ .")
    with serving(chat_checkpoint) as (url, server):
        served = fetch_and_open(project(url, "chat", tokenizer=str(chat_checkpoint)))
        [[(text, share, _)]] = served.write(
            [chat], ["q"], WritingSettings(10, 0, None, 3, False, 1), "\n"
        )
        body = server.requests[-1]
        assert [(m["role"], m["content"]) for m in body["messages"]] == [
            ("user", "Aspirin treats ____ ."),
            ("assistant", "pain"),
            ("user", "Velotrine treats ____ ."),
        ]
        message = server.answer("chat/completions", body)["choices"][0]["message"]
        first_line = message["content"].strip().partition("\n")[0]
        assert (text, share) == (" ".join(first_line.split()), 1)


def test_a_word_that_is_not_among_the_likeliest_has_the_last_of_them(project, checkpoint):
    with serving(checkpoint) as (url, _):
        served = fetch_and_open(project(url))
        prompt = {"prompt": "Aspirin treats", "max_tokens": 1, "logprobs": 20}
        [answer] = served.client.post_all("completions", [prompt])
        top = answer["choices"][0]["logprobs"]["top_logprobs"][0]
        word = max(top, key=top.get).strip()
        [scores] = served.word_log_probs(["Aspirin treats [Y]"], ["q"], [word, "nothing"], "\n")
        assert scores == [max(top.values()), min(top.values())]


def test_words_are_compared_by_their_log_probabilities(project, checkpoint):
    with serving(checkpoint) as (url, _):
        served = fetch_and_open(project(url))
        local = finder.find(checkpoint, "causal", ENGINE)
        top = local.model.tokenizer
        prompts = ["Aspirin treats\n[Y]"]
        [row] = served.client.post_all(
            "completions", [{"prompt": "Aspirin treats", "max_tokens": 1, "logprobs": 20}]
        )
        listed = [*row["choices"][0]["logprobs"]["top_logprobs"][0]]
        stripped = [token.strip() for token in listed]
        words = [  # that one token only has, and the tokenizer as one
            word
            for word, token in zip(stripped, listed, strict=True)
            if token.startswith(" ") and stripped.count(word) == 1 and len(top.tokenize(token)) == 1
        ][:2]
        assert len(words) == 2
        ours = writer_of(local).word_log_probs(["Aspirin treats [Y]"], ["q"], words, "\n")
        theirs = served.word_log_probs(["Aspirin treats [Y]"], ["q"], words, "\n")
        assert theirs[0] == pytest.approx(ours[0], abs=1e-5)
        with pytest.raises(BadInput, match="none of nothing is among its"):
            served.word_log_probs(prompts, ["q"], ["nothing"], "\n")


def test_free_answers_are_greedy_or_drawn(project, checkpoint):
    with serving(checkpoint) as (url, answering):
        served = fetch_and_open(project(url))
        greedy = WritingSettings(10, 0, None, 3, False, 1)
        [[(text, share, _)]] = served.write(["Aspirin treats [Y]"], ["q"], greedy, "\n")
        assert share == 1 and text == " ".join(
            answering.answer("completions", {"prompt": "Aspirin treats", "max_tokens": 3})[
                "choices"
            ][0]["text"]
            .strip()
            .partition("\n")[0]
            .split()
        )
        drawn = WritingSettings(10, 3, 0.7, 3, False, 1)
        [texts] = served.write(["Aspirin treats [Y]"], ["q"], drawn, "\n")
        assert sum(share for _, share, _ in texts) == pytest.approx(1)
        draws = answering.requests[-3:]
        assert len({body["seed"] for body in draws}) == 3 and draws[0]["temperature"] == 0.7


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("leaves out", LACKS),
        ("zeros", LACKS),
        ("other tokens", "its tokens are not those of the tokenizer in params.yaml"),
    ],
)
def test_what_a_server_leaves_out_is_refused_by_name(fault, reason, project, checkpoint):
    with serving(checkpoint, fault) as (url, _):
        served = fetch_and_open(folder := project(url))
        model = read_plugin_model(folder)
        assert model.lacks["echo"] == reason and "write" in model.abilities
        with pytest.raises(BadInput, match=r"servers.llama: it gives no echo"):
            served.text_log_probs(["a text"], ["q"])
        if fault != "other tokens":
            assert Judgment(folder, Judgment.Settings(), ENGINE, 1).passes() == []


SHORT = ("completions", {"prompt": "Aspirin", "max_tokens": 1})


def client(url, **more):
    return Client("llama", ServerParams(url=url, model="tiny", **more))


@pytest.fixture
def waits(monkeypatch):
    """The seconds for which the client would have waited."""
    seconds: list[float] = []

    async def sleep(duration: float) -> None:
        seconds.append(duration)

    monkeypatch.setattr(anyio, "sleep", sleep)
    return seconds


@pytest.mark.parametrize(
    ("fault", "least", "more"),
    [
        ("429", [7.0, 7.0], {}),
        ("500", [0.3, 0.7], {}),
        ("half", [0.3, 0.7], {}),
        ("hangs", [0.3, 0.7], {"timeout": 0.2}),
    ],
)
def test_a_busy_or_failing_server_is_asked_again(fault, least, more, checkpoint, waits):
    with serving(checkpoint, fault, failures=2) as (url, _):
        assert "choices" in client(url, **more).post(*SHORT)
        assert len(waits) == 2 and all(w >= low for w, low in zip(waits, least, strict=True))


def test_a_server_that_stays_busy_ends_in_one_line(checkpoint, waits):
    with serving(checkpoint, "500", failures=99) as (url, served):
        line = rf"\(127.0.0.1, completions\): 500 Internal Server Error \(tries: {TRIES}\)"
        with pytest.raises(BadInput, match=line):
            client(url).post(*SHORT)
        assert len(served.requests) == TRIES


def test_the_key_comes_from_the_environment_and_is_in_no_error(checkpoint, monkeypatch, project):
    with serving(checkpoint, "401", failures=1) as (url, served):
        with pytest.raises(BadInput, match=r"the environment variable LLAMA_KEY, .* is not set"):
            client(url, key="$LLAMA_KEY").post(*SHORT)
        monkeypatch.setenv("LLAMA_KEY", "sk-secret")
        with pytest.raises(BadInput) as error:
            client(url, key="$LLAMA_KEY").post(*SHORT)
        assert "sk-secret" not in str(error.value)
        folder = project(url, key="$LLAMA_KEY")
        fetch_server("llama", load_params(), folder)
        assert served.headers[-1]["authorization"] == "Bearer sk-secret"
        assert "sk-secret" not in (folder / RECORD).read_text()
        assert url not in (folder / RECORD).read_text()


@contextmanager
def answering_with(
    content: bytes, status: int = 200, reason: str | None = None, wait: str = ""
) -> Iterator[str]:
    """A server that gives this one answer to all requests; yields its URL."""

    class Handler(Quiet):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status, reason)
            if wait:
                self.send_header("Retry-After", wait)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with listening(Handler) as url:
        yield url


QUESTION = "Fill in: desovol might treat ____ ."
ASKED = [
    ("chat/completions", {"messages": [{"role": "user", "content": QUESTION}]}),
    ("completions", {"prompt": QUESTION}),
    ("completions", {"prompt": [17, 4, 9]}),  # token identifiers, which the server decodes
]


@pytest.mark.parametrize(("path", "body"), ASKED)
@pytest.mark.parametrize("status", [400, 200])  # 200: the error is in the answer
def test_what_a_server_quotes_of_one_of_many_requests_is_in_no_error(path, body, status):
    error = {"error": {"message": f"content filter: your text {QUESTION}", "code": 400}}
    with answering_with(json.dumps(error).encode(), status) as url:
        with without_quotes(), pytest.raises(BadInput) as held_back:
            list(client(url).post_all(path, [body] * 3))
        assert str(held_back.value) == f"servers.llama (127.0.0.1, {path}): 400 Bad Request"
        with pytest.raises(BadInput, match="content filter: your text Fill in: desovol"):
            list(client(url).post_all(path, [body] * 3))


def test_a_server_that_asks_for_a_long_wait_is_asked_once(waits):
    line = r"503 Service Unavailable \(tries: 1\)"
    with answering_with(b"", 503, wait="3600") as url, pytest.raises(BadInput, match=line):
        client(url).post(*ASKED[0])
    assert waits == []


OVERLOADED = {"message": "overloaded", "code": 503}


@pytest.mark.parametrize(
    ("answer", "quoted"),
    [
        ({"error": OVERLOADED}, ": overloaded"),
        ({"object": "error", **OVERLOADED}, ": overloaded"),
        ({"choices": [{"error": OVERLOADED, "message": {"content": "pa"}}]}, ""),
    ],
)
def test_an_error_in_an_answer_is_asked_again_and_quoted(answer, quoted, waits):
    with answering_with(json.dumps(answer).encode()) as url:
        line = rf"503 Service Unavailable{quoted} \(tries: {TRIES}\)"
        with pytest.raises(BadInput, match=line):
            client(url).post(*ASKED[0])
    assert len(waits) == TRIES - 1


@pytest.mark.parametrize(
    ("status", "content", "remedy"),
    [
        *((status, b"<html>", True) for status in (200, 301, 302, 307, 308, 404, 405)),
        (404, b'{"error": {"message": "no such model"}}', False),
        (400, b'{"detail": "no such model"}', False),
    ],
)
def test_a_url_of_another_place_is_to_be_corrected(status, content, remedy):
    with answering_with(content, status) as url, pytest.raises(BadInput) as raised:
        client(url).post("completions", {})
    assert ("; correct its url, which ends in /v1 on" in str(raised.value)) == remedy
    assert remedy or str(raised.value).endswith(": no such model")


@pytest.mark.parametrize("key", ["Bearer sk-secret", "sk-\nsecret", "sk-“secret”"])
def test_what_is_no_key_is_told_before_a_request(monkeypatch, key):
    monkeypatch.setenv("LLAMA_KEY", key)
    with pytest.raises(BadInput, match="variable LLAMA_KEY holds what no key has") as raised:
        client("http://127.0.0.1:1/v1", key="$LLAMA_KEY").post("completions", {})
    assert "secret" not in str(raised.value)


def test_no_character_of_a_servers_message_moves_the_cursor():
    marks = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA1), 0x200B, 0x202E, 0x2066, 0xD800]))
    error = {"error": {"message": f"bad{marks}value"}}
    answering = answering_with(json.dumps(error).encode(), 400)
    with answering as url, pytest.raises(BadInput, match=r"bad.*value") as raised:
        client(url).post("completions", {})
    assert str(raised.value).isprintable()


@pytest.mark.parametrize("spell", [str, str.upper, lambda code: code.replace("%2d", "-")])
def test_a_key_is_not_printed_in_other_letters_of_urls(spell, monkeypatch):
    monkeypatch.setenv("LLAMA_KEY", "sk-secret")
    key = spell("".join(f"%{ord(letter):02x}" for letter in "sk-secret"))
    error = {"error": {"message": f"no such key {key}"}}
    answering = answering_with(json.dumps(error).encode(), 401)
    with answering as url, pytest.raises(BadInput) as raised:
        client(url, key="$LLAMA_KEY").post("completions", {})
    assert str(raised.value).endswith("401 Unauthorized")


@contextmanager
def dripping(before: bytes) -> Iterator[str]:
    """A server that sends this, and then a blank every tenth of a second; yields its URL."""
    is_over = Event()

    class Handler(Quiet):
        def do_POST(self) -> None:
            self.wfile.write(before)
            try:
                while not is_over.wait(0.1):
                    self.wfile.write(b" ")
            except OSError:  # the client has gone
                is_over.set()

    with listening(Handler) as url:
        yield url
        is_over.set()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("before", [HEAD + b"X-Wait:", HEAD + b"\r\n", HEAD + b'\r\n{"choices":'])
def test_the_timeout_bounds_a_request_whose_answer_never_ends(before):
    with dripping(before) as url, pytest.raises(BadInput, match=r"no answer in 0\.5 s"):
        Client("llama", ServerParams(url=url, model="tiny", timeout=0.5), tries=1).post(*ASKED[0])


def test_half_a_surrogate_pair_is_replaced_wherever_it_stands():
    content = {f"{chr(code)}a": [f"b{chr(code)}c", chr(code)] for code in range(0xD800, 0xE000)}
    with answering_with(json.dumps({"choices": content, "whole": "\U0001f600"}).encode()) as url:
        answer = client(url).post(*ASKED[0])
    assert answer == {"choices": {"\ufffda": ["b\ufffdc", "\ufffd"]}, "whole": "\U0001f600"}


@pytest.mark.parametrize("kind", ["chat", "causal"])
@given(ending=st.none() | st.sampled_from(["stop", "length", "error", "abort"]) | st.text())
def test_only_a_text_that_ended_well_or_was_cut_is_an_answer(kind, ending):
    choice = {"message": {"content": "pain"}} if kind == "chat" else {"text": "pain"}
    answer = {"choices": [{**choice, "finish_reason": ending}]}
    is_answer = str(ending or "stop").lower() in (*ENDED, *CUT)
    assert read_text(answer, kind, "srv")[0] == ("pain" if is_answer else "")
    if ending in ("error", "abort", "content_filter"):
        assert not is_answer


def test_a_refusal_is_no_answer_whatever_text_is_beside_it():
    message = {"content": "pain", "refusal": "I cannot help with pain."}
    answer = {"choices": [{"message": message, "finish_reason": "stop"}]}
    assert read_text(answer, "chat", "srv") == ("", False)


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "trauma?"}]}
PIECES = st.lists(st.none() | st.text(), max_size=5)  # None: a thought


@pytest.mark.parametrize("as_part", [lambda text: {"type": "text", "text": text}, str])
@given(pieces=PIECES)
def test_the_parts_of_a_text_are_joined_without_its_thoughts(as_part, pieces):
    parts = [THOUGHT if text is None else as_part(text) for text in pieces]
    answer = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    assert read_text(answer, "chat", "srv")[0] == "".join(text or "" for text in pieces)
    assert bool(read_choice(answer["choices"][0])[0]) == (None in pieces)


def test_a_part_whose_text_is_none_is_no_empty_answer():
    parts = [{"type": "text", "text": {"value": "heart"}}]
    with pytest.raises(BadInput, match="its answer has no text"):
        read_text({"choices": [{"message": {"content": parts}}]}, "chat", "srv")


TEXT = {"text": "pain"}


@pytest.mark.parametrize(
    "answer",
    [
        *({"choices": [TEXT], "usage": usage} for usage in ([1], "many", {"total_tokens": "many"})),
        {"choices": [TEXT], "usage": {"total_tokens": float("inf")}},
        {"choices": [{**TEXT, "logprobs": {"top_logprobs": [{"pain": None}]}}]},
        {"choices": [{**TEXT, "logprobs": {"top_logprobs": [{"pain": "high"}]}}]},
        {"choices": [{**TEXT, "logprobs": {"top_logprobs": [["pain", -1.0]]}}]},
        {"choices": [{**TEXT, "logprobs": {"token_logprobs": 7, "tokens": 7}}]},
    ],
)
def test_what_a_server_adds_in_another_shape_is_left_out(answer):
    with answering_with(json.dumps(answer).encode()) as url:
        response = client(url).post("completions", {})
    assert read_text(response, "causal", "srv") == ("pain", False)
    assert read_top(response, "causal") == []
    assert read_echo(response, 2) is None


@pytest.mark.parametrize("content", [b"[" * 200_000, b'{"a":' * 200_000, b"[1]", b"", b"\xff"])
def test_an_answer_of_another_shape_is_one_line(content):
    with answering_with(content) as url, pytest.raises(BadInput, match=r"servers\.llama") as error:
        client(url).post("completions", {})
    assert "\n" not in str(error.value)


def test_a_servers_own_words_are_in_no_error():
    reason = "Bad: prompt about gout, Bearer sk-secret"
    with answering_with(b"", 400, reason) as url, pytest.raises(BadInput) as error:
        client(url).post("completions", {})
    assert str(error.value) == "servers.llama (127.0.0.1, completions): 400 Bad Request"


def test_a_served_model_is_its_name_and_its_whole_url(project, checkpoint):
    """Another path or name is another model, and nothing of one is taken for the other."""
    with serving(checkpoint) as (url, _):
        folder = fetched(project(url))
        hashes = {fingerprint([folder / RECORD])}
        for other in (url.replace("127.0.0.1", "localhost"), url.replace("/v1", "/b/v1")):
            project(other)
            with pytest.raises(BadInput, match=r"another url than .* then `medprobe repro`"):
                finder.find(folder, "causal", ENGINE)
            fetch_server("llama", load_params(), folder)
            hashes.add(fingerprint([folder / RECORD]))
        project(f"{url}/")  # the same
        fetch_server("llama", load_params(), folder)
        hashes.add(fingerprint([folder / RECORD]))
    assert len(hashes) == 3


def test_another_tokenizer_than_that_of_the_record_is_refused(project, checkpoint, tmp_path):
    folder = shutil.copytree(checkpoint, tmp_path / "tokenizer")
    with serving(checkpoint) as (url, _):
        model = fetched(project(url, tokenizer=str(folder)))
        finder.find(model, "causal", ENGINE)
        file = folder / "tokenizer.json"
        vocabulary = json.loads(file.read_text())
        names = [*vocabulary["model"]["vocab"]]
        ids = vocabulary["model"]["vocab"]
        ids[names[0]], ids[names[1]] = ids[names[1]], ids[names[0]]
        file.write_text(json.dumps(vocabulary))
        with pytest.raises(BadInput, match=r"another tokenizer than .* fetch-server@llama"):
            finder.find(model, "causal", ENGINE)


def test_a_key_in_params_is_refused_without_printing_it(project):
    project("http://127.0.0.1:1/v1", key="sk-secret")
    with pytest.raises(BadInput, match=r"servers.llama.key: String should match") as error:
        load_params()
    assert "sk-secret" not in str(error.value)


def write_model(folder, ability):
    """Write what the folder of a server has that gives one ability."""
    folder.mkdir(parents=True)
    (folder / RECORD).write_text("{}")
    model = PluginModel(backend="served", kinds=["causal"], abilities=[ability], remote=True)
    (folder / PLUGIN_MODEL).write_text(model.model_dump_json())


@pytest.mark.parametrize(
    ("terms", "host", "allowed", "refused"),
    [
        ("umls", "llm.example", {}, "the UMLS licence forbids"),
        ("physionet", "llm.example", {}, "PhysioNet forbids"),
        ("physionet", "llm.example", {"zero_retention": True}, "PhysioNet forbids"),
        ("unknown", "llm.example", {}, ""),
        ("physionet", "llm.example", {"own": True}, ""),
        ("umls", "127.0.0.1", {}, ""),
        ("umls", "llm.example", {"invented": True}, ""),
        ("open", "llm.example", {}, ""),
    ],
)
def test_licensed_prompts_do_not_go_to_others(terms, host, allowed, refused, project):
    settings = {name: value for name, value in allowed.items() if name != "invented"}
    folder = project(f"https://{host}/v1", methods={"likelihood": {"facts": {}}}, **settings)
    write_model(folder, "echo")
    about = Metadata("d", "c", "l", (), "acc_at_1", terms=terms, invented="invented" in allowed)
    Path("outputs/about").mkdir(parents=True)
    about.write(Path("outputs/about/facts.json"))
    with pytest.raises(BadInput) as error:  # without a refusal: there is no such benchmark
        prepare("llama", "likelihood", "facts", load_params())
    assert refused in str(error.value) if refused else "do not go to" not in str(error.value)


def test_a_method_that_needs_weights_is_refused_with_those_that_work(project):
    folder = project("http://127.0.0.1:1/v1", methods={"rank_change": {"facts": {}}})
    write_model(folder, "write")
    with pytest.raises(BadInput, match=r"rank_change on llama: .*choose one of: answering$"):
        prepare("llama", "rank_change", "facts", load_params())


@pytest.mark.parametrize(
    ("fault", "method", "reason"),
    [
        ("leaves out", "likelihood", "likelihood on llama: its backend cannot do what the"),
        ("leaves out", "rank_change", "weights: not by this backend); choose one of: answering"),
        ("other tokens", "answering", "answering on llama: the model's backend can give none"),
    ],
)
def test_a_model_that_cannot_be_asked_has_a_reason_in_place_of_a_result(
    fault, method, reason, project, checkpoint
):
    """The stage ends well, so that others go on; nothing counts the table."""
    chosen = {"forms": ["constrained"]} if method == "answering" else {}
    with serving(checkpoint, fault) as (url, served):
        fetched(project(url, methods={method: {"facts": chosen}}))
        write_benchmark()
        count = len(served.requests)
        probe("llama", method, "facts", params := load_params())
        assert len(served.requests) == count
    path = places.PREDICTIONS / f"llama/{method}/facts.parquet"
    assert reason in read_refusal(path) and pd.read_parquet(path).empty
    assert [*refusals(places.PREDICTIONS, params)] == [path]
    assert prediction_tables(places.PREDICTIONS, params) == []


def test_answering_takes_the_forms_that_are_given(project, checkpoint):
    with serving(checkpoint, "leaves out") as (url, _):
        method = Answering(fetched(project(url)), Answering.Settings(), ENGINE, 1)
        assert method.passes() == ["none-0-shot-free"]


def plan_of(method):
    params = load_params()
    [methods] = params.methods.values()
    params.methods[params.models.kind("llama")] = {method: methods[method]}
    return plan.requests(Stage("now", ["medprobe probe --model llama"], ()), params)


def test_requests_are_planned_and_more_than_allowed_are_not_begun(project, checkpoint):
    names = ("likelihood", "answering", "perplexity", "rank_change")
    methods = {name: {"facts": {}} for name in names}
    with serving(checkpoint) as (url, served):
        folder = project(url, methods=methods, max_requests=10)
        assert plan_of("likelihood") == ""  # before it was asked
        write_benchmark()
        fetched(folder)
        # 4 queries of 4 prompts; 4 names
        too_many = "it would send 16 requests, max_requests: 10 is allowed"
        assert too_many in plan_of("likelihood")
        assert "it would send 20 requests" in plan_of("answering")
        assert plan_of("perplexity") == "4 requests"
        assert "not asked: rank_change on llama" in plan_of("rank_change")
        count = len(served.requests)
        probe("llama", "likelihood", "facts", load_params())
        reason = read_refusal(places.PREDICTIONS / "llama/likelihood/facts.parquet")
        assert too_many in reason
        assert len(served.requests) == count
        fetched(
            project(url, methods=methods, max_requests=16)
        )  # what is allowed is no part of the record
        probe("llama", "likelihood", "facts", load_params())
        count = len(served.requests)
        assert not read_refusal(places.PREDICTIONS / "llama/likelihood/facts.parquet")
        fetched(project(url, methods=methods, max_requests=17))
        assert plan_of("likelihood") == "0 requests"
        asked = len(served.requests) - count
        probe("llama", "likelihood", "facts", load_params())
        assert len(served.requests) == count + asked  # its parts are kept


def write_benchmark():
    tables = BenchmarkTables(probing.queries(answers=NAMES[:2]), probing.candidates(NAMES))
    tables.write(places.BENCHMARKS / "facts")
    about = Metadata("d", "c", "l", (), "acc_at_1", terms="open")
    about.write(places.ABOUT / "facts.json")


def fetched(folder):
    fetch_server("llama", load_params(), folder)
    return folder


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("127.0.0.1:8000/v1", "it begins with http:// or https://"),
        ("llm.example", "it begins with http:// or https://"),
        *((f"http://{host}/v1", "expected an address") for host in ("a:80000", "a:b", "[::1:80")),
        (
            "https://x.example/openai?api-version=2024-06-01",
            "without ? .*Azure's ends in /openai/v1",
        ),
        ("https://x.example/v1#top", "without ?"),
        ("https://me:passphrase@x.example/v1", "write key: .VARIABLE"),
        ("https://x.example/v 1", "expected an address such as"),
        ("http://", "expected an address such as"),
    ],
)
def test_what_is_no_address_is_said_in_words_without_it(project, url, says):
    project(url)
    with pytest.raises(BadInput, match=rf"servers\.llama\.url: .*{says}") as error:
        load_params()
    assert "passphrase" not in str(error.value) and "x.example" not in str(error.value)
