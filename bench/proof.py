"""What it costs to say whether a right answer is among the ten likeliest names.

    python -m bench.proof MODEL                  # ten queries of each of MedLAMA's 19 relations
    python -m bench.proof MODEL --each 100       # 1,900 queries
    python -m bench.proof MODEL --lists 2        # and the lists of ten of two queries a relation

MODEL is the folder of a causal checkpoint, and all 22,923 names of MedLAMA are the candidates. A
relation's queries are searched together, as `likelihood` does. Tokens are compared with those of
scoring every name. MEDPROBE_RELEASED_DATA names the folder with MedLAMA's released files.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any, Final

import pandas as pd

from bench import learnt
from bench.made import CPU
from medprobe.core.errors import BadInput
from medprobe.engine import causal
from medprobe.engine.load import load, use_threads
from medprobe.extensions.likelihood.likeliest import NameTries, find_ahead, find_likeliest
from medprobe.extensions.likelihood.reader import Reader

K: Final = 10
SEED: Final = 7  # of the draw of queries
SHARES: Final = {"quartile": 0.25, "median": 0.5, "third quartile": 0.75, "nine of ten": 0.9}


def measure(folder: Path, each: int, lists: int) -> None:
    """Print a line for each relation, and what all queries cost."""
    model = load(folder, "causal", CPU)
    tables = learnt.medlama()
    full = tables.queries[tables.queries["subset"] == "full"]
    names = sorted(set(tables.candidates["name"]))
    places = {name: place for place, name in enumerate(names)}
    tries = NameTries(model.tokenizer, names)
    costs = []
    for relation, rows in full.groupby("relation"):
        drawn = rows.sample(min(each, len(rows)), random_state=SEED)
        prompts = drawn["prompt"].tolist()
        slots = causal.prompt_slots(model, prompts, prompts)
        right = [[places[name] for name in of_query] for of_query in drawn["answers"]]
        readers: list[Reader] = []
        options: dict[str, Any] = {"variants": 1, "on_reader": readers.append}
        start = time.perf_counter(), time.process_time()
        proofs = find_ahead(model, slots, prompts, tries, K, answers=right, **options)
        wall, seconds = time.perf_counter() - start[0], time.process_time() - start[1]
        every = [
            len(slot.before) + trie.size + (len(slot.after) - 1) * int(trie.is_leaf.sum())
            for slot in slots
            for trie in [tries.after(slot.preceding)]
        ]
        ranks = [proof[0].rank or float("nan") for proof in proofs]
        part = pd.DataFrame({"tokens": readers[0].tokens_by_prompt, "every": every, "rank": ranks})
        part = part.assign(relation=relation, seconds=seconds / len(part), wall=wall / len(part))
        if lists:
            some = slice(lists)
            find_likeliest(model, slots[some], prompts[some], tries, K, **options)
            part["listed"] = pd.Series(readers[1].tokens_by_prompt)
        costs.append(part)
        print(
            f"{relation}: {len(part)} queries, {part['tokens'].median():,.0f} tokens in the "
            f"median, {part['tokens'].mean():,.0f} in the mean, {part['tokens'].max():,} at most; "
            f"{(part['rank'] <= K).sum()} among the ten; {seconds:.0f} CPU s, {wall:.0f} s",
            flush=True,
        )
    report(pd.concat(costs, ignore_index=True))


def report(costs: pd.DataFrame) -> None:
    """Print what all queries cost."""
    tokens, every = costs["tokens"], costs["every"]
    shares = ", ".join(f"{name} {tokens.quantile(q):,.0f}" for name, q in SHARES.items())
    print(
        f"{len(costs):,} queries: {shares}, mean {tokens.mean():,.0f}, worst {tokens.max():,}; "
        f"every name {every.mean():,.0f}: {(every / tokens).median():,.0f}× fewer in the median, "
        f"{every.sum() / tokens.sum():,.0f}× in the mean"
    )
    for found, part in costs.groupby(costs["rank"] <= K):
        label = "among the ten" if found else "not among the ten"
        print(f"{label}: {len(part):,}, mean {part['tokens'].mean():,.0f} tokens")
    if "listed" in costs:
        listed = costs.dropna(subset="listed")
        print(
            f"lists of ten, {len(listed)} queries: mean {listed['listed'].mean():,.0f} tokens, "
            f"{listed['listed'].mean() / tokens.mean():.1f}× as many as a proof of all queries"
        )
    print(
        f"{costs['seconds'].sum():,.0f} CPU s, {costs['wall'].sum():,.0f} s, "
        f"{tokens.sum() / costs['wall'].sum():,.0f} tokens a second"
    )
    worst = costs.sort_values("tokens", ascending=False).head(10)
    print(worst[["relation", "rank", "tokens"]].to_string(index=False))


def main() -> None:
    """Measure a checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--each", type=int, default=10, help="queries of each relation")
    parser.add_argument("--lists", type=int, default=0, help="lists of ten of each relation")
    options = parser.parse_args()
    use_threads()
    try:
        measure(options.model, options.each, options.lists)
    except BadInput as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
