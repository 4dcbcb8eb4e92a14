"""lm-evaluation-harness and `likelihood` on the same model, queries and names.

    python -m bench.peers                                   # the sample's model, after `make repro`
    python -m bench.peers MODEL --queries 2 --names 1818    # of released MedLAMA

lm-evaluation-harness, installed by `make lm-eval`, runs the tasks of `medprobe export-lm-eval`.
Each way runs in a process of its own, in float32 and with as many threads. CPU seconds are those of
the whole process, imports included; tokens are those that the network reads, padding aside. Nothing
is reckoned: the first line has the size of what ran.

MODEL is the folder of a causal checkpoint. Queries are drawn from all relations; the candidates are
their answers and further names. lm-evaluation-harness begins each text with the start token. If the
tokenizer does not, both get a copy of the model whose tokenizer does. MEDPROBE_RELEASED_DATA names
the folder with MedLAMA's released files.
"""

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import transformers

from bench.made import CPU
from medprobe.core import answers, places
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables, Metadata
from medprobe.engine import causal
from medprobe.engine.load import load, use_threads
from medprobe.extensions.exchange.commands.export_lm_eval import export
from medprobe.extensions.likelihood import likeliest
from medprobe.extensions.likelihood.reader import Reader
from medprobe.papers.medlama.benchmarks import medlama_released

PROGRAM: Final = Path(os.environ.get("MEDPROBE_LM_EVAL", "build/lm-eval/bin/lm-eval")).absolute()
RELEASED: Final = "MEDPROBE_RELEASED_DATA"
SAMPLES: Final = "samples_*.jsonl"  # its logs, one file for each task
TASKS: Final = Path("outputs/tasks")  # licensed text goes below outputs/
K: Final = 10
SEED: Final = 7  # of the draw of queries and names
EVERY, LISTS, PROOF = "every name", "the ten likeliest names (lists: true)", "accuracy alone"


@dataclass
class Outcome:
    """What a program has computed.

    Attributes:
        scores: The log-likelihood of each query and name.
        right: Whether a query's likeliest name is an answer.
        tokens: How many the network has read.
    """

    scores: dict[tuple[str, str], float] = field(default_factory=dict)
    right: dict[str, bool] = field(default_factory=dict)
    tokens: int = 0


def names_and_answers(tables: BenchmarkTables) -> tuple[list[str], dict[str, list[int]]]:
    """The names, of which an earlier one wins a tie, and the indices of those right for a query."""
    rule = answers.find_rule(tables.normalise)
    names = sorted(set(tables.candidates["name"]))
    right = {
        query: [i for i, name in enumerate(names) if rule(name) in {*map(rule, texts)}]
        for query, texts in zip(tables.queries["query_id"], tables.queries["answers"], strict=True)
    }
    return names, right


def likelihood(way: str, model: Path, tables: BenchmarkTables) -> Outcome:
    """Rank names as `likelihood` does, one relation at a time."""
    use_threads()
    loaded, outcome = load(model, "causal", CPU), Outcome()
    names, right = names_and_answers(tables)
    tries = likeliest.NameTries(loaded.tokenizer, names)
    for _, queries in tables.queries.groupby("relation"):
        ids, readers = queries["query_id"].tolist(), list[Reader]()
        slots = causal.prompt_slots(loaded, queries["prompt"].tolist(), ids)
        if way == PROOF:
            found = likeliest.find_ahead(
                loaded, slots, ids, tries, K, variants=1, on_reader=readers.append,
                answers=[right[query] for query in ids],
            )  # fmt: skip
        else:
            k = len(names) if way == EVERY else K
            found = likeliest.find_likeliest(
                loaded, slots, ids, tries, k, variants=1, on_reader=readers.append
            )
        outcome.tokens += readers[0].tokens_read
        for query, (ranking,) in zip(ids, found, strict=True):
            outcome.scores |= {(query, names[i]): score for i, score in ranking.names}
            is_first = ranking.rank == 1 if way == PROOF else ranking.names[0][0] in right[query]
            outcome.right[query] = is_first
    return outcome


def run_lm_eval(model: Path, tasks: Path, results: Path, batch: int) -> None:
    """Run lm-evaluation-harness on all relations.

    Raises:
        BadInput: It failed.
    """
    command: list[str | Path] = [
        PROGRAM,
        "run",
        "--model",
        "hf",
        "--device",
        "cpu",
        "--batch_size",
        str(batch),
    ]
    command += ["--model_args", f"pretrained={model},dtype=float32", "--include_path", tasks]
    command += ["--tasks", "medprobe_medlama_full", "--output_path", results, "--log_samples"]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    process = subprocess.run(
        command, env=os.environ | offline, capture_output=True, text=True, check=False
    )
    if process.returncode:
        last = process.stderr.strip().rpartition("\n")[2]
        raise BadInput(PROGRAM, last, "run `make lm-eval` to install and try it")


def read_lm_eval(results: Path, model: Path, tables: BenchmarkTables) -> Outcome:
    """Read what lm-evaluation-harness has logged."""
    tokenizer, outcome = transformers.AutoTokenizer.from_pretrained(model), Outcome()
    names, right = names_and_answers(tables)
    for line in (line for path in results.rglob(SAMPLES) for line in path.open(encoding="utf-8")):
        sample = json.loads(line)
        query = str(sample["doc"]["query_id"])
        if query in outcome.right:  # logged once for each filter
            continue
        requests = [sample["arguments"][f"gen_args_{i}"] for i in range(len(names))]
        scores = [float(response[0][0]) for response in sample["resps"]]
        outcome.scores |= {(query, name): x for name, x in zip(names, scores, strict=True)}
        outcome.right[query] = scores.index(max(scores)) in right[query]
        # The start token is read, and the last token is not.
        texts = tokenizer([request["arg_1"] for request in requests], add_special_tokens=False)
        outcome.tokens += sum(map(len, texts["input_ids"]))
    return outcome


def compare(ours: Outcome, theirs: Outcome) -> str:
    """Describe how two outcomes differ."""
    differences = {key: abs(score - theirs.scores[key]) for key, score in ours.scores.items()}
    widest = max(differences, key=lambda key: differences[key])
    same = sum(ours.right[query] == right for query, right in theirs.right.items())
    return (
        f"{len(differences):,} log-likelihoods differ by {differences[widest]:.1e} at most "
        f"(of {theirs.scores[widest]:.1f}); acc@1 is the same for {same} of {len(theirs.right)}"
    )


@contextmanager
def cpu_seconds() -> Iterator[list[float]]:
    """Append the CPU seconds of the processes that started and ended meanwhile."""
    seconds, before = list[float](), resource.getrusage(resource.RUSAGE_CHILDREN)
    yield seconds
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def medlama() -> BenchmarkTables:
    """MedLAMA's 19 relations as released.

    Raises:
        BadInput: The released files are not there.
    """
    files = Path(os.environ.get(RELEASED, "")) / "medlama-released" / "2021AA"
    if not files.is_dir():
        remedy = f"set {RELEASED} to the folder that contains medlama-released"
        raise BadInput(files, "no released files of MedLAMA", remedy)
    with tempfile.TemporaryDirectory() as data:
        Path(data, "medlama").symlink_to(files.resolve())
        builder = medlama_released.BENCHMARK
        tables: BenchmarkTables = builder.build(Path(data), builder.settings(), 0)
    return tables


def of_released(queries: int, names: int) -> BenchmarkTables:
    """Some queries of released MedLAMA's full set, their answers and further names."""
    tables = of_full(medlama())
    drawn = tables.queries.sample(min(queries, len(tables.queries)), random_state=SEED)
    shuffled = tables.candidates.sample(frac=1, random_state=SEED).drop_duplicates("name")
    is_answer = shuffled["name"].isin(set(drawn["answers"].explode()))
    candidates = shuffled.loc[is_answer.sort_values(ascending=False, kind="stable").index]
    return replace(tables, queries=drawn, candidates=candidates.head(names))


def of_full(tables: BenchmarkTables) -> BenchmarkTables:
    """The full set alone."""
    parts = tables.queries, tables.candidates
    queries, candidates = (table[table["subset"] == "full"] for table in parts)
    return replace(tables, queries=queries, candidates=candidates)


def with_start_token(model: Path, folder: Path) -> Path:
    """The model, or its copy in a folder whose tokenizer begins a text with the start token."""
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(model)
    if tokenizer("a")["input_ids"][0] in tokenizer.all_special_ids:
        return model
    tokenizer.add_bos_token = True
    tokenizer.save_pretrained(folder)
    for path in model.iterdir():
        if not (folder / path.name).exists():
            (folder / path.name).symlink_to(path)
    return folder


def measure(
    model: Path, tables: BenchmarkTables, about: Metadata, batch: int, scratch: Path
) -> None:
    """Print a line for lm-evaluation-harness, and one for each way of `likelihood`."""
    checkpoint = with_start_token(model, scratch / model.name)
    with chdir(scratch):
        tables.write(places.BENCHMARKS / "medlama")
        about.write(places.ABOUT / "medlama.json")
        export("medlama", TASKS)
    queries, names = len(tables.queries), tables.candidates["name"].nunique()
    note = "" if checkpoint == model else ", with a start token"
    threads = os.environ["OMP_NUM_THREADS"]
    print(f"{model.name}{note}: queries: {queries:,}, names: {names:,}, threads: {threads}")
    with cpu_seconds() as seconds:
        run_lm_eval(checkpoint, scratch / TASKS, scratch / "results", batch)
    theirs = read_lm_eval(scratch / "results", checkpoint, tables)
    print(
        f"lm-evaluation-harness, batches of {batch}: {seconds[0]:,.1f} CPU s, {theirs.tokens:,} "
        f"tokens ({theirs.tokens / seconds[0]:,.0f} a CPU second); "
        f"acc@1 {sum(theirs.right.values())} of {queries:,}",
        flush=True,
    )
    for way in (EVERY, LISTS, PROOF):
        spawn = multiprocessing.get_context("spawn")
        with cpu_seconds() as ours, ProcessPoolExecutor(1, spawn) as pool:
            outcome = pool.submit(likelihood, way, checkpoint, tables).result()
        print(
            f"likelihood, {way}: {ours[0]:,.1f} CPU s ({seconds[0] / ours[0]:.1f}× less), "
            f"{outcome.tokens:,} tokens ({theirs.tokens / outcome.tokens:.1f}× fewer); "
            f"{compare(outcome, theirs)}",
            flush=True,
        )


def main() -> None:
    """Measure the sample's model, or a checkpoint."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--queries", type=int, default=2, help="of released MedLAMA")
    parser.add_argument("--names", type=int, default=1818, help="of released MedLAMA")
    parser.add_argument("--batch", type=int, default=16, help="texts, of lm-evaluation-harness")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if not PROGRAM.is_file():
        print(f"skipped: {PROGRAM} is missing; `make lm-eval` installs lm-evaluation-harness")
        return
    for library in ("OMP", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = str(options.threads)
    try:
        if options.model:
            tables = of_released(options.queries, options.names)
            about = medlama_released.BENCHMARK.metadata
        else:
            tables = of_full(BenchmarkTables.read(places.BENCHMARKS / "medlama"))
            about = Metadata.read(places.ABOUT / "medlama.json")
        model = (options.model or places.MODELS / "taught-causal").resolve()
        with tempfile.TemporaryDirectory() as scratch:
            measure(model, tables, about, options.batch, Path(scratch))
    except BadInput as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
