"""Peak memory of loading a large model and reading a prompt with it, by where its weights go.

    python -m bench.large              # a checkpoint of 2 GiB in shards: minutes, 2 GiB of disk
    python -m bench.large --layers 2   # a smaller one

The made checkpoint is a Llama in float32 with random weights. Each way runs in a process of its
own; its peak of resident memory is counted from what the process held before it loaded the model.
`spread` with 512 MiB for weights leaves the other layers in their files.
"""

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file

from bench.made import gpt2_tokenizer
from medprobe.core.params import EngineParams
from medprobe.engine import causal
from medprobe.engine.load import load, use_threads

GIB = 2**30
WAYS: dict[str, dict[str, Any]] = {
    "whole, float32": {"device": "cpu"},
    "whole, bfloat16": {"device": "cpu", "precision": "bfloat16"},
    "spread, 1 GiB in memory": {"device": "spread", "max_memory": {"cpu": "1GiB"}},
    "spread, 512 MiB in memory": {"device": "spread", "max_memory": {"cpu": "512MiB"}},
}


def made(folder: Path, layers: int) -> int:
    """Write a checkpoint, a shard a layer; returns the bytes of its weights."""
    tokenizer = gpt2_tokenizer()
    tokenizer.save_pretrained(folder)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=1536,
        intermediate_size=4096,
        num_hidden_layers=layers,
        num_attention_heads=12,
        max_position_embeddings=1024,
        architectures=["LlamaForCausalLM"],
    )
    config.save_pretrained(folder)
    with torch.device("meta"):
        weights = transformers.LlamaForCausalLM(config).state_dict()
    torch.manual_seed(0)
    shards: dict[str, list[str]] = {}
    for name in weights:
        words = name.split(".")
        shards.setdefault(words[2] if words[1] == "layers" else name, []).append(name)
    files = {}
    for number, names in enumerate(shards.values()):
        file = f"model-{number:05}.safetensors"
        drawn = {n: torch.empty(weights[n].shape).uniform_(-0.03, 0.03) for n in names}
        save_file(drawn, folder / file, {"format": "pt"})
        files |= dict.fromkeys(names, file)
    index = {"metadata": {}, "weight_map": files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return sum(weight.numel() * 4 for weight in weights.values())


def tried(folder: Path, engine: EngineParams) -> tuple[int, float, float]:
    """The peak in bytes above what was held before, seconds, and a prompt's log-likelihood."""
    use_threads()
    before, start = _peak(), time.perf_counter()
    model = load(folder, "causal", engine)
    [scores] = causal.log_likelihood(model, [[5, 300, 400, 500, 600]], model.token_budget)
    return _peak() - before, time.perf_counter() - start, sum(scores)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Print a line a way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=14)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        size = made(Path(name), told.layers)
        print(f"weights {size / GIB:.2f} GiB")
        for way, settings in WAYS.items():
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                engine = EngineParams.model_validate(settings)
                peak, seconds, score = pool.apply(tried, (Path(name), engine))
            share = f"{peak / GIB:.2f} GiB ({peak / size:.2f} of the weights)"
            print(f"{way}: peak {share}, {seconds:.0f} s, log-likelihood {score:.4f}", flush=True)


if __name__ == "__main__":
    main()
