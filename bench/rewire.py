"""Rewiring: CPU seconds a step and peak memory of one pass, of cached gradients, and of two passes
padded to 48 tokens.

    python -m bench.rewire            # four minutes on two free cores

The model is BERT-base with random weights. The three ways are compared on 48 pairs, which all of
them can hold; cached gradients then take the paper's batch of 192. Each way runs in a process of
its own, so that its peak of memory is its own. Sentences are invented, as long as PubMed's.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from bench import made as shared
from medprobe.engine import rewiring
from medprobe.engine.load import Model, load, use_threads
from medprobe.engine.rewiring import RewireSettings, batch_order, info_nce, make_pairs, train

COMPARED, PAPER = 48, 192  # pairs
WORDS = 23  # of a PubMed sentence, in the mean
HELD = {"one pass": 10**9, "cached": 0}  # tokens


def sentences(count: int) -> list[str]:
    """Invented sentences."""
    words = " ".join(shared.names(count * WORDS // 2, 0)).split()
    draw = random.Random(0)
    lengths = [max(4, round(draw.gauss(WORDS, 8))) for _ in range(count)]
    return [" ".join(draw.choices(words, k=length)) + " " for length in lengths]


def two_padded_passes(model: Model, pairs: list[tuple[str, str]], settings: RewireSettings) -> None:
    """The straightforward way: queries, then answers, each padded to 48 tokens; all layers kept."""
    adam = torch.optim.AdamW(model.model.parameters(), lr=settings.learning_rate)
    model.model.train()
    for chosen in batch_order(len(pairs), settings.batch, settings.steps, "bench"):
        sides = []
        for side in (0, 1):
            tokens: Any = model.tokenizer(
                [pairs[i][side] for i in chosen],
                padding="max_length",
                max_length=settings.max_length,
                truncation=True,
                return_tensors="pt",
            )
            states = model.model(**tokens, output_hidden_states=True).hidden_states
            sides.append(states[-1][:, 0])
        adam.zero_grad()
        info_nce(torch.cat(sides), settings.temperature).backward()
        adam.step()


def measured(way: str, batch: int) -> dict[str, float]:
    """CPU seconds of a step and peak memory in GiB of one way, run in this process."""
    use_threads()
    settings = RewireSettings(batch=batch, steps=1)
    tokenizer = shared.bert_tokenizer()
    pairs = make_pairs(sentences(batch), tokenizer.mask_token, settings, "bench")
    with tempfile.TemporaryDirectory() as folder:
        place = shared.encoder(Path(folder) / "bert", tokenizer)
        if way in HELD:
            model = load(place, "encoder", shared.CPU)
            rewiring.token_capacity = lambda model, longest: HELD[way] or model.token_budget
            target = Path(folder) / "steps"  # the one checkpoint at the end is part of the work
            start = time.process_time()
            train(model, pairs, settings, seed="bench", folder=target)
        else:
            plain = shared.plain(place, "encoder")
            start = time.process_time()
            two_padded_passes(plain, pairs, settings)
        took = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"seconds": took, "gib": peak}


def apart(way: str, batch: int) -> dict[str, float]:
    """`measured` in a fresh process."""
    command = [sys.executable, "-m", "bench.rewire", way, str(batch)]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(process.stdout)
    return found


def main() -> None:
    """Print the figures."""
    threads = use_threads()
    print(f"BERT-base, random; {threads} threads")
    padded = apart("padded", COMPARED)
    rows = [("padded", COMPARED, padded)]
    for way, batch in (("one pass", COMPARED), ("cached", COMPARED), ("cached", PAPER)):
        rows.append((way, batch, apart(way, batch)))
    for way, batch, found in rows:
        ratio = padded["seconds"] / found["seconds"] * batch / COMPARED
        figures = f"{found['seconds']:7.1f} CPU s {found['gib']:6.2f} GiB   ratio {ratio:.2f}"
        print(f"{way:<9} {batch:4} pairs {figures}")
    print("wanted: 1.8 for one pass; ratios are by pair")


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
