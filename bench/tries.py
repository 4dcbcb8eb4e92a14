"""The k likeliest names by search over their trie, against scoring every name.

    python -m bench.tries                       # the GPT-2-sized model, a share of the names
    python -m bench.tries --names 22923         # as many as MedLAMA has: minutes a query
    python -m bench.tries --trained outputs     # the sample world's trained causal model, too
    python -m bench.tries --names 22923 --total   # by the total alone

Both ways give the ten best names by total and, but for --total, by mean log-likelihood; every rank
is compared. The
made model is GPT-2 with random weights, names as long as MedLAMA's: none is likelier than another
for long, the worst case of a search. `--trained` names the folder with the sample world's models
and benchmarks (after `dvc repro`), on which the model's own candidates are ranked.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from bench.made import CPU, gpt2, names, queries
from medprobe.core.tables import BenchmarkTables
from medprobe.engine import causal, ranking
from medprobe.engine.likeliest import find_likeliest
from medprobe.engine.load import Model, load, use_threads
from medprobe.engine.reader import Reader
from medprobe.engine.slots import answer_ids, text_slots

K = 10


def compare(
    label: str, model: Model, prompts: list[str], offered: list[str], variants: int
) -> None:
    """Print a line: both ways on the same prompts, a task of one template."""
    slots = text_slots(model.tokenizer, prompts, prompts, causal.start_ids(model))
    readers: list[Reader] = []
    start = time.process_time()
    found = find_likeliest(
        model, slots, prompts, offered, K, variants=variants, on_reader=readers.append
    )
    searched = time.process_time() - start
    tokens, same, lists, apart = 0, 0, 0, 0.0
    start = time.process_time()
    for slot, of_query in zip(slots, found, strict=True):
        rests = [
            [*ids, *slot.after] for ids in answer_ids(model.tokenizer, offered, slot.preceding)
        ]
        before, after = causal.continuations(model, slot.before, rests, model.token_budget)
        tokens += len(slot.before) + sum(len(rest) - 1 for rest in rests)
        totals = np.array([sum(before) + sum(scores) for scores in after])
        counts = np.array([len(before) + len(scores) for scores in after])
        for ranked, scores, n in zip(
            of_query, (totals, totals / counts), (counts, 1 + 0 * counts), strict=False
        ):
            lists += 1
            off = [abs(score - scores[i]) / n[i] for i, score in ranked.names]
            apart = max(apart, *off)
            same += [i for i, _ in ranked.names[:K]] == ranking.best_indices(scores, K).tolist()
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


def main() -> None:
    """Print a line a model, or a query of the made model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=1500)
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--trained", type=Path, help="outputs of the sample world")
    parser.add_argument("--total", action="store_true", help="rank by the total alone")
    options = parser.parse_args()
    variants = 1 if options.total else 2
    use_threads()
    torch.manual_seed(0)
    if options.trained:
        tables = BenchmarkTables.read(options.trained / "benchmarks" / "medlama")
        for model in ("taught-causal", "untaught-causal"):
            if (options.trained / "models" / model).is_dir():
                loaded = load(options.trained / "models" / model, "causal", CPU)
                for subset, asked, offered in tables.subsets():
                    for relation, part in asked.groupby("relation"):
                        label = f"{model}, {relation}, {subset}"
                        prompts, among = part["prompt"].tolist(), sorted({*offered["name"]})
                        compare(label, loaded, prompts, among, variants)
    with tempfile.TemporaryDirectory() as folder:
        gpt2(Path(folder))
        model = load(Path(folder), "causal", CPU)
        for prompt in queries(options.queries)["prompt"]:
            compare("GPT-2", model, [prompt], names(options.names, 3), variants)


if __name__ == "__main__":
    main()
