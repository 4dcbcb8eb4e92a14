"""Pseudo-perplexity with a BERT-base-sized random model: this project's way against two others.

    python -m bench.perplexity                  # eight of each length; ratios hardly change
    python -m bench.perplexity --sentences 1000

The straightforward way masks each token in turn and runs the model, one masked sentence at a time.
The batched loop runs all masked copies of a sentence at once. Both take the softmax of the whole
output. All three must give the same numbers. What is gained falls with the length: the longer a
sentence, the better one of it fills a processor by itself.
"""

import argparse
import random
import time
from collections.abc import Callable
from types import SimpleNamespace

import torch
import transformers

from medprobe.engine import load, masked
from medprobe.metrics.perplexity import perplexity

MASK, PAD = 4, 0
LENGTHS = {"filled templates": (6, 14), "sentences of abstracts": (20, 36)}  # tokens
Rows = list[list[int]]


def one_at_a_time(model: load.Model, rows: Rows) -> list[float]:
    """The straightforward way."""
    found = []
    for row in rows:
        total = []
        for place in range(1, len(row) - 1):
            ids = torch.tensor([row])
            ids[0, place] = MASK
            with torch.no_grad():
                logits = model.model(ids).logits
            total.append(float(logits.log_softmax(-1)[0, place, row[place]]))
        found.append(perplexity(total))
    return found


def sentence_by_sentence(model: load.Model, rows: Rows) -> list[float]:
    """The batched loop."""
    found = []
    for row in rows:
        places = torch.arange(1, len(row) - 1)
        ids = torch.tensor([row] * len(places))
        ids[torch.arange(len(places)), places] = MASK
        with torch.no_grad():
            logits = model.model(ids).logits.log_softmax(-1)
        scores = logits[torch.arange(len(places)), places, torch.tensor(row)[places]]
        found.append(perplexity(scores.tolist()))
    return found


def all_together(model: load.Model, rows: Rows) -> list[float]:
    """This project's way: the head at the masks only, batches by token budget."""
    groups = [[[place] for place in range(1, len(row) - 1)] for row in rows]
    scores = masked.pseudo_log_likelihood(model, rows, groups, model.token_budget)
    return [perplexity(row) for row in scores]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=8)
    count = parser.parse_args().sentences
    load.use_threads()
    torch.manual_seed(0)
    network = transformers.BertForMaskedLM(transformers.BertConfig()).eval()
    tokenizer = SimpleNamespace(mask_token_id=MASK, pad_token_id=PAD)
    model = load.Model("b", network, tokenizer, torch.device("cpu"), torch.float32, 512, 8192)
    rng = random.Random(0)
    all_together(model, [[2, 5, 3]])
    for kind, lengths in LENGTHS.items():
        tokens = [rng.randint(*lengths) for _ in range(count)]
        compare(model, kind, [[2, *rng.choices(range(5, 30_000), k=n), 3] for n in tokens])


def compare(model: load.Model, kind: str, rows: Rows) -> None:
    """Print the seconds of each way, and how many times this project's that is."""
    ways: list[Callable[[load.Model, Rows], list[float]]]
    ways = [one_at_a_time, sentence_by_sentence, all_together]
    seconds, results = [], []
    for way in ways:
        start = time.perf_counter()
        results.append(torch.tensor(way(model, rows)))
        seconds.append(time.perf_counter() - start)
    for other in results[:-1]:
        torch.testing.assert_close(other, results[-1], rtol=1e-4, atol=0)
    for way, spent in zip(ways, seconds, strict=True):
        print(
            f"perplexity: {len(rows)} {kind}, {way.__name__.replace('_', ' ')}: "
            f"{spent:.1f} s, {spent / seconds[-1]:.1f} times this project's time"
        )


if __name__ == "__main__":
    main()
