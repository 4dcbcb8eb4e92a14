"""Pseudo-perplexity with a BERT-base-sized random model: this project's way against two others.

    python -m bench.perplexity                               # 40 of each length, eight by others
    python -m bench.perplexity --sentences 1000 --drawn 25   # a quarter of an hour

The straightforward way masks each token in turn and runs the model, one masked sentence at a time.
The batched loop runs all masked copies of a sentence at once. Both take the softmax of the whole
output, and run on a few of the sentences, drawn without a look at their lengths; their seconds are
scaled up by the tokens to score. All three must give the same numbers. What is gained falls with
the length: the longer a sentence, the better one of it fills a processor by itself.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path

import torch

from bench import made as shared
from medprobe.engine import load, masked
from medprobe.methods.perplexity import perplexity

CLS, SEP, MASK = 2, 3, 4
# tokens that are scored: what four in five of MedLAMA's filled prompts and PubMed's sentences have
LENGTHS = {"filled templates": (12, 25), "sentences of abstracts": (12, 47)}
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
    parser.add_argument("--sentences", type=int, default=40)
    parser.add_argument("--drawn", type=int, default=8, help="how many the slow ways are timed on")
    options = parser.parse_args()
    load.use_threads()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        place = shared.bert(Path(folder))
        models = load.load(place, "masked", shared.CPU), shared.plain(place, "masked")
    rng = random.Random(0)
    for kind, lengths in LENGTHS.items():
        tokens = [rng.randint(*lengths) for _ in range(options.sentences)]
        rows = [[CLS, *rng.choices(range(5, 30_000), k=n), SEP] for n in tokens]
        compare(*models, kind, rows, options.drawn)


def compare(ours: load.Model, plain: load.Model, kind: str, rows: Rows, drawn: int) -> None:
    """Print the seconds of each way, and how many times this project's that is."""
    some = rows[:drawn]
    scale = sum(len(row) - 2 for row in rows) / sum(len(row) - 2 for row in some)
    for model, way in ((ours, all_together), (plain, one_at_a_time)):
        way(model, rows[:1])  # the first run of a way is slower
    seconds, results = [], []
    for model, way, texts in (
        (ours, all_together, rows),
        (plain, one_at_a_time, some),
        (plain, sentence_by_sentence, some),
    ):
        start = time.perf_counter()
        results.append(torch.tensor(way(model, texts))[:drawn])
        seconds.append((time.perf_counter() - start) * (scale if texts is some else 1))
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=1e-4, atol=0)
    print(f"{len(rows)} {kind}, {sum(map(len, rows)) / len(rows):.0f} tokens in the mean")
    print(f"all together          {seconds[0]:8.1f} s")
    for name, spent in zip(("one masked copy", "sentence by sentence"), seconds[1:], strict=True):
        note = f"timed on {len(some)} of them, {spent / seconds[0]:.1f} times this project's time"
        print(f"{name:<21} {spent:8.1f} s, {note}")


if __name__ == "__main__":
    main()
