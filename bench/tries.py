"""The k likeliest names by search over their trie, against scoring every name.

    python -m bench.tries                       # the GPT-2-sized model, a share of the names
    python -m bench.tries --names 22923         # as many as MedLAMA has: minutes a query
    python -m bench.tries --trained outputs     # the sample world's trained causal model, too
    python -m bench.tries --learnt              # a model that has learnt MedLAMA's names

Both ways give the ten best names by total, and by total and mean log-likelihood; every rank is
compared. The made model is GPT-2 with random weights, names as long as MedLAMA's: none is likelier
than another for long, the worst case of a search. `--trained` names the folder with the sample
world's models and benchmarks (after `dvc repro`), on which the model's own candidates are ranked.
`--learnt` needs MedLAMA's released files, and trains its model (learnt.py) once, in five minutes.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch

from bench import learnt
from bench.made import CPU, gpt2, names, queries
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.engine import causal, ranking
from medprobe.engine.load import Model, load, use_threads
from medprobe.engine.slots import Slot, answer_ids
from medprobe.extensions.likelihood.best_first import VariantRanking
from medprobe.extensions.likelihood.likeliest import NameTries, find_likeliest
from medprobe.extensions.likelihood.reader import Reader

K: Final = 10
RANKINGS: Final = {"total": 1, "total and mean": 2}  # how many variants each ranks by
SHARE: Final = 20  # queries of each relation that a whole MedLAMA is reckoned from


@dataclass(frozen=True)
class Cost:
    """What one way cost, over all queries."""

    nodes: int
    tokens: int
    seconds: float


def compare(
    label: str, model: Model, prompts: list[str], offered: list[str]
) -> dict[str, tuple[float, float]]:
    """Print a line for each kind of search on these prompts, a task of one template.

    Returns:
        By kind, how many times fewer tokens and less time the search takes than scoring all.
    """
    slots = causal.prompt_slots(model, prompts, prompts)
    start = time.process_time()
    tries = NameTries(model.tokenizer, offered)
    for slot in slots:
        tries.after(slot.preceding)
    built = time.process_time() - start
    scores, counts, every = score_all(model, slots, offered)
    ratios = {}
    for ranking_name, variants in RANKINGS.items():
        rankings, cost = search(model, slots, prompts, tries, variants)
        same, lists, apart = agreement(rankings, scores, counts)
        token_ratio, time_ratio = every.tokens / cost.tokens, every.seconds / cost.seconds
        ratios[ranking_name] = token_ratio, time_ratio
        n = len(prompts)
        print(
            f"{label}, {ranking_name}: {n} queries, {len(offered):,} names; "
            f"a query {cost.nodes / n:,.0f} nodes, {cost.tokens / n:,.0f} of "
            f"{every.tokens / n:,.0f} tokens ({token_ratio:.1f}×), {cost.seconds / n:.3f} "
            f"CPU s of {every.seconds / n:.3f} ({time_ratio:.2f}×), and {built:.2f} for the "
            f"trie; {same} of {lists} lists the same, scores within {apart:.1e} nats a token",
            flush=True,
        )
        assert same == lists, "a list differs"
    return ratios


def search(
    model: Model, slots: Sequence[Slot], prompts: list[str], tries: NameTries, variants: int
) -> tuple[list[list[VariantRanking]], Cost]:
    """The likeliest names of each slot by the search, with the trie at hand."""
    readers: list[Reader] = []
    start = time.process_time()
    rankings = find_likeliest(
        model, slots, prompts, tries, K, variants=variants, on_reader=readers.append
    )
    seconds = time.process_time() - start
    return rankings, Cost(readers[0].nodes_read, readers[0].tokens_read, seconds)


def score_all(
    model: Model, slots: Sequence[Slot], offered: list[str]
) -> tuple[list[np.ndarray], list[np.ndarray], Cost]:
    """The total of each name in each slot, and of how many tokens it is."""
    scores, counts, tokens = [], [], 0
    start = time.process_time()
    for slot in slots:
        suffixes = [
            [*ids, *slot.after] for ids in answer_ids(model.tokenizer, offered, slot.preceding)
        ]
        before, after = causal.continuations(model, slot.before, suffixes, model.token_budget)
        tokens += len(slot.before) + sum(len(suffix) - 1 for suffix in suffixes)
        scores.append(np.array([sum(before) + sum(of_name) for of_name in after]))
        counts.append(np.array([len(before) + len(of_name) for of_name in after]))
    return scores, counts, Cost(0, tokens, time.process_time() - start)


def agreement(
    rankings: list[list[VariantRanking]], scores: list[np.ndarray], counts: list[np.ndarray]
) -> tuple[int, int, float]:
    """How many lists are the same, of how many, and how far scores are apart, in nats a token."""
    same, lists, apart = 0, 0, 0.0
    for of_query, totals, n in zip(rankings, scores, counts, strict=True):
        for ranked, values, tokens in zip(of_query, (totals, totals / n), (n, n**0), strict=False):
            lists += 1
            apart = max(apart, *(abs(score - values[i]) / tokens[i] for i, score in ranked.names))
            same += [i for i, _ in ranked.names[:K]] == ranking.best_indices(values, K).tolist()
    return same, lists, apart


def on_learnt() -> None:
    """Twelve queries of nine relations, six of them held out; then a share of all queries."""
    tables = learnt.medlama()
    model = load(learnt.checkpoint(tables), "causal", CPU)
    offered = sorted(set(tables.candidates["name"]))
    trained_on, held_out = learnt.split(tables)
    relations = sorted(set(held_out["relation"]))[:9]
    drawn = [
        (label, part[part["relation"] == relation].iloc[0])
        for label, part, sample in (
            ("trained on", trained_on, relations[:6]),
            ("held out", held_out, relations[3:]),
        )
        for relation in sample
    ]
    ratios = [
        compare(f"{query.relation}, {label}", model, [query.prompt], offered)
        for label, query in drawn
    ]
    for ranking_name in RANKINGS:
        tokens, seconds = np.median([of_query[ranking_name] for of_query in ratios], axis=0)
        print(
            f"{ranking_name}, median: "
            f"{tokens:,.0f}× fewer tokens, {seconds:,.0f}× less time a query"
        )
    full = tables.queries[tables.queries["subset"] == "full"]
    sample = full.groupby("relation").head(SHARE)
    tries = NameTries(model.tokenizer, offered)
    costs = []
    for _, part in sample.groupby("relation"):
        prompts = part["prompt"].tolist()
        slots = causal.prompt_slots(model, prompts, prompts)
        costs.append(search(model, slots, prompts, tries, 1)[1])
    a_query = sum(cost.seconds for cost in costs) / len(sample)
    print(
        f"total, by relation: {len(sample)} queries, {a_query:.3f} CPU s and "
        f"{sum(cost.tokens for cost in costs) / len(sample):,.0f} tokens a query with the trie; "
        f"{a_query * len(full) / 60:.0f} CPU minutes for {len(full):,}"
    )


def main() -> None:
    """Print lines for each model, or each query of the made model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=1500)
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--trained", type=Path, help="outputs of the sample world")
    parser.add_argument("--learnt", action="store_true", help="a model that has learnt names")
    options = parser.parse_args()
    use_threads()
    torch.manual_seed(0)
    if options.learnt:
        try:
            return on_learnt()
        except BadInput as error:
            sys.exit(str(error))
    if options.trained:
        tables = BenchmarkTables.read(options.trained / "benchmarks" / "medlama")
        for model in ("taught-causal", "untaught-causal"):
            if (options.trained / "models" / model).is_dir():
                loaded = load(options.trained / "models" / model, "causal", CPU)
                for subset, query_table, offered in tables.subsets():
                    for relation, part in query_table.groupby("relation"):
                        label = f"{model}, {relation}, {subset}"
                        prompts, among = part["prompt"].tolist(), sorted({*offered["name"]})
                        compare(label, loaded, prompts, among)
    with tempfile.TemporaryDirectory() as folder:
        gpt2(Path(folder))
        model = load(Path(folder), "causal", CPU)
        for prompt in queries(options.queries)["prompt"]:
            compare("GPT-2", model, [prompt], names(options.names, 3))
    return None


if __name__ == "__main__":
    main()
