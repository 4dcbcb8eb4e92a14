"""The same served model has the same fingerprint however it is computed; another one has not."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from helpers import FolderOf, probing, tiny
from helpers.server import serving
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import load_params
from medprobe.core.servers import ServerParams
from medprobe.core.tables import BenchmarkTables, Metadata
from medprobe.extensions.servers.client import Client
from medprobe.extensions.servers.fingerprint import (
    FINGERPRINT,
    OPENINGS,
    RECORD,
    Fingerprint,
    check_answers,
    count_differing,
    is_same,
    take,
)
from medprobe.extensions.servers.stages.fetch_server import fetch_server
from medprobe.pipeline.doctor import list_models
from medprobe.pipeline.stages.probe import probe

NOVEMBER = 1793707200.0  # noon of 3 November 2026, in seconds since 1970
OTHER = r"servers.llama: this server is not the model of .* 20\d\d: (\d+) of 32 answers differ; run"
ASKED, LATER = "Velotrine treats [Y] .", "SNCA was mapped to [Y] ."
PARAMS = """\
seed: 1
engine: {precision: float32, device: cpu}
rewire: {}
score: {}
track: {}
models: {causal: {llama: {}}}
methods: {causal: {answering: {facts: {forms: [free]}}}}
benchmarks: {table: {facts: {}}}
"""


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A checkpoint, and four others of its architecture."""
    folder = tmp_path_factory.mktemp("checkpoints")
    return [tiny.model("gpt2", folder / str(seed), seed) for seed in range(5)]


def client(url: str) -> Client:
    return Client("llama", ServerParams(url=url, model="tiny"), clock=lambda: NOVEMBER)


def taken(checkpoint: Path, batch: int = 1, dtype: torch.dtype = torch.float32) -> Fingerprint:
    """The fingerprint of a server that is started for it alone."""
    with serving(checkpoint) as (url, served):
        served.batch = batch
        served.model.model.to(dtype)
        return take(client(url), "causal")


def quotes_nothing(line: str, old: Fingerprint) -> bool:
    texts = [*OPENINGS, *old.answers]
    return "\n" not in line and not any(text in line for text in texts if len(text) > 9)


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.mark.full
def test_restarts_threads_and_batch_sizes_change_no_answer(checkpoints: list[Path]) -> None:
    with threads(1):
        old = taken(checkpoints[0])
    assert len(old.answers) == 32 and all(old.answers)
    for count, batch in ((2, 1), (1, 7)):
        with threads(count):
            new = taken(checkpoints[0], batch)
        assert count_differing(old, new) == 0


def test_a_lower_precision_changes_few_answers(checkpoints: list[Path]) -> None:
    old = taken(checkpoints[0])
    new = taken(checkpoints[0], dtype=torch.bfloat16)
    assert is_same(old, new)


@pytest.mark.full
def test_another_checkpoint_behind_the_url_is_found_each_time(checkpoints: list[Path]) -> None:
    with serving(checkpoints[0]) as (url, served):
        mine = client(url)
        old = take(mine, "causal")
        record = {"kind": "causal", FINGERPRINT: old.as_json()}
        check_answers(mine, record)
        assert len(served.requests) == 2 * len(OPENINGS)
        for other in checkpoints[1:]:
            served.load(other)
            with pytest.raises(BadInput, match="is not the model of 3 November 2026: ") as error:
                check_answers(mine, record)
            assert quotes_nothing(str(error.value), old)
        served.load(checkpoints[0])
        check_answers(mine, record)


@pytest.fixture
def project(working_folder: Path) -> FolderOf:
    """`project(url)` writes params.yaml with a server, and returns its model's folder."""

    def make(url: str) -> Path:
        section = json.dumps({"llama": {"url": url, "model": "tiny"}})
        Path("params.yaml").write_text(f"{PARAMS}servers: {section}\n")
        return Path("outputs/models/llama")

    return make


def ask(prompt: str) -> None:
    """Probe the model on a prompt."""
    tables = BenchmarkTables(probing.queries([prompt]), probing.candidates())
    tables.write(places.BENCHMARKS / "facts")
    Metadata("d", "c", "l", (), "acc_at_1", terms="open").write(places.ABOUT / "facts.json")
    probe("llama", "answering", "facts", load_params())


@pytest.mark.slow
def test_only_another_model_makes_results_stale(project: FolderOf, checkpoints: list[Path]) -> None:
    with serving(checkpoints[0], memory={}) as (url, served):
        folder = project(url)
        fetch_server("llama", params := load_params(), folder)
        record = (folder / RECORD).read_bytes()
        served.model.model.bfloat16()
        ask(ASKED)
        assert list_models(params)[0]["origin"] == "server 127.0.0.1, answers"
        fetch_server("llama", params, folder)
        assert (folder / RECORD).read_bytes() == record

        served.load(checkpoints[1])
        count = len(served.requests)
        with pytest.raises(BadInput, match=OTHER):
            ask(LATER)
        assert not [body for body in served.requests[count:] if served.is_about(body, "SNCA")]
        assert "127.0.0.1, this server is not" in list_models(params)[0]["origin"]
        ask(ASKED)  # all its parts are there
        fetch_server("llama", params, folder)
        assert (folder / RECORD).read_bytes() != record
        ask(LATER)


def test_a_record_without_a_fingerprint_is_made_again(
    project: FolderOf, checkpoints: list[Path]
) -> None:
    with serving(checkpoints[0], memory={}) as (url, _):
        folder = project(url)
        fetch_server("llama", load_params(), folder)
        record = json.loads((folder / RECORD).read_text())
        del record["fingerprint"]
        (folder / RECORD).write_text(json.dumps(record))
        with pytest.raises(BadInput, match="its record has no fingerprint; run"):
            ask(ASKED)
        for content in (json.dumps(record), "{"):
            (folder / RECORD).write_text(content)
            fetch_server("llama", load_params(), folder)
            ask(ASKED)
