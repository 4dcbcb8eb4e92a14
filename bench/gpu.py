"""What a GPU makes of the work: ratios within one run, and shares of the card's own matrix rate.

    python -m bench.gpu                      # on one GPU
    python -m bench.gpu --tiny               # small shapes and few names, to try it on any device

Models have random weights and the sizes of BERT-base, SmolLM2-135M and Llama-7B; names are made up,
and as long as MedLAMA's. The causal models' logits are as wide as a trained model's, so that names
differ in likelihood. One in twenty queries asks about one of the ten likeliest names, as one in
twenty is a hit under SmolLM2. Each row is printed as it is measured, and takes PATIENCE seconds at
most: a search that is not at its end by then is stopped, and its queries are those that its tokens
make by the row before.
A share of the matrix rate is 2 operations a weight and token (6 where weights are trained) over the
time, by the rate of a product of two matrices of 8,192 rows in the same precision. The time is that
of the whole call: making tokens and batches, which is work of the processor, included. Without a
GPU it says so, and ends with status 0.
"""

import argparse
import copy
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import torch
import transformers

from bench import made
from medprobe.core.params import EngineParams
from medprobe.engine import causal
from medprobe.engine.encode import encode
from medprobe.engine.load import Model, device_name, load, token_budget
from medprobe.extensions.likelihood.likeliest import NameTries, find_likeliest
from medprobe.extensions.likelihood.reader import Reader
from medprobe.methods import Task
from medprobe.methods.mask_average import MaskAverage
from medprobe.papers.medlama.rewiring import Rewiring, info_nce
from medprobe.papers.medlama.settings.rewire import RewireSettings

DEVICE: Final = torch.device("cuda" if torch.cuda.is_available() else "cpu")
GPU: Final = EngineParams(device=DEVICE.type)
LENGTH: Final = 25  # tokens of a name at most, the paper's
SPREAD: Final = 3.0  # standard deviation of a causal model's logits
POOLS: Final = {64: 128, 512: 1024, 4096: 4096}  # queries searched together, and in all
LARGE_POOLS: Final = {64: 64, 512: 512, 4096: 4096}  # of the 7B model
HITS: Final = 20  # one query in so many has an answer among the likeliest names
PATIENCE: Final = 35.0  # seconds that a row of the search may take


class TimeIsUpError(Exception):
    """A search took longer than `PATIENCE`."""


@dataclass(frozen=True)
class Size:
    """How much is run."""

    names: int = 22_923
    matrix: int = 8192  # rows of the matrices whose product is the card's rate
    queries: float = 1.0  # share of those above
    causal: Mapping[str, int] = field(default_factory=lambda: SMOLLM2)
    large: Mapping[str, int] = field(default_factory=lambda: LLAMA_7B)


SMOLLM2: Final = {
    "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3,
}  # fmt: skip
LLAMA_7B: Final = {
    "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32,
}  # fmt: skip
TINY: Final = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


def wait() -> None:
    """Wait for the GPU's work."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def seconds(work: Callable[[], Any], repeats: int = 1) -> float:
    """Seconds of one call, the GPU's work included."""
    wait()
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    wait()
    return (time.perf_counter() - start) / repeats


def matrix_rate(dtype: torch.dtype, rows: int) -> float:
    """Operations a second of a matrix product of random numbers."""
    one, other = (torch.randn(rows, rows, device=DEVICE).to(dtype) for _ in range(2))
    seconds(lambda: one @ other, 3)  # warm
    return 2 * rows**3 / seconds(lambda: one @ other, 20)


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
        ).to(DEVICE)
        with torch.no_grad():
            vectors.append(slow.model(**batch).last_hidden_state[:, 0].float().cpu())
    return torch.cat(vectors)


def bench_encode(folder: Path, texts: list[str], rates: dict[str, float]) -> None:
    """Vectors of names, against padded batches of the library in the same precision."""
    for precision, rate in rates.items():
        model = load(folder, "encoder", EngineParams(device=DEVICE.type, precision=precision))
        slow = made.plain(folder, "encoder")
        slow.model.to(DEVICE, model.model.dtype)
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
    slow.model.to(DEVICE).train()
    adam = torch.optim.AdamW(slow.model.parameters(), lr=settings.learning_rate)

    def straightforward() -> None:
        form: dict[str, Any] = {"padding": "max_length", "max_length": settings.max_length}
        sides = zip(*pairs[: settings.batch], strict=True)
        texts = [text for side in sides for text in side]
        batch = slow.tokenizer(texts, truncation=True, return_tensors="pt", **form).to(DEVICE)
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
    slow.model.to(DEVICE)
    prompt, mask = queries["prompt"][0], slow.tokenizer.mask_token

    def straightforward() -> None:
        for start in range(0, len(sample), 512):
            names = sample[start : start + 512]
            pieces = slow.tokenizer(names, add_special_tokens=False)["input_ids"]
            filled = [prompt.replace("[Y]", " ".join([mask] * len(p))) for p in pieces]
            batch = slow.tokenizer(filled, padding=True, return_tensors="pt").to(DEVICE)
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


def made_causal(shape: Mapping[str, int]) -> Model:
    """A model of Llama's kind in bfloat16 with random weights and wide logits, on the device."""
    tokenizer = made.gpt2_tokenizer()
    end = tokenizer.eos_token_id
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=2048, bos_token_id=end, eos_token_id=end,
        pad_token_id=end, **shape,
    )  # fmt: skip
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(DEVICE):
        network = transformers.LlamaForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)
    network.lm_head.weight.data.normal_(std=SPREAD / config.hidden_size**0.5)
    budget = token_budget(DEVICE, config)
    return Model("made", network, tokenizer, DEVICE, torch.bfloat16, 2048, budget)


def in_float32(model: Model) -> Model:
    """A copy of a model with the same weights."""
    network = copy.deepcopy(model.model).float()
    return replace(model, model=network, dtype=torch.float32)


class Proof:
    """Whether an answer is among the ten likeliest names."""

    def __init__(self, model: Model, exact: Model, texts: list[str], queries: int) -> None:
        self.model, self.exact = model, exact
        self.prompts = made.queries(queries)["prompt"].tolist()
        self.slots = causal.prompt_slots(model, self.prompts, self.prompts)
        self.tries = NameTries(model.tokenizer, texts)
        rng = random.Random(1)
        self.answers = [rng.sample(range(len(texts)), 2) for _ in self.slots]
        liked = self.run(0, 1, answers=[[]], ahead=False)[0]
        best = [i for (ranking,) in liked for i, _ in ranking.names]
        for place in range(0, queries, HITS):
            self.answers[place] = [rng.choice(best)]
        self.run(0, min(16, queries))  # warm

    def run(
        self, start: int, end: int, seconds: float = float("inf"), **changes: Any
    ) -> tuple[list[Any], int]:
        """Rankings of some queries, none if time is up before, and the tokens that were read."""
        readers, until = list[Reader](), time.perf_counter() + seconds
        options: dict[str, Any] = {"answers": self.answers[start:end], "ahead": True} | changes

        def watch(reader: Reader) -> None:
            def read(*work: Any) -> Any:
                if time.perf_counter() > until:
                    raise TimeIsUpError
                return Reader.read(reader, *work)

            readers.append(reader)
            vars(reader)["read"] = read

        try:
            rankings = find_likeliest(
                self.model, self.slots[start:end], self.prompts[start:end], self.tries, 10,
                variants=1, exact=lambda: self.exact, on_reader=watch, **options,
            )  # fmt: skip
        except TimeIsUpError:
            rankings = []
        del vars(readers[0])["read"]  # so that the reader's table is freed
        return rankings, readers[0].tokens_read

    def measure(self, name: str, pools: Mapping[int, int], rate: float) -> list[Any]:
        """Print a row for each size of the pool, and return the last rankings."""
        network, tokens_a_query, complete = self.model.model, 0.0, list[Any]()
        used = weights(network) + network.lm_head.weight.numel()
        for pool, wanted in pools.items():
            found: list[Any] = []
            wait()
            begin, tokens, of_found = time.perf_counter(), 0, 0
            for start in range(0, min(wanted, len(self.slots)), pool):
                left = PATIENCE - (time.perf_counter() - begin)
                if left < 0:
                    break
                rankings, read = self.run(start, min(start + pool, len(self.slots)), left)
                found, tokens = found + rankings, tokens + read
                of_found += read if rankings else 0
            wait()
            taken = time.perf_counter() - begin
            tokens_a_query = of_found / len(found) if found else tokens_a_query
            queries = tokens / tokens_a_query if tokens_a_query else 0.0
            hits = sum(bool(ranking.names) for (ranking,) in found)
            report(
                f"{name}, {pool} at a time",
                f"{queries / taken:,.1f} queries, {tokens / taken:,.0f} tokens a second",
                f"{len(found):,} queries to their end, {hits} hits, "
                f"{tokens_a_query:,.0f} tokens a query",
                2 * used * tokens / taken / rate,
            )
            complete = found or complete
        return complete


def straightforward_seconds(model: Model, texts: list[str], prompt: str) -> float:
    """Seconds of a query that scores every name without sharing, scaled from some names."""
    sample = random.Random(1).sample(texts, min(len(texts), 4096))
    model.tokenizer.pad_token = model.tokenizer.eos_token
    rows = [model.tokenizer(prompt.replace("[Y]", name))["input_ids"] for name in sample]

    def work() -> None:
        for start in range(0, len(rows), 256):
            batch = model.tokenizer.pad(
                {"input_ids": rows[start : start + 256]}, return_tensors="pt"
            ).to(DEVICE)
            with torch.no_grad():
                log_probs = model.model(**batch).logits[:, :-1].log_softmax(-1)
            log_probs.gather(2, batch["input_ids"][:, 1:, None])

    work()
    return seconds(work) * len(texts) / len(sample)


def bench_proof(texts: list[str], rates: dict[str, float], size: Size) -> None:
    """Accuracy by proof, in two precisions, whose accuracies are compared, and of a large model."""
    pools = {pool: max(1, int(count * size.queries)) for pool, count in POOLS.items()}
    half = made_causal(size.causal)
    models = {"float32": in_float32(half), "bfloat16": half}
    plain = straightforward_seconds(models["float32"], texts, made.queries(1)["prompt"][0])
    print(f"every name without sharing, float32: {plain:.2f} s a query", flush=True)
    found = {}
    for name, model in models.items():
        proof = Proof(model, models["float32"], texts, max(pools.values()))
        found[name] = proof.measure(f"proof, SmolLM2-135M's size, {name}", pools, rates[name])
    both = [[[i for i, _ in one.names] for (one,) in rankings] for rankings in found.values()]
    same = sum(one == other for one, other in zip(*both, strict=False))
    print(f"names up to the answer are the same in both precisions for {same} of {len(both[0])}")
    del models, half, model, proof
    pools = {pool: max(1, int(count * size.queries)) for pool, count in LARGE_POOLS.items()}
    model = made_causal(size.large)
    proof = Proof(model, model, texts, max(pools.values()))
    proof.measure("proof, Llama-7B's shape, bfloat16", pools, rates["bfloat16"])


def main() -> None:
    """Print one report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="small shapes, on any device")
    parser.add_argument("--proof", action="store_true", help="the search alone")
    options = parser.parse_args()
    if not torch.cuda.is_available() and not options.tiny:
        print("no GPU is here, so nothing was measured")
        sys.exit(0)
    size = Size(500, 256, 0.02, TINY, TINY) if options.tiny else Size()
    torch.manual_seed(0)
    rates = {
        name: matrix_rate(getattr(torch, name), size.matrix) for name in ("float32", "bfloat16")
    }
    print(device_name(DEVICE), f"torch {torch.__version__}", end=", ")
    print(f"transformers {transformers.__version__}; a matrix product: ", end="")
    print(", ".join(f"{rate / 1e12:.2f} TFLOP/s in {name}" for name, rate in rates.items()))
    print("| work | rate | against the straightforward way | share of the matrix rate |")
    print("| --- | --- | --- | --- |", flush=True)
    texts = made.names(size.names, 0)
    random.Random(0).shuffle(texts)
    with tempfile.TemporaryDirectory() as scratch:
        bench_proof(texts, rates, size)
        if not options.proof:
            bert = made.bert(Path(scratch, "bert"))
            bench_encode(bert, texts, rates)
            if not options.tiny:
                bench_rewire(bert, texts, rates["float32"])
                bench_mask_average(bert, texts, rates["float32"])


if __name__ == "__main__":
    main()
