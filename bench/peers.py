"""`likelihood` beside other programs, on the same model, queries and names.

    python -m bench.peers MODEL                # ten random queries of released MedLAMA, 1,818 names

MODEL is the folder of a causal checkpoint. `make lm-eval` installs lm-evaluation-harness and
minicons apart; MEDPROBE_RELEASED_DATA names the folder with MedLAMA's released files. Each way runs
in a process of its own, in float32 and with one thread. CPU seconds are those of the whole process,
imports included; tokens are those that the network reads, padding aside.

Queries are drawn from all relations; the candidates are their answers and further names.
lm-evaluation-harness runs the tasks of `medprobe export-lm-eval`, and the others score the texts
that it logs. It begins each text with the start token. If the tokenizer does not, all get a copy of
the model whose tokenizer does.
"""

import argparse
import copy
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from torch.nn.utils.rnn import pad_sequence

from bench.made import CPU
from medprobe.core import answers, places
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.engine import causal
from medprobe.engine.load import load, use_threads
from medprobe.extensions.exchange.lm_eval import export
from medprobe.extensions.likelihood import likeliest
from medprobe.extensions.likelihood.reader import Reader
from medprobe.papers.medlama.benchmarks import medlama_released

PROGRAM: Final = Path(os.environ.get("MEDPROBE_LM_EVAL", "build/lm-eval/bin/lm-eval")).absolute()
RELEASED: Final = "MEDPROBE_RELEASED_DATA"
SAMPLES: Final = "samples_*.jsonl"  # its logs, one file for each task
TASKS: Final = Path("outputs/tasks")  # licensed text goes below outputs/
MINICONS: Final = """
import json, sys
from minicons.scorer import IncrementalLMScorer
model, texts, batch = sys.argv[1], json.load(sys.stdin), int(sys.argv[2])
scorer, scores = IncrementalLMScorer(model, "cpu"), []
for start in range(0, len(texts), batch):
    some = texts[start : start + batch]
    scores += scorer.sequence_score(some, reduction=lambda logs: logs.sum(0).item())
json.dump(scores, sys.stdout)
"""
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
        texts: What another program has read for them, in the order of the scores.
    """

    scores: dict[tuple[str, str], float] = field(default_factory=dict)
    right: dict[str, bool] = field(default_factory=dict)
    tokens: int = 0
    texts: list[str] = field(default_factory=list)


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
    """Rank names as `likelihood` does, all queries in a pool."""
    use_threads()
    loaded, outcome = load(model, "causal", CPU), Outcome()
    names, right = names_and_answers(tables)
    tries = likeliest.NameTries(loaded.tokenizer, names)
    ids, readers = tables.queries["query_id"].tolist(), list[Reader]()
    slots = causal.prompt_slots(loaded, tables.queries["prompt"].tolist(), ids)
    find = partial(
        likeliest.find_likeliest, loaded, slots, ids, tries, variants=1, on_reader=readers.append
    )
    if way == PROOF:
        found = find(k=K, ahead=True, answers=[right[query] for query in ids])
    else:
        found = find(k=len(names) if way == EVERY else K)
    outcome.tokens = readers[0].tokens_read
    for query, (ranking,) in zip(ids, found, strict=True):
        outcome.scores |= {(query, names[i]): score for i, score in ranking.names}
        is_first = ranking.rank == 1 if way == PROOF else ranking.names[0][0] in right[query]
        outcome.right[query] = is_first
    return outcome


def run_lm_eval(model: Path, tasks: Path, results: Path, batch: int) -> None:
    """Run lm-evaluation-harness on all relations."""
    about = f"pretrained={model},dtype=float32"
    command = f"run --model hf --device cpu --batch_size {batch} --log_samples".split()
    command += ["--model_args", about, "--include_path", str(tasks), "--output_path", str(results)]
    _run([str(PROGRAM), *command, "--tasks", "medprobe_medlama_full"])


def _run(command: list[str], given: str = "") -> str:
    """What a program prints. Raises BadInput if it fails."""
    offline = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    ended = subprocess.run(
        command, env=offline, input=given, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        last = ended.stderr.strip().rpartition("\n")[2]
        raise BadInput(command[0], last, "run `make lm-eval` to install and try it")
    return ended.stdout


def minicons(model: Path, batch: int, asked: Outcome) -> Outcome:
    """Score the same texts by minicons."""
    command = [str(PROGRAM.with_name("python")), "-c", MINICONS, str(model), str(batch)]
    scores = json.loads(_run(command, json.dumps(asked.texts)))
    return Outcome(dict(zip(asked.scores, scores, strict=True)), {}, asked.tokens)


def plain(model: Path, batch: int, asked: Outcome) -> Outcome:
    """Score the texts by transformers: names by length, behind a copy of the prompt's cache."""
    use_threads()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    network = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    scores, tokens = dict[tuple[str, str], float](), 0
    by_query: dict[str, dict[tuple[str, str], list[int]]] = {}
    every = tokenizer(asked.texts)["input_ids"]
    for key, row in zip(asked.scores, every, strict=True):
        by_query.setdefault(key[0], {})[key] = row
    for rows in by_query.values():
        prompt = os.path.commonprefix([row[:-1] for row in rows.values()])  # noqa: RUF071 - of ids
        ranked = sorted(rows.items(), key=lambda pair: len(pair[1]))
        with torch.inference_mode():
            read = network(torch.tensor([prompt]), use_cache=True)
            logs = read.logits[0].log_softmax(-1)
            before = logs[range(len(prompt) - 1), prompt[1:]].sum()
            for start in range(0, len(ranked), batch):
                some = ranked[start : start + batch]
                ends = [row[len(prompt) :] for _, row in some]
                cache = copy.deepcopy(read.past_key_values)
                cache.batch_repeat_interleave(len(ends))
                padded = pad_sequence([torch.tensor(end) for end in ends], batch_first=True)
                later = network(padded[:, :-1], past_key_values=cache).logits.log_softmax(-1)
                for (key, _), end, log in zip(some, ends, later, strict=True):
                    after = log[range(len(end) - 1), end[1:]].sum()
                    scores[key] = float(before + logs[-1, end[0]] + after)
        tokens += len(prompt) + sum(len(row) - len(prompt) - 1 for row in rows.values())
    return Outcome(scores, {}, tokens)


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
        outcome.texts += [request["arg_1"] for request in requests]
        scores = [float(response[0][0]) for response in sample["resps"]]
        outcome.scores |= {(query, name): x for name, x in zip(names, scores, strict=True)}
        outcome.right[query] = scores.index(max(scores)) in right[query]
        # The start token is read, and the last token is not.
        texts = tokenizer([request["arg_1"] for request in requests], add_special_tokens=False)
        outcome.tokens += sum(map(len, texts["input_ids"]))
    return outcome


def compare(ours: Outcome, theirs: Outcome) -> str:
    """Describe how two outcomes differ."""
    differences = [abs(score - theirs.scores[key]) for key, score in ours.scores.items()]
    text = f"{max(differences):.1e}, of {len(differences):,}"
    if different := [query for query, right in ours.right.items() if theirs.right[query] != right]:
        text += f"; acc@1 differs for {len(different)} of {len(theirs.right)}"
    return text


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


def measure(model: Path, tables: BenchmarkTables, batch: int, scratch: Path) -> None:
    """Print a line of a table for each way."""
    checkpoint = with_start_token(model, scratch / model.name)
    with chdir(scratch):
        tables.write(places.BENCHMARKS / "medlama")
        medlama_released.BENCHMARK.metadata.write(places.ABOUT / "medlama.json")
        export("medlama", TASKS)
    queries, names = len(tables.queries), tables.candidates["name"].nunique()
    note = "" if checkpoint == model else ", with a start token"
    print(f"| {model.name}{note}, {queries:,} queries × {names:,} names ", end="")
    print("| CPU seconds | share | tokens | differ by at most |\n" + "| --- " * 5 + "|")
    with cpu_seconds() as seconds:
        run_lm_eval(checkpoint, scratch / TASKS, scratch / "results", batch)
    theirs = read_lm_eval(scratch / "results", checkpoint, tables)
    line = f"{seconds[0]:,.1f} | 1 | {theirs.tokens:,} | |"
    print(f"| lm-evaluation-harness, batches of {batch} | {line}")
    ways: dict[str, Callable[[], Outcome]] = {
        f"minicons, batches of {batch}": partial(minicons, checkpoint, batch, theirs),
        "plain transformers, the prompt's cache copied, batches of 64": partial(
            plain, checkpoint, 64, theirs
        ),
        **{f"`likelihood`, {way}": partial(likelihood, way, checkpoint, tables)
           for way in (EVERY, LISTS, PROOF)},
    }  # fmt: skip
    spawn = multiprocessing.get_context("spawn")
    for way, run in ways.items():
        with cpu_seconds() as used, ProcessPoolExecutor(1, spawn) as pool:
            outcome = pool.submit(run).result()
        line = f"{used[0]:,.1f} | {used[0] / seconds[0]:.2f} | {outcome.tokens:,}"
        print(f"| {way} | {line} | {compare(outcome, theirs)} |", flush=True)


def main() -> None:
    """Measure a checkpoint."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--queries", type=int, default=10)
    parser.add_argument("--names", type=int, default=1818)
    parser.add_argument("--batch", type=int, default=16, help="texts, of the other programs")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    try:
        tables = of_released(options.queries, options.names)
        with tempfile.TemporaryDirectory() as scratch:
            measure(options.model.resolve(), tables, options.batch, Path(scratch))
    except BadInput as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
