"""Queries a second of the methods, and names encoded, against straightforward implementations.

    python -m bench.methods           # a few minutes on two free cores

Models have random weights and the sizes of BERT-base, GPT-2 and T5-base; names and prompts are as
long as MedLAMA's. Straightforward is: one query at a time, one row a candidate or beam, the head
over all positions. Where that takes hours it runs on a few candidates and its time is scaled up by
the number of rows ("scaled").
"""

import argparse
import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import torch

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
from medprobe.methods.xfactr import Xfactr

CANDIDATES = 5_000  # for mask average
NAMES, LENGTH = 1024, 25  # to encode, each of so many tokens at most


def seconds(work: Callable[[], Any]) -> float:
    """CPU seconds, which other work on the machine changes little."""
    start = time.process_time()
    work()
    return time.process_time() - start


def masked_model(folder: Path) -> tuple[Any, Any]:
    model = plain(folder, "masked")
    return model.tokenizer, model.model


Figure = tuple[str, int, float, float, str]  # method, queries, s a query: ours, straightforward


def bench_encode(folder: Path) -> Figure:
    """Names in batches of 128 as they come, padded to 25 tokens, all layers kept."""
    texts = names(NAMES, 0)
    random.Random(0).shuffle(texts)
    model, slow = load(folder, "encoder", CPU), plain(folder, "encoder")
    encode(model, texts[:64], LENGTH)  # warm
    vectors: list[Any] = []
    ours = seconds(lambda: vectors.append(encode(model, texts, LENGTH))) / NAMES

    def straightforward() -> None:
        states = []
        for start in range(0, NAMES, 128):
            batch = texts[start : start + 128]
            form = {"padding": "max_length", "max_length": LENGTH, "return_tensors": "pt"}
            tokens = slow.tokenizer(batch, truncation=True, **form)
            with torch.no_grad():
                output = slow.model(**tokens, output_hidden_states=True)
            states.append(output.hidden_states[-1][:, 0])
        vectors.append(torch.cat(states).numpy())

    theirs = seconds(straightforward) / NAMES
    apart = abs(vectors[0] - vectors[1]).max()
    note = f"batches of 128, padded to {LENGTH} tokens; vectors within {apart:.0e}"
    return "encode", NAMES, ours, theirs, note


def bench_fill_mask(folder: Path) -> Figure:
    query_table = queries(128)
    method = FillMask(folder, FillMask.Settings(), CPU, 0)
    method.predict(Task("bench", query_table, candidates(10), 10), "")  # as the other way, warm
    ours = seconds(lambda: method.predict(Task("bench", query_table, candidates(10), 10), "")) / 128
    tokenizer, model = masked_model(folder)

    def straightforward() -> None:
        for prompt in query_table["prompt"][:16]:
            ids = tokenizer(prompt.replace("[Y]", "[MASK]"), return_tensors="pt")
            with torch.no_grad():
                probabilities = model(**ids).logits.softmax(-1)
            place = ids["input_ids"][0].tolist().index(tokenizer.mask_token_id)
            probabilities[0, place].sort(descending=True)

    straightforward()
    return "fill_mask", 128, ours, seconds(straightforward) / 16, "batches of one"


def bench_mask_average(folder: Path) -> Figure:
    query_table, offered, sample_size = queries(4), candidates(CANDIDATES), 64
    method = MaskAverage(folder, MaskAverage.Settings(), CPU, 0)
    ours = seconds(lambda: method.predict(Task("bench", query_table, offered, 10), "")) / 4
    tokenizer, model = masked_model(folder)
    sample = random.Random(0).sample(offered["name"].tolist(), sample_size)

    def straightforward() -> None:
        prompt = query_table["prompt"][0]
        for start in range(0, sample_size, 32):
            pieces = [
                tokenizer(n, add_special_tokens=False)["input_ids"]
                for n in sample[start : start + 32]
            ]
            texts = [prompt.replace("[Y]", " ".join(["[MASK]"] * len(p))) for p in pieces]
            ids = tokenizer(texts, padding=True, return_tensors="pt")
            with torch.no_grad():
                log_probs = model(**ids).logits.log_softmax(-1)
            for row, tokens in enumerate(pieces):
                at = (ids["input_ids"][row] == tokenizer.mask_token_id).nonzero()[:, 0].tolist()
                sum(log_probs[row, p, t].item() for p, t in zip(at, tokens, strict=True))

    theirs = seconds(straightforward) * CANDIDATES / sample_size
    note = f"{CANDIDATES:,} candidates; batches of 32 rows, scaled from {sample_size} rows"
    return "mask_average", 4, ours, theirs, note


def bench_xfactr(folder: Path) -> list[Figure]:
    figures = []
    query_table, count = queries(8), 1
    task = Task("bench", query_table, candidates(10), 10)
    method = Xfactr(folder, Xfactr.Settings(), CPU, 0)
    method.predict(Task("bench", queries(9).tail(1), candidates(10), 10), "confidence")  # warm
    tokenizer, model = masked_model(folder)
    for decoding in method.passes():
        ours = seconds(lambda: method.predict(task, decoding)) / 8  # noqa: B023
        calls: list[int] = []
        method.filling_cache.clear()
        _count_calls(method, query_table[:count], decoding, calls)

        def straightforward() -> None:
            for length in calls:  # noqa: B023
                ids = torch.full((1, length), tokenizer.mask_token_id)
                model(ids).logits.log_softmax(-1).topk(5)  # gradients are kept, as peers do

        model(torch.full((1, 16), tokenizer.mask_token_id))
        note = f"{len(calls) // count} calls a query, batches of one"
        figures.append((f"xfactr {decoding}", 8, ours, seconds(straightforward) / count, note))
    return figures


def _count_calls(
    method: Xfactr, query_table: pd.DataFrame, decoding: str, calls: list[int]
) -> None:
    """The lengths of all inputs that a loop over queries, numbers of masks and beams would read."""
    from medprobe.engine import filling

    guess = filling._predict_masks

    def counting(model: Any, slots: Any, searches: Any, *rest: Any) -> Any:
        for search in searches:
            calls.extend(len(slots[search.prompt].fill(ids)) for ids in search.inputs)
        return guess(model, slots, searches, *rest)

    filling._predict_masks = counting
    try:
        method.predict(Task("bench", query_table, candidates(10), 10), decoding)
    finally:
        filling._predict_masks = guess


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
    tokenizer, model = masked_model(folder)
    model.train()
    model.resize_token_embeddings(len(tokenizer) + chosen.vectors)  # a new word a vector
    words = model.get_input_embeddings().weight
    optimizer = torch.optim.Adam([words], lr=chosen.learning_rate)

    def straightforward() -> None:
        for start in range(0, 32, chosen.batch):
            batch = examples[start : start + chosen.batch]
            ids, attention = pad_rows([row for row, _, _ in batch], 0, torch.device("cpu"))
            labels = torch.full_like(ids, -100)
            for place, (_, positions, tokens) in enumerate(batch):
                labels[place, positions] = torch.tensor(tokens)
            optimizer.zero_grad()
            model(ids, attention_mask=attention, labels=labels).loss.backward()
            words.grad[: len(tokenizer)] = 0  # only the new words learn
            optimizer.step()

    note = "training; Adam over the whole vocabulary, gradients for all weights"
    return "optiprompt", len(examples), ours, seconds(straightforward) / 32, note


def bench_generative(folder: Path) -> Figure:
    query_table, count = queries(8), 1
    method = Generative(folder, Generative.Settings(), CPU, 0)
    ours = seconds(lambda: method.predict(Task("bench", query_table, candidates(10), 10), "")) / 8
    slow = plain(folder, "seq2seq")
    tokenizer, model = slow.tokenizer, slow.model
    cap = method._length_limit([], sorted(a for row in query_table["answers"] for a in row))

    def straightforward(most: int) -> None:
        for prompt in query_table["prompt"][:count]:
            ids = tokenizer(prompt.replace("[Y]", "<extra_id_0>"), return_tensors="pt")["input_ids"]
            model.generate(ids, num_beams=10, num_return_sequences=10, max_new_tokens=most)

    same_cap = seconds(lambda: straightforward(cap)) / count
    theirs = seconds(lambda: straightforward(80)) / count
    note = f"batches of one, 80 new tokens; {same_cap / ours:.1f}× at the same {cap} tokens"
    return "generative", 8, ours, theirs, note


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

    def straightforward() -> None:
        for slot in slots:
            ids = torch.tensor([slot.before])
            slow.generate(ids, num_beams=10, num_return_sequences=10, max_new_tokens=10)

    theirs = seconds(straightforward) / count
    read = sum(len(slot.before) for slot in slots) // count
    return "answering", count, ours, theirs, f"`generate`, prompts of {read} tokens read ten times"


BENCHES: dict[str, tuple[Callable[..., Any], Callable[[Path], Path]]] = {
    "encode": (bench_encode, bert),
    "fill_mask": (bench_fill_mask, bert),
    "mask_average": (bench_mask_average, bert),
    "xfactr": (bench_xfactr, bert),
    "optiprompt": (bench_optiprompt, bert),
    "generative": (bench_generative, t5),
    "answering": (bench_answering, gpt2),
}


def run(which: str) -> list[Figure]:
    """One method's figures, in a process of its own."""
    use_threads()
    torch.manual_seed(0)
    bench, make = BENCHES[which]
    with tempfile.TemporaryDirectory() as folder:
        place = make(Path(folder))
        figures = bench(place)
    return figures if isinstance(figures, list) else [figures]


def main() -> None:
    """Print a line a method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", default=list(BENCHES))
    options = parser.parse_args()
    print(f"{'method':<20}{'queries':>8}{'s/query':>10}{'queries/s':>11}{'ratio':>8}  against")
    for which in options.methods:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            for label, count, ours, theirs, note in pool.apply(run, (which,)):
                figures = f"{count:>8}{ours:>10.3f}{1 / ours:>11.3g}{theirs / ours:>7.1f}×"
                print(f"{label:<20}{figures}  {note}", flush=True)


if __name__ == "__main__":
    main()
