"""Perplexity of the filled prompts: not a ranking, but how strange a model finds its prompts.

Masked models: pseudo-perplexity, each token masked in turn (Salazar et al., ACL 2020). Causal
models: the perplexity of the tokens from left to right, the first one given the start token where
the model has one. Source of its use here: Shaier et al., section 5.5 and Table 5.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, Section
from medprobe.core.tables import SLOT
from medprobe.engine import causal, load, masked
from medprobe.engine.inspection import Head, inspect
from medprobe.methods import Method, Task


class Perplexity(Method):
    """Gives each query one row: its first answer, with the perplexity of the filled prompt."""

    KINDS = ("masked", "causal")
    METRIC = "perplexity"

    class Settings(Section):
        """Nothing to choose."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        kind: Head = "masked" if "masked" in inspect(checkpoint).kinds else "causal"
        self.model = load.load(checkpoint, kind, engine)
        self.log_probs = pseudo_log_probs if kind == "masked" else causal_log_probs

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """One row a query; `score` is the mean log-probability of its `tokens` tokens.

        Raises BadInput for a sentence that does not fit into the model's window.
        """
        queries = task.queries
        of_texts = self.log_probs(self.model, filled(queries), task.where)
        return pd.DataFrame(
            {
                "variant": "",
                "replicate": "",
                "query_id": queries["query_id"].to_numpy(),
                "rank": 1,
                "prediction": queries["answers"].str[0].to_numpy(),
                "score": [sum(row) / len(row) for row in of_texts],
                "tokens": [len(row) for row in of_texts],
                "perplexity": [perplexity(row) for row in of_texts],
            }
        )

    def reads(self, task: Task, pass_: str) -> list[int]:
        """Of masked models a copy of each sentence for each of its tokens."""
        texts = filled(task.queries)
        if self.log_probs is causal_log_probs:
            return [len(row) - 1 for row in _causal_rows(self.model, texts)]
        encoded = self.model.tokenizer(texts, return_special_tokens_mask=True, verbose=False)
        marks = encoded["special_tokens_mask"]
        return [len(row) for row in marks for special in row if not special]


def perplexity(log_probs: Sequence[float]) -> float:
    """exp(-mean) of the log-probabilities of a sentence's tokens.

    >>> perplexity([math.log(0.5), math.log(0.125)])
    4.0
    """
    return math.exp(-sum(log_probs) / len(log_probs))


def filled(queries: pd.DataFrame) -> list[str]:
    """The sentence of each query: as it stood in its source where the table tells, else the prompt
    with its first answer."""
    if "sentence" in queries:
        return queries["sentence"].tolist()
    pairs = zip(queries["prompt"], queries["answers"], strict=True)
    return [prompt.replace(SLOT, answers[0]) for prompt, answers in pairs]


def pseudo_log_probs(
    model: load.Model, texts: Sequence[str], where: Sequence[str]
) -> list[list[float]]:
    """For each text the log-probability of each of its tokens given all others, special tokens
    aside. `where` names each text in errors."""
    encoded = model.tokenizer(list(texts), return_special_tokens_mask=True, verbose=False)
    rows = _fitting(model, encoded["input_ids"], where)
    groups = [
        [[position] for position, special in enumerate(marks) if not special]
        for marks in encoded["special_tokens_mask"]
    ]
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    log_probs = masked.pseudo_log_likelihood(
        model, [rows[i] for i in order], [groups[i] for i in order], model.token_budget
    )
    return [row for _, row in sorted(zip(order, log_probs, strict=True))]


def causal_log_probs(
    model: load.Model, texts: Sequence[str], where: Sequence[str]
) -> list[list[float]]:
    """For each text the log-probability of each of its tokens given those before it. `where` names
    each text in errors."""
    rows = _fitting(model, _causal_rows(model, texts), where)
    return causal.log_likelihood(model, rows, model.token_budget)


def _causal_rows(model: load.Model, texts: Sequence[str]) -> list[list[int]]:
    start = model.tokenizer.bos_token_id
    encoded = model.tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
    return [ids if start is None else [start, *ids] for ids in encoded]


def _fitting(model: load.Model, rows: list[list[int]], where: Sequence[str]) -> list[list[int]]:
    """The rows, once it is sure that the model can read each of them and has something to say."""
    special = model.tokenizer.num_special_tokens_to_add() if model.tokenizer.mask_token else 1
    for row, name in zip(rows, where, strict=True):
        if len(row) > model.max_length:
            problem = f"the filled prompt has {len(row)} tokens, the model reads {model.max_length}"
            raise BadInput(name, problem, "remove it from the benchmark")
        if len(row) <= special:
            raise BadInput(name, "the filled prompt has no token to score", "remove it")
    return rows
