"""Checkpoints that the fetch stage copies or downloads, or refuses."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
import yaml
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

from helpers import ROOT, FolderOf
from helpers.needed import NEEDED
from medprobe.cli import main
from medprobe.core import lineage
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.engine.formats import find_other_base, merge
from medprobe.engine.load import load
from medprobe.pipeline.stages import fetch as stage
from medprobe.pipeline.stages.fetch import fetch


def params(kind: str = "masked", folder: Path | None = None, **more: Any) -> Params:
    content = {"models": {kind: {"mine": {}}}, **more}
    if folder:
        content["folders"] = {"mine": folder}
    return Params.model_validate(content)


def same(first: Path, other: Path) -> bool:
    """Have two checkpoints the same weights?"""
    weights = [load_file(folder / "model.safetensors") for folder in (first, other)]
    return weights[0].keys() == weights[1].keys() and all(
        torch.equal(weights[0][name], weights[1][name]) for name in weights[0]
    )


def test_a_folder_is_copied_without_its_other_files(tiny_model: FolderOf, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(tiny_model("bert"), source)
    (source / "modeling_evil.py").write_text("raise SystemExit")
    for name, auto_class in (
        ("config", "AutoModelForMaskedLM"),
        ("tokenizer_config", "AutoTokenizer"),
    ):
        content = json.loads((source / f"{name}.json").read_text())
        content["auto_map"] = {auto_class: "modeling_evil.Evil"}  # which is not followed
        (source / f"{name}.json").write_text(json.dumps(content))
    (source / "tf_model.h5").write_bytes(b"weights of another framework")
    fetch("mine", params(folder=source), tmp_path / "out")
    assert same(source, tmp_path / "out")
    load(tmp_path / "out", "masked")
    assert not {"modeling_evil.py", "tf_model.h5"} & {p.name for p in (tmp_path / "out").iterdir()}


def vocabulary_alone(source: Path, folder: Path) -> None:
    """A checkpoint as BERT's first ones came: with vocab.txt, and no word about its tokenizer."""
    shutil.copytree(source, folder)
    vocabulary = load(source, "masked").tokenizer.get_vocab()
    (folder / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()


@pytest.mark.parametrize("has_description", [False, True])
def test_a_cased_model_can_read_in_lower_case_under_every_head_and_after_rewiring(
    tiny_model: FolderOf, tmp_path: Path, has_description: bool
) -> None:
    """As the released code has `do_lower_case=True` for each checkpoint."""
    source = tmp_path / "source"
    (shutil.copytree if has_description else vocabulary_alone)(tiny_model("bert-cased"), source)
    released = transformers.AutoTokenizer.from_pretrained(
        source, do_lower_case=True, config=transformers.AutoConfig.from_pretrained(source)
    )
    for lower_case in (True, False):
        facts = {"models": {"masked": {"mine": {"lower_case": lower_case}}}}
        out = tmp_path / str(lower_case)
        fetch("mine", Params.model_validate(facts | {"folders": {"mine": source}}), out)
        assert same(source, out)
        for head in ("masked", "encoder", "classifier"):
            model = load(out, head)
            for text in ("Aspirin may treat Café [MASK] .", "BRX2 É"):
                is_released = model.tokenizer(text)["input_ids"] == released(text)["input_ids"]
                assert is_released == lower_case
            assert model.max_length == load(source, head).max_length
        model.tokenizer.save_pretrained(out)  # as rewiring does
        again = load(out, "masked").tokenizer
        assert (again.tokenize("Aspirin") == released.tokenize("Aspirin")) == lower_case


def test_fetching_follows_the_models_that_are_lower_cased(
    tiny_model: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`check` writes them to the file on which dvc.yaml lets both stages depend."""
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    file = "outputs/lower_case.json"
    assert file in stages["check"]["outs"]
    assert file in stages["fetch"]["deps"] and file in stages["fetch-folder"]["do"]["deps"]
    monkeypatch.chdir(tmp_path)
    content = {**NEEDED, "folders": {"mine": "m"}, "methods": {"masked": {}}}
    for facts, expected in (({"lower_case": True}, ["mine"]), ({}, [])):
        models = {"models": {"masked": {"mine": facts}}}
        Path("params.yaml").write_text(yaml.safe_dump(content | models))
        assert CliRunner().invoke(main, ["check"]).exit_code == 0
        assert json.loads(Path(file).read_text()) == expected


def test_lower_case_is_for_word_pieces_of_fetched_checkpoints(
    tiny_model: FolderOf, tmp_path: Path
) -> None:
    facts = {"models": {"masked": {"mine": {"lower_case": True}}}}
    wanted = Params.model_validate(facts | {"folders": {"mine": tiny_model("roberta")}})
    with pytest.raises(BadInput, match=r"lower_case is for BERT's word pieces, its .* BPE"):
        fetch("mine", wanted, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_had_is_one_clear_line_and_leaves_nothing(
    tiny_model: FolderOf, tmp_path: Path
) -> None:
    def refused(wanted: Params, says: str, name: str = "mine") -> None:
        with pytest.raises(BadInput, match=says) as caught:
            fetch(name, wanted, tmp_path / "out")
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "out").exists()

    empty = tmp_path / "empty"
    empty.mkdir()
    refused(params(folder=tmp_path / "nowhere"), "nowhere: no such model folder")
    refused(params(folder=tiny_model("bert") / "config.json"), "a file that is not a .gguf file")
    refused(params(folder=empty), r"empty: it holds no checkpoint: no config\.json")
    causal = params("causal", tiny_model("bert"))
    refused(causal, "serves as masked or encoder, not as causal")
    refused(params(folder=tiny_model("encoder")), "not as masked")
    refused(params(), "neither fetch nor folders has a model 'mine'")
    near = params(folders={"mine-2": empty})
    refused(near, r"'mine' \(did you mean 'mine-2'\?\)")
    refused(params(folder=empty), "has a model 'yours'", "yours")


def test_a_hub_name_offline_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    wanted = params(fetch={"mine": {"hub": "nobody/nothing"}}, engine={"offline": True})
    start = time.monotonic()
    with pytest.raises(BadInput, match="nobody/nothing: not in the hub's local cache"):
        fetch("mine", wanted, tmp_path / "out")
    assert time.monotonic() - start < 20, "no retries"
    assert not (tmp_path / "out").exists()


def test_a_cached_hub_name_needs_no_network(
    tiny_model: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    home = tmp_path / "hub/models--somebody--tiny"
    shutil.copytree(tiny_model("bert"), home / "snapshots/abc")
    (home / "refs").mkdir()
    (home / "refs/main").write_text("abc")
    wanted = params(fetch={"mine": {"hub": "somebody/tiny"}}, engine={"offline": True})
    fetch("mine", wanted, tmp_path / "out")
    assert same(tiny_model("bert"), tmp_path / "out")


def lora(base: Path, folder: Path) -> Path:
    """A folder with an adapter of a tiny GPT-2 that changes what it says."""
    peft = pytest.importorskip("peft")
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    config = peft.LoraConfig(r=2, target_modules=["c_attn"], task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(model, config)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                weight.copy_(torch.randn_like(weight))
    adapted.save_pretrained(folder)
    return folder


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        output: torch.Tensor = model(torch.tensor([[3, 4, 5]])).logits
    return output


def test_an_adapter_beside_a_checkpoint_is_merged(tiny_model: FolderOf, tmp_path: Path) -> None:
    adapter = lora(tiny_model("gpt2"), tmp_path / "adapter")
    source = tmp_path / "source"
    shutil.copytree(tiny_model("gpt2"), source)
    shutil.copytree(adapter, source, dirs_exist_ok=True)
    fetch("mine", params("causal", source), tmp_path / "out")
    merged = load(tmp_path / "out", "causal").model
    import peft

    base = transformers.AutoModelForCausalLM.from_pretrained(tiny_model("gpt2"))
    expected = logits(peft.PeftModel.from_pretrained(base, adapter).eval())
    torch.testing.assert_close(logits(merged), expected, atol=1e-4, rtol=1e-4)
    plain = logits(load(tiny_model("gpt2"), "causal").model)
    assert (logits(merged) - plain).abs().max() > 0.01
    assert not (tmp_path / "out/adapter_config.json").exists()


def test_an_adapter_alone_names_what_it_belongs_to(tiny_model: FolderOf, tmp_path: Path) -> None:
    adapter = lora(tiny_model("gpt2"), tmp_path / "adapter")
    with pytest.raises(BadInput, match=f"adapter: an adapter without .* name {tiny_model('gpt2')}"):
        fetch("mine", params("causal", adapter), tmp_path / "out")


@pytest.mark.parametrize(
    "settings",
    [{}, {"modules_to_save": ["embed_tokens", "lm_head"]}, {"trainable_token_indices": [3]}],
)
def test_an_adapter_brings_its_tokens_tokenizer_and_template(
    tiny_model: FolderOf, tmp_path: Path, settings: dict[str, Any]
) -> None:
    peft = pytest.importorskip("peft")
    base = tmp_path / "source"
    shutil.copytree(tiny_model("llama"), base)
    (base / "chat_template.jinja").write_text("base {{ messages }}")
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    tokenizer.add_tokens(["<user>", "<bot>"])
    tokenizer.chat_template = "adapter {{ messages }}"
    torch.manual_seed(1)
    model.resize_token_embeddings(len(tokenizer))
    config = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=2, **settings)
    adapted = peft.get_peft_model(model, config).eval()
    with torch.no_grad():
        for weight in adapted.parameters():
            if weight.requires_grad:
                weight.add_(torch.randn_like(weight) * 0.3)
    expected = logits(adapted)
    adapted.save_pretrained(tmp_path / "adapter")
    tokenizer.save_pretrained(tmp_path / "adapter")
    shutil.copytree(tmp_path / "adapter", base, dirs_exist_ok=True)
    fetch("mine", params("chat", base), tmp_path / "out")
    merged = load(tmp_path / "out", "causal")
    torch.testing.assert_close(logits(merged.model), expected, atol=1e-4, rtol=1e-4)
    assert merged.tokenizer("<bot>", add_special_tokens=False)["input_ids"] == [len(tokenizer) - 1]
    assert merged.tokenizer.chat_template == "adapter {{ messages }}"


@pytest.mark.parametrize(
    ("named", "other"),
    [
        ("lab/base", None),
        ("/home/me/models/base", None),
        (None, None),
        ("lab/base-instruct", "lab/base-instruct"),
        ("../models/other", "../models/other"),
    ],
)
def test_another_base_than_the_adapter_names_is_told(
    tmp_path: Path, named: str | None, other: str | None
) -> None:
    content = {"peft_type": "LORA", "base_model_name_or_path": named}
    (tmp_path / "adapter_config.json").write_text(json.dumps(content))
    assert find_other_base(tmp_path, "lab/base") == other


def test_an_adapter_of_another_checkpoint_is_refused(tiny_model: FolderOf, tmp_path: Path) -> None:
    adapter = lora(tiny_model("gpt2"), tmp_path / "adapter")
    source = tmp_path / "source"
    shutil.copytree(tiny_model("llama"), source)
    shutil.copytree(adapter, source, dirs_exist_ok=True)
    with pytest.raises(BadInput, match="source: it does not fit this llama checkpoint"):
        fetch("mine", params("causal", source), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    weights = load_file(adapter / "adapter_model.safetensors")
    name = sorted(weights)[0]
    weights[name.replace("h.0", "h.7")] = weights.pop(name)
    save_file(weights, adapter / "adapter_model.safetensors")
    shutil.copytree(tiny_model("gpt2"), tmp_path / "other")
    shutil.copytree(adapter, tmp_path / "other", dirs_exist_ok=True)
    with pytest.raises(BadInput, match="weights of one that the other has not"):
        fetch("mine", params("causal", tmp_path / "other"), tmp_path / "out")
    path = tmp_path / "other/adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(BadInput, match=r"safetensors cannot be read: .*; fetch the adapter again"):
        fetch("mine", params("causal", tmp_path / "other"), tmp_path / "out")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("{}", "does not name a kind of adapter"),
        ('{"peft_type": "IA3"}', "an adapter of kind IA3; only LORA"),
        ('{"peft_type": "LORA"}', "it has no adapter_model.safetensors"),
    ],
)
def test_what_is_no_lora_adapter_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, problem: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    (tmp_path / "adapter_config.json").write_text(config)
    with pytest.raises(BadInput, match=problem):
        merge(tmp_path / "base", tmp_path)


def test_an_adapter_of_the_hub_is_fetched_with_its_model(
    tiny_model: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    merged: list[tuple[Path, Path]] = []
    monkeypatch.setattr(stage, "merge", lambda folder, adapter: merged.append((folder, adapter)))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    for name, files in (("base", tiny_model("gpt2")), ("lora", None)):
        home = tmp_path / f"hub/models--somebody--{name}"
        (home / "refs").mkdir(parents=True)
        (home / "refs/main").write_text("abc")
        (home / "snapshots/abc").mkdir(parents=True)
        if files:
            shutil.copytree(files, home / "snapshots/abc", dirs_exist_ok=True)
        else:
            for file in ("adapter_config.json", "adapter_model.safetensors"):
                (home / "snapshots/abc" / file).write_text('{"peft_type": "LORA"}')
    origin = {"hub": "somebody/base", "adapter": {"hub": "somebody/lora"}}
    wanted = params("causal", fetch={"mine": origin}, engine={"offline": True})
    fetch("mine", wanted, tmp_path / "out")
    [(_, adapter)] = merged
    assert adapter.parts[-3] == "models--somebody--lora"


def test_a_gated_model_names_the_licence_and_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError

    def refuse(*args: Any, **more: Any) -> None:
        raise GatedRepoError.__new__(GatedRepoError)

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    wanted = params(fetch={"mine": {"hub": "somebody/gated"}})
    with pytest.raises(BadInput, match=r"accept it at https://\S+/somebody/gated, .* HF_TOKEN"):
        fetch("mine", wanted, tmp_path / "out")


def test_no_token_is_in_an_error_or_in_lineage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub
    from huggingface_hub import constants

    def refuse(*args: Any, **more: Any) -> None:
        raise OSError("401 for https://me:passphrase@hub.example/api with Bearer hf_madeup")

    monkeypatch.setenv("HF_TOKEN", "hf_madeup")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    with pytest.raises(BadInput, match=r"401 for https://hub\.example/api") as refusal:
        fetch("mine", params(fetch={"mine": {"hub": "somebody/model"}}), tmp_path / "out")
    out = tmp_path / "table"
    out.write_text("")
    with lineage.recorded(tmp_path / "record.json", out, {}):
        pass
    texts = str(refusal.value) + (tmp_path / "record.json").read_text()
    assert "hf_madeup" not in texts and "passphrase" not in texts
