"""What tests of probing methods share: queries, candidates, and slow, obvious building blocks."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from helpers import tiny
from medprobe import methods
from medprobe.core.answers import exact
from medprobe.core.params import EngineParams
from medprobe.methods import Task

ARCHITECTURES = (*tiny.MASKED, "bert-cased")
# One of each kind where the engine's tests cover all: of tokenizers, and of causal models' caches.
MASKED = ("bert-cased", "roberta", "albert")
CAUSAL = ("gpt2", "llama", "gemma3")
SEQ2SEQ = ("t5", "bart")
NAMES = (
    "hepatitis B",
    "Karsten syndrome",
    "Karsten Syndrome",
    "acute renal failure",
    "Chronic pain",
    "SNCA",
    "type 2 diabetes mellitus",
    "influenza",
    "t(8;21)(q22;q22)",
    "Naïve fever",
)
PROMPTS = (
    "Velotrine treats [Y] .",
    "[Y] occurs after influenza virus infection .",
    "Decreased platelet aggregation ([Y]) may prevent pain.",
    "The SNCA gene was mapped to [Y] in adults and children with a much longer prompt .",
)


def queries(prompts: Sequence[str] = PROMPTS, answers: Sequence[str] = NAMES[:2]) -> pd.DataFrame:
    """One query a prompt, all with the same answers."""
    return pd.DataFrame(
        {
            "query_id": [f"q{i}" for i in range(len(prompts))],
            "benchmark": "toy",
            "relation": "r",
            "subject": "Velotrine",
            "subject_id": "C1",
            "prompt": list(prompts),
            "answers": [list(answers)] * len(prompts),
            "answer_ids": [[f"A{i}" for i in range(len(answers))]] * len(prompts),
            "subset": "all",
        }
    )


def candidates(names: Sequence[str] = NAMES) -> pd.DataFrame:
    """A candidate a name."""
    ids = [f"A{i}" for i in range(len(names))]
    return pd.DataFrame({"name": list(names), "id": ids, "type": "", "subset": "all"})


def task(
    queries: pd.DataFrame, candidates: pd.DataFrame, k: int, normalise: Callable[[str], str] = exact
) -> Task:
    """One task over all queries and candidates."""
    return Task("task", queries, candidates, k, normalise=normalise)


def check_ranks_stay(
    method: str, checkpoint: Path, settings: Mapping[str, Any] | None = None, pass_: Any = ""
) -> None:
    """Fail unless a method's ranks are the same with small and large batches, and on the GPU."""
    plugin = methods.find(method)
    names = [name for name in NAMES if not name.endswith(")")]
    engines = [EngineParams(device="cpu", token_budget=budget) for budget in (64, 4096)]
    if torch.cuda.is_available():
        engines.append(EngineParams(device="cuda"))
    ranked = []
    for engine in engines:
        prober = plugin(checkpoint, plugin.Settings(**(settings or {})), engine, 0)
        table = prober.predict(task(queries(), candidates(names), 5), pass_)
        ranked.append(table[["variant", "query_id", "rank", "prediction"]])
    for other in ranked[1:]:
        pd.testing.assert_frame_equal(other, ranked[0])


def causal_ids(tokenizer: Any, text: str, *, answer_first: bool = False) -> list[int]:
    """Token ids of a text as calling the tokenizer gives them.

    Before an answer that nothing precedes is the token that begins a text, or else ends one.
    """
    ids: list[int] = tokenizer(text)["input_ids"]
    if answer_first and ids == tokenizer(text, add_special_tokens=False)["input_ids"]:
        marks = [tokenizer.bos_token_id, tokenizer.eos_token_id]
        return [next(mark for mark in marks if mark is not None), *ids]
    return ids


def masked_ids(tokenizer: Any, prompt: str, count: int) -> list[int]:
    """Token ids of a prompt with masks in its slot; the blank before the slot is the answer's."""
    text = prompt.replace(" [Y]", "[Y]").replace("[Y]", tokenizer.mask_token * count)
    ids: list[int] = tokenizer(text)["input_ids"]
    return ids


def piece_ids(tokenizer: Any, prompt: str, name: str) -> list[int]:
    """Token ids of a name in a prompt's slot: those of the whole text in the name or its blank."""
    start = len(prompt[: prompt.index("[Y]")].rstrip())
    encoded = tokenizer(
        prompt.replace("[Y]", name), add_special_tokens=False, return_offsets_mapping=True
    )
    end = prompt.index("[Y]") + len(name)
    spans = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
    return [i for i, (low, high) in spans if high > start and low < end]


@torch.no_grad()
def log_probs(model: Any, ids: Sequence[int]) -> torch.Tensor:
    """Log-probabilities at all positions of one text, (positions, vocabulary)."""
    return model(torch.tensor([ids])).logits[0].float().log_softmax(-1)


def same(actual: pd.DataFrame, expected: pd.DataFrame, tolerance: float = 1e-4) -> None:
    """Fail unless two prediction tables have the same rows in the same order."""
    columns = [c for c in expected if c != "score"]
    pd.testing.assert_frame_equal(actual[columns], expected[columns])
    assert (actual["score"] - expected["score"]).abs().max() < tolerance
