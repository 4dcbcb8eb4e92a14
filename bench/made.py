"""Made-up names and prompts as long as MedLAMA's, and models of real size with random weights.

Straightforward ways run the network of `plain`, this project's that of `engine.load.load`.
"""

import random
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import transformers
from tokenizers import pre_tokenizers

from medprobe.core.params import EngineParams
from medprobe.engine.configuration import Head
from medprobe.engine.inspection import AUTO_CLASSES
from medprobe.engine.load import Model, token_budget

CPU = EngineParams(device="cpu")
SYLLABLES = [a + b + c for a in "bcdfglmnprst" for b in "aeiou" for c in "lmnrstx"]


def name(rng: random.Random) -> str:
    """An invented name: 6 to 7 tokens and 21 characters in the mean, as MedLAMA's are."""
    words = rng.choice((1, 2, 2, 3, 3, 4))
    return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(2, 3))) for _ in range(words))


def names(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return sorted({name(rng) for _ in range(count * 2)})[:count]


def queries(count: int) -> pd.DataFrame:
    subjects, answers = names(count, 1), names(2 * count, 2)
    rows = [
        (f"q{i}", "bench", "may_treat", subject, "C1", f"{subject} might treat [Y] .")
        for i, subject in enumerate(subjects)
    ]
    columns = ["query_id", "benchmark", "relation", "subject", "subject_id", "prompt"]
    table = pd.DataFrame(rows, columns=columns)
    table["answers"] = [answers[2 * i : 2 * i + 2] for i in range(count)]
    return table


def candidates(count: int) -> pd.DataFrame:
    return pd.DataFrame({"name": names(count, 3), "type": ""})


def bert_tokenizer() -> Any:
    """As many tokens as BERT-base has, of syllables."""
    letters = list("abcdefghijklmnopqrstuvwxyz.,()-0123456789")
    words = ["might", "treat", *letters, *SYLLABLES]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *(f"##{w}" for w in words)]
    vocabulary += [f"[unused{i}]" for i in range(30_522 - len(vocabulary))]
    places = {piece: place for place, piece in enumerate(vocabulary)}
    return transformers.BertTokenizer(vocab=places, model_max_length=512)


def bert(folder: Path) -> Path:
    """BERT-base with random weights and a vocabulary of syllables."""
    bert_tokenizer().save_pretrained(folder)
    return _save(transformers.BertForMaskedLM(transformers.BertConfig()), folder)


def gpt2_tokenizer() -> Any:
    """As many tokens as GPT-2 has, of syllables."""
    vocabulary = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges: dict[tuple[str, str], None] = {}
    for start in ("Ġ", ""):
        for word in ("might", "treat", *SYLLABLES):
            piece = start + word
            for end in range(2, len(piece) + 1):
                merges[piece[: end - 1], piece[end - 1]] = None
    vocabulary += [head + tail for head, tail in merges]
    vocabulary += [f"unused{i}" for i in range(50_256 - len(vocabulary))]
    places = {piece: place for place, piece in enumerate([*vocabulary, "<|endoftext|>"])}
    return transformers.GPT2Tokenizer(vocab=places, merges=list(merges), model_max_length=1024)


def gpt2(folder: Path) -> Path:
    """GPT-2 with random weights and a vocabulary of syllables."""
    gpt2_tokenizer().save_pretrained(folder)
    return _save(transformers.GPT2LMHeadModel(transformers.GPT2Config()), folder)


def t5(folder: Path) -> Path:
    """T5-base with random weights and a vocabulary of syllables."""
    words = ["might", "treat", ".", *"abcdefghijklmnopqrstuvwxyz", *SYLLABLES]
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -4.0)]
    pieces += [(piece, -6.0) for word in words for piece in (word, f"▁{word}")]
    pieces += [(f"unused{i}", -20.0) for i in range(32_000 - len(pieces))]
    transformers.T5Tokenizer(vocab=pieces, extra_ids=100).save_pretrained(folder)
    config = transformers.T5Config(
        d_model=768, d_ff=3072, num_layers=12, num_heads=12, vocab_size=32_128,
        decoder_start_token_id=0,
    )  # fmt: skip
    return _save(transformers.T5ForConditionalGeneration(config), folder)


def plain(folder: Path, head: Head) -> Model:
    """A checkpoint as transformers alone loads it."""
    network = AUTO_CLASSES[head].from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    device = torch.device("cpu")
    budget = token_budget(device, network.config)
    return Model("plain", network, tokenizer, device, network.dtype, 512, budget)


def _save(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    return folder
