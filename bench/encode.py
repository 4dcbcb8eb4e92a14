"""Encoding of names: texts a second against the padded way, and the share of the machine's
matrix-product rate that the model reaches.

    python -m bench.encode            # two minutes on two free cores

The model is BERT-base with random weights; the names are invented, as long as MedLAMA's. Padded is:
batches of 128 in the order given, each text padded to 25 tokens, all layers kept. Work counts the
multiplications and additions of real tokens only.
"""

import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench import made as shared
from medprobe.engine.encode import encode, tokenize
from medprobe.engine.load import Model, load, use_threads
from medprobe.engine.search import NameIndex

NAMES = 1024
QUERIES = 64
LENGTH = 25


@torch.no_grad()
def padded_way(model: Model, names: list[str]) -> Any:
    """The straightforward way."""
    found = []
    for start in range(0, len(names), 128):
        tokens = model.tokenizer(
            names[start : start + 128],
            padding="max_length",
            max_length=LENGTH,
            truncation=True,
            return_tensors="pt",
        )
        found.append(model.model(**tokens, output_hidden_states=True).hidden_states[-1][:, 0])
    return torch.cat(found).numpy()


def work(model: Model, names: list[str]) -> float:
    """Floating-point operations of the model's matrix products over the names' real tokens."""
    config = model.model.config
    hidden, inner = config.hidden_size, config.intermediate_size
    lengths = np.array([len(row) for row in set(tokenize(model, names, LENGTH))], dtype=float)
    linear = 2 * lengths * (4 * hidden**2 + 2 * hidden * inner)
    attention = 4 * lengths**2 * hidden
    return float((linear + attention).sum() * config.num_hidden_layers)


def matrix_rate(size: int = 2048, times: int = 5) -> float:
    """The machine's float32 matrix-product rate in FLOP/s: the best of a few."""
    left, right = torch.randn(size, size), torch.randn(size, size)
    with torch.inference_mode():
        return 2 * size**3 / min(seconds(lambda: left @ right) for _ in range(times))


def seconds(job: Any) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def different_ranks(ours: Any, theirs: Any, names: list[str]) -> int:
    """Queries whose ten nearest names differ by more than a swap of equal distances."""
    count = 0
    found = []
    for vectors in (ours, theirs):
        index = NameIndex()
        index.add(names, vectors)
        found.append(index.nearest(vectors[:QUERIES], names, 10))
    for places, scores, others, _ in zip(*found[0], *found[1], strict=True):
        apart = {place: score for place, score in zip(places, scores, strict=True)}
        for place, other in zip(places, others, strict=True):
            near = apart.get(other, -np.inf)
            if place != other and abs(near - apart[place]) > 1e-3 * abs(apart[place]):
                count += 1
                break
    return count


def main() -> None:
    """Print the figures."""
    threads = use_threads()
    names = shared.names(NAMES, 0)
    random.Random(0).shuffle(names)
    with tempfile.TemporaryDirectory() as folder:
        place = shared.encoder(Path(folder), shared.bert_tokenizer())
        model, plain = load(place, "encoder", shared.CPU), shared.plain(place, "encoder")
    encode(model, names[:64], LENGTH)
    padded_way(plain, names[:128])
    before = matrix_rate()
    kept: dict[str, Any] = {}

    def run(key: str, way: Any) -> None:
        kept[key] = way()

    ours = min(seconds(lambda: run("ours", lambda: encode(model, names, LENGTH))) for _ in range(2))
    theirs = seconds(lambda: run("padded", lambda: padded_way(plain, names)))
    rate = max(before, matrix_rate())
    reached = work(model, names) / ours
    different = different_ranks(kept["ours"], kept["padded"], names)
    print(f"{len(names)} invented names; BERT-base, random; {threads} threads")
    print(f"encode       {len(names) / ours:8.1f} texts/s")
    print(f"padded way   {len(names) / theirs:8.1f} texts/s")
    print(f"ratio        {theirs / ours:8.2f}   (wanted: 2.5)")
    print(f"other ranks  {different:8d}   of {QUERIES} queries (wanted: 0)")
    print(f"model        {reached / 1e9:8.1f} GFLOP/s, padding not counted")
    print(f"products     {rate / 1e9:8.1f} GFLOP/s; the model's share {reached / rate:.2f}")


if __name__ == "__main__":
    main()
