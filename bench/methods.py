"""Queries a second of the methods, and names encoded, against the best simple code for each.

    python -m bench.methods           # a few minutes on two free cores

Models have random weights and the sizes of BERT-base, GPT-2 and T5-base; names and prompts are as
long as MedLAMA's. Simple is some ten to thirty lines of transformers, PyTorch or Polars that do the
same work, as someone would write them who thinks about speed: batches, no gradients, no row twice.
"""

import argparse
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import torch

from bench import umls
from bench.made import CPU, bert, candidates, gpt2, names, plain, queries, t5
from medprobe.engine import soft
from medprobe.engine.batching import pad_rows
from medprobe.engine.encode import encode
from medprobe.engine.load import load, use_threads
from medprobe.engine.training_state import StateFile
from medprobe.extensions.chat import prompt_texts, writing
from medprobe.methods import Task
from medprobe.methods.fill_mask import FillMask
from medprobe.methods.generative import Generative
from medprobe.methods.mask_average import MaskAverage
from medprobe.methods.optiprompt import Optiprompt
from medprobe.papers.medlama.benchmarks.medlama.queries import RELATIONS
from medprobe.sources import rrf

CANDIDATES = 22_923  # for mask average: MedLAMA's
RRF_ROWS = 3_000_000  # of MRREL, and a fifth of MRCONSO
BATCH = 32
NAMES, LENGTH = 1024, 25  # to encode, each of so many tokens at most


def seconds(work: Callable[[], Any]) -> float:
    """CPU seconds, which other work on the machine changes little."""
    start = time.process_time()
    work()
    return time.process_time() - start


Figure = tuple[str, int, float, float, str]  # method, queries, s a query: ours, simple code's


def bench_encode(folder: Path) -> Figure:
    """Names by length, in batches padded to their longest."""
    texts = names(NAMES, 0)
    random.Random(0).shuffle(texts)
    model, slow = load(folder, "encoder", CPU), plain(folder, "encoder")
    encode(model, texts[:64], LENGTH)  # warm
    vectors: list[Any] = []
    ours = seconds(lambda: vectors.append(encode(model, texts, LENGTH))) / NAMES

    def simple() -> None:
        ranked, states = sorted(range(NAMES), key=lambda i: len(texts[i])), {}
        for start in range(0, NAMES, BATCH):
            some = ranked[start : start + BATCH]
            form: dict[str, Any] = {"padding": True, "truncation": True, "return_tensors": "pt"}
            tokens = slow.tokenizer([texts[i] for i in some], max_length=LENGTH, **form)
            with torch.inference_mode():
                output = slow.model(**tokens).last_hidden_state[:, 0]
            states |= zip(some, output, strict=True)
        vectors.append(torch.stack([states[i] for i in range(NAMES)]).numpy())

    theirs = seconds(simple) / NAMES
    apart = abs(vectors[0] - vectors[1]).max()
    note = f"names by length in batches of {BATCH}; vectors within {apart:.0e}"
    return "encode", NAMES, ours, theirs, note


def bench_fill_mask(folder: Path) -> Figure:
    query_table = queries(128)
    method = FillMask(folder, FillMask.Settings(), CPU, 0)
    method.predict(Task("bench", query_table, candidates(10), 10), "")  # as the other way, warm
    ours = seconds(lambda: method.predict(Task("bench", query_table, candidates(10), 10), "")) / 128
    slow = plain(folder, "masked")
    tokenizer, model = slow.tokenizer, slow.model

    def simple() -> None:
        texts = [prompt.replace("[Y]", "[MASK]") for prompt in query_table["prompt"]]
        for start in range(0, len(texts), BATCH):
            ids = tokenizer(texts[start : start + BATCH], padding=True, return_tensors="pt")
            with torch.inference_mode():
                states = model.base_model(**ids).last_hidden_state
                at_masks = states[ids["input_ids"] == tokenizer.mask_token_id]
                model.cls(at_masks).log_softmax(-1).topk(10)

    simple()
    return "fill_mask", 128, ours, seconds(simple) / 128, f"batches of {BATCH}, head at the masks"


def bench_mask_average(folder: Path) -> Figure:
    query_table, offered = queries(4), candidates(CANDIDATES)
    method = MaskAverage(folder, MaskAverage.Settings(), CPU, 0)
    ours = seconds(lambda: method.predict(Task("bench", query_table, offered, 10), "")) / 4
    slow = plain(folder, "masked")
    tokenizer, model = slow.tokenizer, slow.model

    def simple() -> None:
        pieces = tokenizer(offered["name"].tolist(), add_special_tokens=False)["input_ids"]
        by_length: dict[int, list[int]] = {}
        for place, row in enumerate(pieces):
            by_length.setdefault(len(row), []).append(place)
        groups = {n: torch.tensor([pieces[i] for i in rows]) for n, rows in by_length.items()}
        for prompt in query_table["prompt"]:
            means = torch.empty(len(pieces))
            texts = [prompt.replace("[Y]", " ".join(["[MASK]"] * n)) for n in groups]
            ids = tokenizer(texts, padding=True, return_tensors="pt")
            with torch.inference_mode():
                states = model.base_model(**ids).last_hidden_state
                at = ids["input_ids"] == tokenizer.mask_token_id
                logs = model.cls(states[at]).log_softmax(-1).split([*groups])
            for log, (n, tokens) in zip(logs, groups.items(), strict=True):
                means[by_length[n]] = log.gather(1, tokens.T).mean(0)
            means.topk(10)

    note = f"{CANDIDATES:,} candidates; a row for each number of masks, one batch a query"
    return "mask_average", 4, ours, seconds(simple) / 4, note


def bench_optiprompt(folder: Path) -> Figure:
    """Training, a step of 16 examples counted as 16 queries."""
    rows = queries(32).assign(relation="r", subset="all", answer_ids=[["A", "B"]] * 32)
    chosen = Optiprompt.Settings(epochs=1)
    method = Optiprompt(folder, chosen, CPU, 0)
    examples = method._examples(rows)  # two a query: four steps
    vectors = soft.token_embeddings(method.model, [5] * chosen.vectors).requires_grad_()
    with soft.install_vectors(method.model, vectors):
        training = method._training(examples, vectors, StateFile(None))
        ours = seconds(training.epoch) / len(examples)
    model = plain(folder, "masked").model
    model.train().requires_grad_(False)
    embed = model.get_input_embeddings()
    learnt = torch.nn.Parameter(embed.weight[[5] * chosen.vectors].clone())
    optimizer = torch.optim.Adam([learnt], lr=chosen.learning_rate)
    first = embed.num_embeddings  # ids from here on stand for the new vectors

    def simple() -> None:
        for start in range(0, len(examples), chosen.batch):
            batch = examples[start : start + chosen.batch]
            ids, attention = pad_rows([row for row, _, _ in batch], 0, torch.device("cpu"))
            words = embed(ids.clamp(max=first - 1))
            words[ids >= first] = learnt[ids[ids >= first] - first]
            states = model.base_model(inputs_embeds=words, attention_mask=attention)
            at = [(row, place) for row, (_, places, _) in enumerate(batch) for place in places]
            logits = model.cls(states.last_hidden_state[tuple(zip(*at, strict=True))])
            right = torch.tensor([token for *_, tokens in batch for token in tokens])
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits, right).backward()
            optimizer.step()

    note = "training; Adam over the vectors alone, head at the masks"
    return "optiprompt", len(examples), ours, seconds(simple) / len(examples), note


def bench_generative(folder: Path) -> Figure:
    query_table = queries(8)
    method = Generative(folder, Generative.Settings(), CPU, 0)
    ours = seconds(lambda: method.predict(Task("bench", query_table, candidates(10), 10), "")) / 8
    slow = plain(folder, "seq2seq")
    cap = method._length_limit([], sorted(a for row in query_table["answers"] for a in row))
    prompts = [prompt.replace("[Y]", "<extra_id_0>") for prompt in query_table["prompt"]]

    def simple() -> None:
        ids = slow.tokenizer(prompts, padding=True, return_tensors="pt")
        slow.model.generate(**ids, num_beams=10, num_return_sequences=10, max_new_tokens=cap)

    note = f"`generate` in one batch, {cap} new tokens"
    return "generative", 8, ours, seconds(simple) / 8, note


def bench_answering(folder: Path) -> Figure:
    """Free answers behind ten told facts."""
    model, count = load(folder, "causal"), 4
    query_table, example_table = queries(count), queries(10 * count)
    facts = [prompt.replace("[Y]", "aspirin") for prompt in example_table["prompt"]]
    texts = [
        "\n".join([*facts[10 * i : 10 * (i + 1)], prompt])
        for i, prompt in enumerate(query_table["prompt"])
    ]
    names = [*query_table["query_id"]]
    slots = prompt_texts.slots(model, texts, names, "\n", has_start=False)
    way = writing.WritingSettings(10, 0, None, cap=10, own_settings=False, seed=0)
    ours = seconds(lambda: writing.write(model, [(slot, ()) for slot in slots], names, way)) / count
    slow = plain(folder, "causal").model
    longest = max(len(slot.before) for slot in slots)

    def simple() -> None:
        rows = [[0] * (longest - len(slot.before)) + [*slot.before] for slot in slots]
        seen = [
            [int(place >= longest - len(slot.before)) for place in range(longest)] for slot in slots
        ]
        slow.generate(
            torch.tensor(rows), attention_mask=torch.tensor(seen), num_beams=10,
            num_return_sequences=10, max_new_tokens=10,
        )  # fmt: skip

    note = f"`generate` in one batch, prompts of up to {longest} tokens"
    return "answering", count, ours, seconds(simple) / count, note


def bench_rrf(folder: Path) -> Figure:
    """MRREL's rows of MedLAMA's relations and their atoms' names; queries are rows of both."""
    umls.generate(folder, RRF_ROWS)
    relations, atoms = [*RELATIONS], ["AUI1", "AUI2"]
    form: dict[str, Any] = {"separator": "|", "quote_char": None, "has_header": False}
    form |= {"infer_schema": False, "row_index_name": "line"}

    def run() -> int:
        triples = rrf.read_mrrel(folder / "umls", atoms, relations=relations)
        used = pl.concat([triples[name] for name in atoms]).unique().rename("AUI").to_frame()
        return triples.height + rrf.read_mrconso(folder / "umls", ["AUI", "STR"], among=used).height

    def simple() -> int:
        table = pl.scan_csv(folder / "umls/MRREL.RRF", new_columns=[*rrf.MRREL, "end"], **form)
        triples = table.filter(pl.col("RELA").is_in(relations)).select("line", *atoms)
        rows = triples.collect(engine="streaming")
        used = pl.concat([rows[name] for name in atoms]).unique().rename("AUI").to_frame()
        table = pl.scan_csv(folder / "umls/MRCONSO.RRF", new_columns=[*rrf.MRCONSO, "end"], **form)
        names = table.join(used.lazy(), on="AUI", how="semi").select("AUI", "STR")
        return rows.height + names.collect(engine="streaming").height

    counts: list[int] = []
    used = [seconds(lambda: counts.append(way())) for way in (run, simple) * 2]  # noqa: B023
    assert len({*counts}) == 1
    rows = RRF_ROWS + RRF_ROWS // 5
    note = "a Polars scan, which checks no row"  # the first of each is warm-up
    return "RRF", rows, used[2] / rows, used[3] / rows, note


BENCHES: dict[str, tuple[Callable[..., Any], Callable[[Path], Path]]] = {
    "encode": (bench_encode, bert),
    "fill_mask": (bench_fill_mask, bert),
    "mask_average": (bench_mask_average, bert),
    "optiprompt": (bench_optiprompt, bert),
    "generative": (bench_generative, t5),
    "answering": (bench_answering, gpt2),
    "rrf": (bench_rrf, lambda folder: folder),
}


def run(which: str) -> Figure:
    """One method's figure, in a process of its own."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    use_threads()
    torch.manual_seed(0)
    bench, make = BENCHES[which]
    with tempfile.TemporaryDirectory() as folder:
        return bench(make(Path(folder)))


def main() -> None:
    """Print a line a method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", default=list(BENCHES))
    options = parser.parse_args()
    print(f"{'method':<20}{'queries':>8}{'s/query':>10}{'queries/s':>11}{'ratio':>8}  against")
    for which in options.methods:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            label, count, ours, theirs, note = pool.apply(run, (which,))
        figures = f"{count:>8}{ours:>10.3g}{1 / ours:>11.3g}{theirs / ours:>7.1f}×"
        print(f"{label:<20}{figures}  {note}", flush=True)


if __name__ == "__main__":
    main()
