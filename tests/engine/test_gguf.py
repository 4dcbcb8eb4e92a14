"""A GGUF file is a checkpoint with the same numbers, in `load` and under `folders`."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import transformers

from medprobe import load, probe
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.engine import formats
from medprobe.pipeline.stages.fetch import fetch

writer_of = pytest.importorskip("gguf", reason="the extra gguf is not installed")
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}\n{% endfor %}"
NAMES = {  # of a Llama's weights, as llama.cpp has them
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write(folder: Path, path: Path) -> None:
    """Write a Llama checkpoint with byte-level pairs as a GGUF file, in float32."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    pieces = json.loads((folder / "tokenizer.json").read_text())["model"]
    config, file = model.config, writer_of.GGUFWriter(path, "llama")
    file.add_context_length(config.max_position_embeddings)
    file.add_embedding_length(config.hidden_size)
    file.add_block_count(config.num_hidden_layers)
    file.add_feed_forward_length(config.intermediate_size)
    file.add_head_count(config.num_attention_heads)
    file.add_head_count_kv(config.num_key_value_heads)
    file.add_layer_norm_rms_eps(config.rms_norm_eps)
    file.add_rope_freq_base(config.rope_parameters["rope_theta"])
    file.add_vocab_size(config.vocab_size)
    file.add_tokenizer_model("gpt2")
    tokens = sorted(pieces["vocab"], key=pieces["vocab"].get)
    tokens += [f"<unused{i}>" for i in range(config.vocab_size - len(tokens))]
    file.add_token_list(tokens)
    file.add_token_types([1] * len(tokens))
    file.add_token_merges([" ".join(pair) for pair in pieces["merges"]])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    file.add_bos_token_id(tokenizer.bos_token_id)
    file.add_eos_token_id(tokenizer.eos_token_id)
    file.add_chat_template(TEMPLATE)
    for name, weight in model.state_dict().items():
        layer, stem = "", name.removesuffix(".weight")
        if stem.startswith("model.layers."):
            _, _, number, stem = stem.split(".", 3)
            layer = f"blk.{number}."
        values = weight.float().numpy()
        if "q_proj" in stem or "k_proj" in stem:  # llama.cpp has the pairs of rotation side by side
            heads = config.num_attention_heads if "q_" in stem else config.num_key_value_heads
            shape = (heads, 2, len(values) // heads // 2, *values.shape[1:])
            values = values.reshape(shape).swapaxes(1, 2).reshape(values.shape)
        file.add_tensor(f"{layer}{NAMES[stem]}.weight", np.ascontiguousarray(values))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


@pytest.fixture(scope="module")
def checkpoint(tiny_model, tmp_path_factory):
    """A tiny Llama with byte-level pairs, as Llama 3 and SmolLM have."""
    folder = tmp_path_factory.mktemp("gguf") / "llama"
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model("gpt2"))
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def file(checkpoint, tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write(checkpoint, path)
    return path


def test_a_gguf_file_has_the_numbers_of_its_checkpoint(file, checkpoint):
    model = load(file)
    assert model.kinds == ("chat", "causal")
    ours = transformers.AutoModelForCausalLM.from_pretrained(model.folder)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(checkpoint)
    ids = torch.tensor([[5, 9, 12, 7, 30]])
    with torch.inference_mode():
        torch.testing.assert_close(ours(ids).logits, theirs(ids).logits)
    facts = pd.DataFrame({"subject": ["Aspirin"], "relation": ["treats"], "object": ["pain"]})
    prompts = {"treats": "[X] treats [Y] ."}
    found = [
        probe(each, facts, "perplexity", prompts=prompts, bootstrap=1).predictions
        for each in (model, load(checkpoint))
    ]
    pd.testing.assert_frame_equal(*found)


def test_a_gguf_file_can_be_in_folders(file, tmp_path):
    params = Params(folders={"mine": file}, models={"chat": {"mine": {}}})
    fetch("mine", params, tmp_path / "mine")
    assert (tmp_path / "mine/model.safetensors").is_file()
    masked = Params(folders={"mine": file}, models={"masked": {"mine": {}}})
    with pytest.raises(BadInput, match="serves as chat or causal, not as masked"):
        fetch("mine", masked, tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("package", ["accelerate", "gguf"])
def test_a_missing_package_is_named_with_its_extra(file, monkeypatch, package):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else name)
    with pytest.raises(BadInput, match=rf"package {package} is not there; .*medprobe\[gguf\]"):
        load(file)


def test_other_files_are_one_line(file, tmp_path):
    with pytest.raises(BadInput, match="no such file"):
        load(tmp_path / "none.gguf")
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(BadInput, match="not a GGUF file"):
        load(tmp_path / "text.gguf")
    (tmp_path / "half.gguf").write_bytes(file.read_bytes()[:3000])
    with pytest.raises(BadInput, match="transformers cannot read it") as error:
        load(tmp_path / "half.gguf")
    assert "\n" not in str(error.value)
    assert formats.is_gguf(file) and not formats.is_gguf(tmp_path)
