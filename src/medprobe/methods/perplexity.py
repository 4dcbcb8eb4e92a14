"""Perplexity of the filled prompts: not a ranking, but how strange a model finds its prompts.

Masked models: pseudo-perplexity, each token masked in turn (Salazar et al., ACL 2020). Causal
models: the perplexity of the tokens from left to right, the first one given the start token where
the model has one. Source of its use here: Shaier et al., section 5.5 and Table 5.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from medprobe.core.params import EngineParams, Section
from medprobe.core.tables import SLOT
from medprobe.engine import texts
from medprobe.engine.inspection import Head, inspect
from medprobe.engine.load import load
from medprobe.methods import Method, Task


class Perplexity(Method):
    """Gives each query one row: its first answer, with the perplexity of the filled prompt."""

    KINDS = ("masked", "causal", "chat")
    WHY = "an encoder-decoder model gives a text no probability of its own, only beside another"
    METRIC = "perplexity"

    class Settings(Section):
        """Nothing to choose."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        kind: Head = "masked" if "masked" in inspect(checkpoint).kinds else "causal"
        self.model = load(checkpoint, kind, engine)
        self.log_probs = texts.pseudo_log_probs if kind == "masked" else texts.causal_log_probs

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """One row a query; `score` is the mean log-probability of its `tokens` tokens.

        Raises BadInput for a sentence that does not fit into the model's window.
        """
        queries = task.queries
        token_log_probs = self.log_probs(self.model, filled_prompts(queries), task.query_labels)
        return pd.DataFrame(
            {
                "variant": "",
                "replicate": "",
                "query_id": queries["query_id"].to_numpy(),
                "rank": 1,
                "prediction": queries["answers"].str[0].to_numpy(),
                "score": [sum(row) / len(row) for row in token_log_probs],
                "tokens": [len(row) for row in token_log_probs],
                "perplexity": [perplexity(row) for row in token_log_probs],
            }
        )

    def reads(self, task: Task, pass_: str) -> list[int]:
        """Of masked models a copy of each sentence for each of its tokens."""
        sentences = filled_prompts(task.queries)
        if self.log_probs is texts.causal_log_probs:
            return [len(row) - 1 for row in texts.causal_rows(self.model, sentences)]
        encoded = self.model.tokenizer(sentences, return_special_tokens_mask=True, verbose=False)
        marks = encoded["special_tokens_mask"]
        return [len(row) for row in marks for special in row if not special]


def perplexity(log_probs: Sequence[float]) -> float:
    """exp(-mean) of the log-probabilities of a sentence's tokens.

    >>> perplexity([math.log(0.5), math.log(0.125)])
    4.0
    """
    return math.exp(-sum(log_probs) / len(log_probs))


def filled_prompts(queries: pd.DataFrame) -> list[str]:
    """Return the sentence of each query.

    It is the sentence of the source if the table has one, otherwise the prompt with its first
    answer.
    """
    if "sentence" in queries:
        return queries["sentence"].tolist()
    pairs = zip(queries["prompt"], queries["answers"], strict=True)
    return [prompt.replace(SLOT, answers[0]) for prompt, answers in pairs]
