"""What a GPU makes of the work: ratios within one run, and shares of the card's own matrix rate.

    python -m bench.gpu                      # some minutes on one GPU
    python -m bench.gpu --names 500          # fewer names, to try it out

Models have random weights and the sizes of BERT-base and SmolLM2-135M; names are made up, and as
long as MedLAMA's. The causal model first learns the names (not the facts) for a few hundred steps.
A share of the matrix rate is 2 operations a weight and token (6 where weights are trained) over the
time, by the rate of a product of two matrices of 8,192 rows in the same precision. The time is that
of the whole call: making tokens and batches, which is work of the processor, included. Without a
GPU it says so, and ends with status 0.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import torch
import transformers

from bench import made
from medprobe.core.params import EngineParams
from medprobe.engine import causal
from medprobe.engine.encode import encode
from medprobe.engine.load import Model, load
from medprobe.extensions.likelihood.likeliest import NameTries, find_ahead
from medprobe.extensions.likelihood.reader import Reader
from medprobe.methods import Task
from medprobe.methods.mask_average import MaskAverage
from medprobe.papers.medlama.rewiring import RewireSettings, Rewiring, info_nce

GPU: Final = EngineParams(device="cuda")
LENGTH: Final = 25  # tokens of a name at most, the paper's
SIZE: Final = 8192  # of the matrices whose product is the card's rate
QUERIES: Final = 1000  # of the proof: as many as a relation of MedLAMA has
LEARNING: Final = {"steps": 300, "batch": 256, "learning_rate": 6e-4}


def seconds(work: Callable[[], Any], repeats: int = 1) -> float:
    """Seconds of one call, the GPU's work included."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


def matrix_rate(dtype: torch.dtype) -> float:
    """Operations a second of a matrix product of random numbers."""
    one, other = (torch.randn(SIZE, SIZE, device="cuda").to(dtype) for _ in range(2))
    seconds(lambda: one @ other, 3)  # warm
    return 2 * SIZE**3 / seconds(lambda: one @ other, 20)


def weights(model: torch.nn.Module) -> int:
    """Weights that each token meets: all but those of embeddings."""
    tables = [part for part in model.modules() if isinstance(part, torch.nn.Embedding)]
    embedded = sum(table.weight.numel() for table in tables)
    return sum(parameter.numel() for parameter in model.parameters()) - embedded


def count_tokens(tokenizer: Any, texts: Sequence[str]) -> int:
    """Tokens of names that are cut at 25."""
    return sum(map(len, tokenizer(texts, truncation=True, max_length=LENGTH)["input_ids"]))


def report(work: str, rate: str, ratio: str, share: float) -> None:
    """Print a row of the table."""
    print(f"| {work} | {rate} | {ratio} | {share:.1%} |", flush=True)


def padded_vectors(slow: Model, texts: Sequence[str]) -> torch.Tensor:
    """The straightforward way: batches of 128 in the order given, padded to 25 tokens."""
    vectors = []
    for start in range(0, len(texts), 128):
        form: dict[str, Any] = {"padding": "max_length", "max_length": LENGTH}
        batch = slow.tokenizer(
            texts[start : start + 128], truncation=True, return_tensors="pt", **form
        ).to("cuda")
        with torch.no_grad():
            vectors.append(slow.model(**batch).last_hidden_state[:, 0].float().cpu())
    return torch.cat(vectors)


def bench_encode(folder: Path, texts: list[str], rates: dict[str, float]) -> None:
    """Vectors of names, against padded batches of the library in the same precision."""
    for precision, rate in rates.items():
        model = load(folder, "encoder", EngineParams(device="cuda", precision=precision))
        slow = made.plain(folder, "encoder")
        slow.model.to("cuda", model.model.dtype)
        encode(model, texts[:2000], LENGTH), padded_vectors(slow, texts[:2000])  # warm
        vectors: list[Any] = []
        ours = seconds(lambda: vectors.append(encode(model, texts, LENGTH)))  # noqa: B023
        theirs = seconds(lambda: vectors.append(padded_vectors(slow, texts).numpy()))  # noqa: B023
        tokens = count_tokens(model.tokenizer, texts)
        report(
            f"encoding names, {precision}",
            f"{len(texts) / ours:,.0f} names a second",
            f"{theirs / ours:.1f}×; vectors within {abs(vectors[0] - vectors[1]).max():.0e}",
            2 * weights(model.model) * tokens / ours / rate,
        )


def bench_rewire(folder: Path, texts: list[str], rate: float) -> None:
    """A step of 192 pairs, against both sides padded to 48 tokens."""
    settings = RewireSettings(steps=12, checkpoint_every=12)
    model = load(folder, "encoder", GPU)
    pairs = list(zip(texts, reversed(texts), strict=True))[: settings.batch * settings.steps]
    with tempfile.TemporaryDirectory() as scratch:
        rewiring = Rewiring(model, pairs, settings, seed="gpu", folder=Path(scratch))
        rewiring._step(1)  # warm: it measures the memory, too
        steps = iter(range(2, settings.steps + 1))
        ours = seconds(lambda: rewiring._step(next(steps)), 10)
        tokens = sum(len(row) for rows in rewiring.steps[1:11] for row in rows) / 10
    slow = made.plain(folder, "encoder")
    slow.model.to("cuda").train()
    adam = torch.optim.AdamW(slow.model.parameters(), lr=settings.learning_rate)

    def straightforward() -> None:
        form: dict[str, Any] = {"padding": "max_length", "max_length": settings.max_length}
        sides = zip(*pairs[: settings.batch], strict=True)
        texts = [text for side in sides for text in side]
        batch = slow.tokenizer(texts, truncation=True, return_tensors="pt", **form).to("cuda")
        adam.zero_grad()
        info_nce(slow.model(**batch).last_hidden_state[:, 0], settings.temperature).backward()
        adam.step()

    straightforward()
    theirs = seconds(straightforward, 10)
    report(
        "a rewiring step of 192 pairs, float32",
        f"{ours:.3f} s",
        f"{theirs / ours:.1f}×",
        6 * weights(model.model) * tokens / ours / rate,
    )


def bench_mask_average(folder: Path, texts: list[str], rate: float) -> None:
    """Queries over all names, against a row for each name in batches of 512."""
    count, sample = 256, random.Random(0).sample(texts, min(len(texts), 2048))
    queries, offered = made.queries(2 * count), made.candidates(1).iloc[:0]
    offered = offered.assign(name=[]).reindex(range(len(texts))).assign(name=texts, type="")
    method = MaskAverage(folder, MaskAverage.Settings(), GPU, 0)
    method.predict(Task("gpu", queries[count:], offered, 10), "")  # warm
    ours = seconds(lambda: method.predict(Task("gpu", queries[:count], offered, 10), "")) / count
    slow = made.plain(folder, "masked")
    slow.model.to("cuda")
    prompt, mask = queries["prompt"][0], slow.tokenizer.mask_token

    def straightforward() -> None:
        for start in range(0, len(sample), 512):
            names = sample[start : start + 512]
            pieces = slow.tokenizer(names, add_special_tokens=False)["input_ids"]
            filled = [prompt.replace("[Y]", " ".join([mask] * len(p))) for p in pieces]
            batch = slow.tokenizer(filled, padding=True, return_tensors="pt").to("cuda")
            with torch.no_grad():
                log_probs = slow.model(**batch).logits.log_softmax(-1)
            at = [row.nonzero()[:, 0] for row in batch["input_ids"] == slow.tokenizer.mask_token_id]
            for row, (places, tokens) in enumerate(zip(at, pieces, strict=True)):
                log_probs[row, places, tokens].mean()

    straightforward()
    theirs = seconds(straightforward) * len(texts) / len(sample)
    longest = max(map(len, slow.tokenizer(texts, add_special_tokens=False)["input_ids"]))
    words = len(slow.tokenizer(prompt.replace("[Y]", ""))["input_ids"])
    tokens = sum(words + masks for masks in range(1, 1 + longest))
    report(
        f"mask average over {len(texts):,} names, float32",
        f"{1 / ours:,.1f} queries a second",
        f"{theirs / ours:,.0f}×, scaled from {len(sample):,} names",
        2 * weights(method.model.model) * tokens / ours / rate,
    )


def learnt_causal(folder: Path, texts: list[str]) -> Path:
    """A model of SmolLM2-135M's size that has learnt the names in prompts."""
    tokenizer = made.gpt2_tokenizer()
    tokenizer.save_pretrained(folder)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
        num_attention_heads=9, num_key_value_heads=3, tie_word_embeddings=True,
        max_position_embeddings=2048, bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).to("cuda")
    adam = torch.optim.AdamW(model.parameters(), lr=LEARNING["learning_rate"], fused=True)
    rng = random.Random(0)
    for _ in range(int(LEARNING["steps"])):
        filled = [
            f"{rng.choice(texts)} might treat {rng.choice(texts)} .{tokenizer.eos_token}"
            for _ in range(int(LEARNING["batch"]))
        ]
        tokenizer.pad_token = tokenizer.eos_token
        batch = tokenizer(filled, padding=True, return_tensors="pt").to("cuda")
        labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(**batch, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
    print(f"the causal model's loss after {LEARNING['steps']} steps: {loss.item():.2f}")
    model.save_pretrained(folder)
    return folder


def bench_proof(folder: Path, texts: list[str], rate: float) -> None:
    """Whether an answer is among the ten likeliest, against scoring every name without sharing."""
    model = load(folder, "causal", GPU)
    prompts = made.queries(QUERIES)["prompt"].tolist()
    slots = causal.prompt_slots(model, prompts, prompts)
    tries = NameTries(model.tokenizer, texts)
    rng = random.Random(1)
    answers = [rng.sample(range(len(texts)), 2) for _ in slots]
    readers: list[Reader] = []

    def prove(count: int) -> None:
        options: dict[str, Any] = {"answers": answers[:count], "on_reader": readers.append}
        find_ahead(model, slots[:count], prompts[:count], tries, 10, **options)

    prove(4)  # warm
    ours = seconds(lambda: prove(QUERIES))
    read = sum(readers[-1].tokens_by_prompt)
    sample = rng.sample(texts, min(len(texts), 4096))
    rows = [model.tokenizer(prompts[0].replace("[Y]", name))["input_ids"] for name in sample]
    sizes = sum(map(len, rows))

    def straightforward() -> None:
        for start in range(0, len(rows), 256):
            batch = model.tokenizer.pad(
                {"input_ids": rows[start : start + 256]}, return_tensors="pt"
            ).to("cuda")
            with torch.no_grad():
                log_probs = model.model(**batch).logits[:, :-1].log_softmax(-1)
            log_probs.gather(2, batch["input_ids"][:, 1:, None])

    model.tokenizer.pad_token = model.tokenizer.eos_token
    straightforward()
    theirs = seconds(straightforward) * len(texts) / len(sample)
    every = sizes * len(texts) / len(sample)
    report(
        f"accuracy by proof among {len(texts):,} names, float32",
        f"{QUERIES / ours:,.1f} queries, {read / ours:,.0f} tokens a second",
        f"{theirs * QUERIES / ours:,.0f}×, scaled from {len(sample):,} names; "
        f"{every * QUERIES / read:,.0f}× fewer tokens",
        2 * (weights(model.model) + model.model.lm_head.weight.numel()) * read / ours / rate,
    )


def main() -> None:
    """Print one report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=22_923, help="names to encode and to rank")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no GPU is here, so nothing was measured")
        sys.exit(0)
    torch.manual_seed(0)
    rates = {name: matrix_rate(getattr(torch, name)) for name in ("float32", "bfloat16")}
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, ", end="")
    print(f"transformers {transformers.__version__}; a matrix product: ", end="")
    print(", ".join(f"{rate / 1e12:.0f} TFLOP/s in {name}" for name, rate in rates.items()))
    print("| work | rate | against the straightforward way | share of the matrix rate |")
    print("| --- | --- | --- | --- |")
    texts = made.names(options.names, 0)
    random.Random(0).shuffle(texts)
    with tempfile.TemporaryDirectory() as scratch:
        bert = made.bert(Path(scratch, "bert"))
        bench_encode(bert, texts, rates)
        bench_rewire(bert, texts, rates["float32"])
        bench_mask_average(bert, texts, rates["float32"])
        bench_proof(learnt_causal(Path(scratch, "causal"), texts), texts, rates["float32"])


if __name__ == "__main__":
    main()
