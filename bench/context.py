"""Context variance: steps scored a second against the straightforward way, and indexing of notes.

    python -m bench.context           # a few minutes on two free cores

Scoring: a random model of BERT-base's size, candidates as long as MedLAMA's, an invented document
that mentions a subject with five of its objects and as many others: eight contexts for each of the
five facts, as the benchmark makes them of such a document. Straightforward is one step after
another, one input at a time with a row a number of masks, the head over all positions, full sorts.
It runs on a few steps, evenly drawn by length.

Indexing: notes in NOTEEVENTS.csv's form, searched for 500,000 names, twice: peak memory must not
follow the size of the notes.
"""

import csv
import multiprocessing
import random
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import torch

from bench import made as shared
from medprobe.benchmarks.context.steps import Evidence, Limits, steps
from medprobe.engine.load import use_threads
from medprobe.engine.slots import answer_ids, masked_slots
from medprobe.methods import Task
from medprobe.methods.rank_change import RankChange
from medprobe.sources.documents import scan
from medprobe.sources.mentions import Mentions
from medprobe.sources.notes import COLUMNS, read
from medprobe.sources.texts import Document

CANDIDATES = 2_000
TERMS = 500_000
MEGABYTES = (25, 100)
STEPS = 8  # of those scored the straightforward way


def case(names: list[str], seed: int) -> pd.DataFrame:
    """The steps of a document that mentions a subject and ten entities, five of them correct, for
    each of these five."""
    rng = random.Random(seed)
    told, mentions, text = names[:10], [], "patient with subject"
    for name in told:
        text += " " + " ".join(rng.choices(shared.SYLLABLES, k=rng.randint(3, 12))) + " "
        mentions.append((len(text), len(text) + len(name), name))
        text += name
    document = Document("1", text)
    prompt = "subject has symptoms such as [Y]."
    correct, pool = frozenset(told[::2]), frozenset(names)
    rows = []
    for fact in sorted(correct):
        evidence = Evidence(
            "notes",
            document,
            [(13, 20, "subject"), *mentions],
            "has",
            "subject",
            fact,
            prompt,
            correct,
            pool,
        )
        rows += steps(evidence, Limits(10, 400), 1, Counter())
    table = pd.DataFrame(rows)
    return table.rename(columns={"tracked_ids": "tracked", "shown_ids": "shown"})


def scoring(folder: Path) -> None:
    """Steps a second, ours and straightforward; the ranks must agree."""
    shared.bert(folder)
    names = shared.names(CANDIDATES, 3)
    queries = case(names, 1)
    candidates = pd.DataFrame({"name": names, "type": "has"})
    method = RankChange(folder, RankChange.Settings(), shared.CPU, 1)
    method.predict(Task("bench", queries.head(1), candidates, 10), "")  # loads the model
    begin = time.perf_counter()
    predictions = method.predict(Task("bench", queries, candidates, 10), "")
    ours = len(queries) / (time.perf_counter() - begin)
    contexts, distinct = queries["context_id"].nunique(), queries["prompt"].nunique()
    print(
        f"{CANDIDATES:,} candidates, {contexts} contexts, {len(queries)} steps, {distinct} distinct"
    )
    print(
        f"ours                 {ours:8.2f} steps/s  {ours * contexts / len(queries):.3f} contexts/s"
    )
    by_length = queries.iloc[queries["prompt"].str.len().argsort(kind="stable")]
    few = by_length.iloc[len(queries) // STEPS // 2 :: len(queries) // STEPS]
    slow = straightforward(folder, few, names, predictions)
    print(f"straightforward      {slow:8.4f} steps/s  ours is {ours / slow:.1f} times as fast")


@torch.inference_mode()
def straightforward(
    folder: Path, queries: pd.DataFrame, names: list[str], found: pd.DataFrame
) -> float:
    """Steps a second, one input at a time: one for each number of masks."""
    model = shared.plain(folder, "masked")
    mask = model.tokenizer.mask_token_id
    seconds = 0.0
    for row in queries.itertuples():
        (slot,) = masked_slots(model.tokenizer, [row.prompt], ["bench"])
        ids = answer_ids(model.tokenizer, names, slot.preceding)
        begin = time.perf_counter()
        cache: dict[int, torch.Tensor] = {}
        scores = {}
        for name, pieces in zip(names, ids, strict=True):
            count = len(pieces)
            if count not in cache:
                text = torch.tensor([slot.fill([mask] * count)])
                logits = model.model(text).logits[0, slot.positions(count)]
                cache[count] = logits.log_softmax(-1)
            tokens = torch.tensor(pieces)[:, None]
            scores[name] = float(cache[count].gather(1, tokens).mean())
        ranked = sorted(scores, key=lambda name: (-scores[name], name))
        seconds += time.perf_counter() - begin
        for one in found[found["query_id"] == row.query_id].itertuples():
            assert abs(ranked.index(one.prediction) + 1 - one.rank) <= 1, "ranks differ"
    return len(queries) / seconds


def terms() -> list[tuple[str, str]]:
    """Half a million invented names of one to four words, each an entity's own."""
    rng = random.Random(1)
    words = sorted({"".join(rng.choices(shared.SYLLABLES, k=2)) for _ in range(60_000)})
    made = {" ".join(rng.choices(words, k=rng.choice((1, 2, 2, 3, 4)))) for _ in range(TERMS * 2)}
    return [(name, f"C{number:07d}") for number, name in enumerate(sorted(made)[:TERMS])]


def write_notes(path: Path, megabytes: int, names: list[tuple[str, str]]) -> None:
    """Notes of some 5,000 characters, a term in each twelve words."""
    rng = random.Random(2)
    written = number = 0
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(COLUMNS)
        while written < megabytes * 1_000_000:
            words = rng.choices(shared.SYLLABLES, k=700)
            words[::12] = [rng.choice(names)[0] for _ in words[::12]]
            text = "\n".join(" ".join(words[at : at + 12]) for at in range(0, len(words), 12))
            number += 1
            rows.writerow([number, 1, 1, "2150-01-01", "", "", "Report", "", 1, "", text])
            written += len(text)


def measure(path: Path, folder: Path) -> tuple[float, float, int, int]:
    """Seconds to make the finder, seconds to index, mentions, and peak memory in MiB."""
    names = terms()
    begin = time.perf_counter()
    finder = Mentions(names)
    finder.find("")  # which makes its automaton
    ready = time.perf_counter()
    counts = scan(read(path, Counter()), finder, folder)
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return ready - begin, done - ready, counts["mentions"], peak


def indexing(folder: Path) -> None:
    """Each size in a process of its own."""
    names = terms()
    print(f"{len(names):,} terms")
    for megabytes in MEGABYTES:
        path = folder / f"{megabytes}.csv"
        write_notes(path, megabytes, names)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            built, seconds, mentions, peak = pool.apply(measure, (path, folder))
        print(
            f"{megabytes:>4} MB of notes: finder {built:.1f} s, index {seconds:.1f} s "
            f"({megabytes / seconds:.1f} MB/s), {mentions:,} mentions, peak {peak:,} MiB"
        )


def main() -> None:
    """Run all measurements."""
    print(f"threads: {use_threads()}")
    with tempfile.TemporaryDirectory() as folder:
        indexing(Path(folder))
        scoring(Path(folder) / "bert")


if __name__ == "__main__":
    main()
