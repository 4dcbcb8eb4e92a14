"""A small model that has learnt MedLAMA's names: what the search of names is measured on.

A byte-level BPE of 12,000 tokens on MedLAMA's released prompts and names, and a GPT-2 of 4 layers
of width 256, trained on filled prompts. 1,500 of the 19,000 queries are held out.
"""

import os
import random
from pathlib import Path
from typing import Any, Final

import pandas as pd
import torch
import transformers
from tokenizers import ByteLevelBPETokenizer

from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.tables import SLOT, BenchmarkTables
from medprobe.papers.medlama.benchmarks import medlama_released

FOLDER: Final = Path("build/learnt")
RELEASED: Final = "MEDPROBE_RELEASED_DATA"
END: Final = "<|endoftext|>"
HELD_OUT: Final = 1500
STEPS, BATCH, RATE, WARM_UP = 240, 64, 1e-3, 24


def medlama() -> BenchmarkTables:
    """MedLAMA's 19 relations as released.

    Raises:
        BadInput: The released files are not there.
    """
    files = Path(os.environ.get(RELEASED, "")) / "medlama-released" / "2021AA"
    if not files.is_dir():
        remedy = f"set {RELEASED} to the folder that contains medlama-released"
        raise BadInput(files, "no released files of MedLAMA", remedy)
    data = FOLDER.parent / "learnt-data"
    data.mkdir(parents=True, exist_ok=True)
    (data / "medlama").unlink(missing_ok=True)
    (data / "medlama").symlink_to(files.resolve())
    builder = medlama_released.BENCHMARK
    tables: BenchmarkTables = builder.build(data, builder.settings(), 0)
    return tables


def split(tables: BenchmarkTables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The queries of the full set that are trained on, and those held out."""
    queries = tables.queries[tables.queries["subset"] == "full"].sample(frac=1, random_state=0)
    return queries[HELD_OUT:], queries[:HELD_OUT]


def checkpoint(tables: BenchmarkTables) -> Path:
    """The folder of the trained model, which is trained where there is none."""
    if not FOLDER.is_dir():
        with replacing(FOLDER) as scratch:
            train(split(tables)[0], sorted(set(tables.candidates["name"])), scratch)
    return FOLDER


def train(queries: pd.DataFrame, names: list[str], folder: Path) -> None:
    """Train tokenizer and model, five minutes of one core."""
    rng = random.Random(0)
    pieces = ByteLevelBPETokenizer()
    texts = [*queries["prompt"].str.replace(SLOT, "", regex=False), *names]
    pieces.train_from_iterator(texts, vocab_size=12_000, min_frequency=1, special_tokens=[END])
    folder.mkdir(parents=True)
    vocabulary, merges = pieces.save_model(str(folder))
    tokenizer = transformers.GPT2Tokenizer(vocab=vocabulary, merges=merges, model_max_length=128)
    tokenizer.save_pretrained(folder)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=128, n_embd=256, n_layer=4, n_head=4,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = transformers.get_linear_schedule_with_warmup(optimiser, WARM_UP, STEPS)
    pairs = list(zip(queries["prompt"], queries["answers"], strict=True))
    for step in range(STEPS):
        drawn = [pairs[(step * BATCH + i) % len(pairs)] for i in range(BATCH)]
        filled = [END + prompt.replace(SLOT, rng.choice(list(a))) + END for prompt, a in drawn]
        loss = _loss(model, tokenizer(filled)["input_ids"])
        loss.backward()
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        if step % 40 == 39:
            print(f"step {step + 1} of {STEPS}, loss {loss.item():.2f}", flush=True)
    model.save_pretrained(folder)


def _loss(model: Any, rows: list[list[int]]) -> torch.Tensor:
    ids = torch.nn.utils.rnn.pad_sequence([*map(torch.tensor, rows)], batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    labels = ids.masked_fill(torch.arange(ids.shape[1]) >= lengths[:, None], -100)
    loss: torch.Tensor = model(input_ids=ids, labels=labels).loss
    return loss
