"""The k likeliest names by search over their trie, against scoring every name.

    python -m bench.tries                       # the GPT-2-sized model, a share of the names
    python -m bench.tries --names 22923         # as many as MedLAMA has: minutes a query
    python -m bench.tries --names 22923 --small   # the same, a GPT-2 of two narrow layers
    python -m bench.tries --names 22923 --taught 60  # the same, after so many steps of training
    python -m bench.tries --trained outputs     # the sample world's trained causal model, too
    python -m bench.tries --strict              # nodes one at a time: the fewest tokens, not time

Both ways give the ten best names by total and by mean log-likelihood; every rank is compared. The
made model is GPT-2 with random weights, names as long as MedLAMA's: none is likelier than another
for long, the worst case of a search. `--taught` trains it on a few facts, those asked about among
them: some names are likelier then. `--trained` names the folder with the sample world's models and
benchmarks (after `dvc repro`), on which the model's own candidates are ranked.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import transformers

from bench.made import CPU, gpt2, names, queries
from medprobe.core.tables import BenchmarkTables
from medprobe.engine import best_first, causal, ranking, trie
from medprobe.engine.likeliest import likeliest
from medprobe.engine.load import Model, load, use_threads
from medprobe.engine.reader import Reader
from medprobe.engine.slots import answer_ids, text_slots

K = 10
FACTS = 24  # taught to the made model


def compare(label: str, model: Model, prompts: list[str], offered: list[str]) -> None:
    """Print a line: both ways on the same prompts, a task of one template."""
    slots = text_slots(model.tokenizer, prompts, prompts, causal.start_ids(model))
    readers: list[Reader] = []
    start = time.process_time()
    found = likeliest(model, slots, prompts, offered, K, watch=readers.append)
    searched = time.process_time() - start
    tokens, same, lists, apart = 0, 0, 0, 0.0
    start = time.process_time()
    for slot, of_query in zip(slots, found, strict=True):
        rests = [[*ids, *slot.after] for ids in answer_ids(model.tokenizer, offered, slot.left)]
        before, after = causal.continuations(model, slot.before, rests, model.token_budget)
        tokens += len(slot.before) + sum(len(rest) - 1 for rest in rests)
        totals = np.array([sum(before) + sum(scores) for scores in after])
        counts = np.array([len(before) + len(scores) for scores in after])
        for ranked, scores, n in zip(
            of_query, (totals, totals / counts), (counts, 1 + 0 * counts), strict=True
        ):
            lists += 1
            off = [abs(score - scores[i]) / n[i] for i, score in ranked.names]
            apart = max(apart, *off)
            same += [i for i, _ in ranked.names[:K]] == ranking.best(scores, K).tolist()
    scored = time.process_time() - start
    count, read = len(prompts), sum(reader.tokens_read for reader in readers)
    opened = sum(reader.nodes_read for reader in readers) / count
    print(
        f"{label}: {count} queries, {len(offered):,} names; a query {opened:,.0f} nodes, "
        f"{read / count:,.0f} of {tokens / count:,.0f} tokens ({tokens / read:.1f}×), "
        f"{searched / count:.3f} CPU s of {scored / count:.3f} ({scored / searched:.2f}×); "
        f"{same} of {lists} lists the same, scores within {apart:.1e} nats a token",
        flush=True,
    )


def teach(folder: Path, steps: int, asked: pd.DataFrame, offered: list[str]) -> None:
    """Train a checkpoint on prompts filled with names, two for each: FACTS in a batch."""
    network = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()  # without dropout
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    answers = random.Random(0).sample(offered, FACTS)
    prompts = [*asked["prompt"], *asked["prompt"]][:FACTS]
    ids = [
        torch.tensor(tokenizer(f"<|endoftext|>{prompt.replace('[Y]', answer)}")["input_ids"])
        for prompt, answer in zip(prompts, answers, strict=True)
    ]
    rows = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
    targets = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=-100)
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-4)
    for _ in range(steps):
        loss = network(rows, labels=targets).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{steps} steps on {FACTS} facts: {loss.item():.2f} nats a token at last", flush=True)
    network.save_pretrained(folder)


def main() -> None:
    """Print a line a model, or a query of the made model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=1500)
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="narrow the made model")
    parser.add_argument("--taught", type=int, default=0, help="steps to train the made model")
    parser.add_argument("--strict", action="store_true", help="open one node at a time")
    parser.add_argument("--trained", type=Path, help="outputs of the sample world")
    told = parser.parse_args()
    use_threads()
    torch.manual_seed(0)
    if told.strict:
        best_first.WIDTH, best_first.SHARE, trie.EDGE = 1, 0, 1  # type: ignore[misc]
    if told.trained:
        tables = BenchmarkTables.read(told.trained / "benchmarks" / "medlama")
        for model in ("taught-causal", "untaught-causal"):
            if (told.trained / "models" / model).is_dir():
                loaded = load(told.trained / "models" / model, "causal", CPU)
                for subset, asked, offered in tables.subsets():
                    for relation, part in asked.groupby("relation"):
                        label = f"{model}, {relation}, {subset}"
                        compare(label, loaded, part["prompt"].tolist(), sorted({*offered["name"]}))
    with tempfile.TemporaryDirectory() as folder:
        small = {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 4096}
        sizes = small if told.small else {}
        gpt2(Path(folder), **sizes)
        asked, offered = queries(FACTS // 2), names(told.names, 3)
        if told.taught:
            teach(Path(folder), told.taught, asked, offered)
        model = load(Path(folder), "causal", CPU)
        label = f"GPT-2, {told.taught} steps {sizes or ''}"
        for prompt in asked["prompt"].head(told.queries):
            compare(label, model, [prompt], offered)


if __name__ == "__main__":
    main()
