"""Peak memory of loading a large model and reading a prompt with it, by where its weights go.

    python -m bench.large              # a checkpoint of 2 GiB in shards: minutes, 2 GiB of disk
    python -m bench.large --layers 2   # a smaller one
    python -m bench.large --only whole # the ways of this name

The made checkpoint is a Llama in float32 with random weights. Each way runs in a process of its
own; its peaks of memory are counted from what the process held before it loaded the model: memory
of its own, and all that is resident, the pages of files that it has mapped too, which the system
takes back where it needs them. `spread` with 512 MiB for weights leaves the other layers in their
files.
"""

import argparse
import json
import multiprocessing
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil
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


def tried(folder: Path, engine: EngineParams) -> tuple[int, int, float, float]:
    """The peaks in bytes above what was held before, of its own memory and of all that is resident;
    seconds, and a prompt's log-likelihood."""
    use_threads()
    before, start = _held(), time.perf_counter()
    held, done = [before], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            held.append(_held())

    watching = threading.Thread(target=watch)
    watching.start()
    model = load(folder, "causal", engine)
    [scores] = causal.log_likelihood(model, [[5, 300, 400, 500, 600]], model.token_budget)
    seconds = time.perf_counter() - start
    done.set()
    watching.join()
    own, resident = (max(peaks) for peaks in zip(*held, strict=True))
    return own - before[0], resident - before[1], seconds, sum(scores)


def _held() -> tuple[int, int]:
    """Bytes of this process's own memory, and resident ones."""
    memory = psutil.Process().memory_info()
    return memory.rss - memory.shared, memory.rss


def main() -> None:
    """Print a line a way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=14)
    parser.add_argument("--only", default="", help="how the names of ways begin")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        size = made(Path(name), told.layers)
        print(f"weights {size / GIB:.2f} GiB")
        for way, settings in WAYS.items():
            if not way.startswith(told.only):
                continue
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                engine = EngineParams.model_validate(settings)
                *peaks, seconds, score = pool.apply(tried, (Path(name), engine))
            own, resident = (f"{p / GIB:.2f} GiB ({p / size:.2f} of the weights)" for p in peaks)
            print(
                f"{way}: peak of its own memory {own}, resident {resident}, {seconds:.0f} s, "
                f"log-likelihood {score:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
