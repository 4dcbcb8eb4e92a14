"""What medprobe takes of the hub: whole checkpoints, completed, found again without a network."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import transformers
from huggingface_hub import constants
from transformers.tokenization_utils_tokenizers import TokenizersBackend

from helpers import FolderOf
from helpers.local_hub import COMMIT, hub
from medprobe.core.checkpoints import DESCRIPTION, matching, needed_of
from medprobe.core.errors import BadInput
from medprobe.core.params import HubModel
from medprobe.sources.hub import fetch_snapshot


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a hub's models; the local cache is empty."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    (tmp_path / "served").mkdir()
    with hub(tmp_path / "served") as address:
        monkeypatch.setattr(constants, "ENDPOINT", address)
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield tmp_path / "served"


def checkpoint(tiny_model: FolderOf, folder: Path, *, safe: bool = True) -> Path:
    """A checkpoint in shards, with a template and what no method needs."""
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_model("llama"))
    model.save_pretrained(folder, max_shard_size="40KB")
    for file in tiny_model("llama").glob("*token*"):
        shutil.copy(file, folder)
    if not safe:
        for file in folder.glob("*.safetensors*"):
            new = file.name.replace("model", "pytorch_model").replace(".safetensors", ".bin")
            text = file.read_bytes().replace(b"model-", b"pytorch_model-")
            file.with_name(new).write_bytes(text.replace(b".safetensors", b".bin"))
            file.unlink()
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    for other in ("README.md", "run.py", "tf_model.h5", "onnx/model.onnx", "old/config.json"):
        (folder / other).parent.mkdir(exist_ok=True)
        (folder / other).write_text("other")
    return folder


@pytest.mark.parametrize(("name", "safe"), [("lab/big", True), ("big", False)])
def test_a_copy_that_lacks_any_file_is_completed_and_found_offline(
    served: Path, tiny_model: FolderOf, name: str, *, safe: bool
) -> None:
    checkpoint(tiny_model, served / name, safe=safe)
    model = HubModel(hub=name)
    folder = fetch_snapshot(model, offline=False)
    whole = needed_of(served / name)
    assert [*needed_of(folder)] == whole
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} == {*whole}
    assert len(whole) > 6  # a configuration, a tokenizer, a template, an index and shards
    for file in whole:
        (folder / file).unlink()  # as after a download that another program did not end
        assert (fetch_snapshot(model, offline=False) / file).is_file(), file
    for file in whole:
        (folder / file).write_bytes((folder / file).read_bytes()[:-1])  # as on a full disk
        fetch_snapshot(model, offline=False)
        assert (folder / file).read_bytes() == (served / name / file).read_bytes(), file
    for revision in (None, "main", COMMIT):
        pinned = model.model_copy(update={"revision": revision})
        assert fetch_snapshot(pinned, offline=True) == folder
    shard = next(file for file in whole if "-of-" in file)
    (folder / shard).unlink()
    with pytest.raises(BadInput, match=f"{name}: its copy in the hub's local cache lacks {shard}"):
        fetch_snapshot(model, offline=True)


def test_a_whole_copy_serves_while_the_hub_does_not_answer(
    served: Path, tiny_model: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint(tiny_model, served / "lab/big")
    folder = fetch_snapshot(HubModel(hub="lab/big"), offline=False)
    shutil.rmtree(served / "lab")
    assert fetch_snapshot(HubModel(hub="lab/big"), offline=False) == folder
    with pytest.raises(BadInput, match="lab/other: the hub has no such model"):
        fetch_snapshot(HubModel(hub="lab/other"), offline=False)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (["m-Q4.gguf", "m-Q8.gguf"], r"GGUF files and no checkpoint \(m-Q4.gguf, m-Q8.gguf\)"),
        (["config.json", "m.gguf"], "GGUF files and no checkpoint"),
        (["a/config.json", "b/config.json"], r"no checkpoint, but some in its subfolders \(a, b\)"),
        (["config.json", "tf_model.h5"], r"no weights of PyTorch \(it has tf_model.h5\)"),
        (["README.md"], "no checkpoint: no config.json"),
        (["config.json", "model.safetensors.index.json"], "no index of weights"),
    ],
)
def test_what_is_no_checkpoint_is_named(served: Path, files: list[str], says: str) -> None:
    for file in files:
        (served / "lab/m" / file).parent.mkdir(parents=True, exist_ok=True)
        (served / "lab/m" / file).write_text("{}")
    with pytest.raises(BadInput, match=rf"lab/m: .*{says}"):
        fetch_snapshot(HubModel(hub="lab/m"), offline=False)


def test_shards_that_the_hub_lacks_are_named(served: Path, tiny_model: FolderOf) -> None:
    folder = checkpoint(tiny_model, served / "lab/m")
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    shard = sorted(index["weight_map"].values())[0]
    (folder / shard).unlink()
    with pytest.raises(BadInput, match=f"lab/m: the hub lacks its {shard}"):
        fetch_snapshot(HubModel(hub="lab/m"), offline=False)


def test_each_vocabulary_of_a_fast_tokenizer_is_taken() -> None:
    classes = transformers.models.auto.tokenization_auto.TOKENIZER_MAPPING_NAMES.values()
    kinds = [getattr(transformers, name, None) for name in {*classes} if name]
    fast = [k for k in kinds if isinstance(k, type) and issubclass(k, TokenizersBackend)]
    assert len(fast) > 20
    names = {file for kind in fast for file in kind.vocab_files_names.values()}
    assert matching(names, DESCRIPTION) == sorted(names)


@pytest.mark.parametrize(
    ("written", "name", "revision"),
    [
        ("gpt2", "gpt2", None),
        ("lab/bert-base_1.5", "lab/bert-base_1.5", None),
        ("https://huggingface.co/lab/bert", "lab/bert", None),
        ("https://huggingface.co/gpt2/", "gpt2", None),
        ("huggingface.co/lab/bert/tree/main?library=x#y", "lab/bert", "main"),
        ("https://hf.co/lab/m-GGUF/blob/v2/m-Q4.gguf", "lab/m-GGUF", "v2"),
        ("http://mirror.example/lab/bert", "lab/bert", None),
    ],
)
def test_an_address_is_a_name(
    written: str, name: str, revision: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.example/")
    model = HubModel(hub=written)
    assert (model.hub, model.revision) == (name, revision)
