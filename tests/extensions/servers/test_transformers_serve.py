"""README's example with a server, `transformers serve`, over a tiny chat model: it gives answers
and no numbers."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import ROOT, probing, tiny
from medprobe.backends import read_plugin_model
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, load_params
from medprobe.extensions.chat.methods.answering import Answering
from medprobe.extensions.servers.stages.fetch_server import LACKS, fetch_server
from medprobe.pipeline.probing import prepare

TEMPLATE = (
    "{% for m in messages %}{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}{{ bos_token }}{% endif %}"
)
README = (ROOT / "README.md").read_text(encoding="utf-8")
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
ENGINE = EngineParams(device="cpu")


@pytest.fixture
def server(tiny_model, tmp_path):
    """The URL of a server, and the checkpoint that it serves."""
    folder = tiny.with_template(tiny_model("gpt2"), tmp_path / "chat", TEMPLATE)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = Path(sys.executable).with_name("transformers")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    options = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    process = subprocess.Popen(
        [command, "serve", folder, *options],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        log: list[str] = []
        for line in process.stderr:  # until it says that it is up; ends if it fails
            log.append(line)
            if "Uvicorn running" in line:
                break
        else:
            pytest.fail("".join(log))
        yield f"http://127.0.0.1:{port}/v1", folder
    finally:
        process.kill()
        process.communicate()


def test_free_answers_are_asked_and_left_out_numbers_are_refused(server, tmp_path, monkeypatch):
    url, checkpoint = server
    monkeypatch.chdir(tmp_path)
    [example] = re.findall(r"```yaml\n(servers:.*?)```", README, re.DOTALL)
    for written, served in (("http://127.0.0.1:8000/v1", url), (MODEL, str(checkpoint))):
        assert written in example
        example = example.replace(written, served)
    rest = "seed: 1\nengine: {precision: float32}\nrewire: {}\nscore: {}\ntrack: {}\n"
    rest += "methods: {chat: {judgment: {facts: {}}}}\n"
    Path("params.yaml").write_text(rest + example)
    folder = Path("outputs/models/llama")
    fetch_server("llama", params := load_params(), folder)
    model = read_plugin_model(folder)
    assert model.abilities == ("write",) and model.lacks["top_logprobs"] == LACKS
    method = Answering(folder, Answering.Settings(forms=["free"]), ENGINE, 1)
    task = probing.task(probing.queries(), probing.candidates(), 10)
    assert method.passes() == ["chat-0-shot-free"]
    answers = method.predict(task, "chat-0-shot-free")
    assert len(answers) == len(task.queries) and set(answers["score"]) == {1.0}
    with pytest.raises(BadInput, match=r"judgment on llama: .*left out the numbers.*: answering"):
        prepare("llama", "judgment", "facts", params)
