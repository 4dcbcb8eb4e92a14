"""Perplexity of the filled prompts: not a ranking, but how strange a model finds its prompts.

Masked models: pseudo-perplexity, each token masked in turn (Salazar et al., ACL 2020). Causal
models: the perplexity of the tokens from left to right. The first token counts where the tokenizer
puts a start token before it, or where it is an answer's (`engine.texts.causal_rows`). Source of its
use here: Shaier et al., section 5.5 and Table 5.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from medprobe.backends import finder
from medprobe.core.params import EngineParams
from medprobe.core.settings import Section
from medprobe.core.tables import SLOT
from medprobe.engine import texts
from medprobe.engine.load import load
from medprobe.engine.masked import Masking
from medprobe.engine.slots import is_answer_first
from medprobe.methods import Method, Task


class Perplexity(Method):
    """Measures the perplexity of each prompt, filled with its first answer.

    Each query has one row: this answer, with the perplexity.

    Variants: "" is the perplexity. Masked models also have "within_word_l2r", where a token is
    masked with the later tokens of its word.
    """

    KINDS = ("masked", "causal", "chat")
    WHY = "an encoder-decoder model gives a text no probability of its own, only given another"
    NEEDS = frozenset({"echo"})
    METRIC = "perplexity"

    class Settings(Section):
        """How masked models are scored."""

        within_word_l2r: bool = False
        """Masked models: also mask each token with the later tokens of its word (Kauf and Ivanova
        2023)."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        self.is_masked = "masked" in finder.find_kinds(checkpoint)
        if self.is_masked:
            self.model = load(checkpoint, "masked", engine)
        else:
            self.backend = finder.find(checkpoint, "causal", engine)
        self.maskings: list[Masking] = ["token"]
        if settings.within_word_l2r:
            self.maskings.append("within_word_l2r")

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """One row per query and variant: `score` is the mean log-probability of `tokens` tokens.

        Raises BadInput for a sentence that does not fit into the model's window.
        """
        sentences, labels = filled_prompts(task.queries), task.query_labels
        if not self.is_masked:
            answers_first = [is_answer_first(prompt) for prompt in task.queries["prompt"]]
            causal_log_probs = self.backend.text_log_probs(sentences, labels, answers_first)
            return _build_table(task.queries, "", causal_log_probs)
        log_probs = texts.pseudo_log_probs(self.model, sentences, labels, self.maskings)
        return pd.concat(
            [
                _build_table(task.queries, "" if masking == "token" else masking, rows)
                for masking, rows in log_probs.items()
            ],
            ignore_index=True,
        )

    def requests(self, task: Task, pass_: str) -> int:
        """One for each sentence."""
        return len(task.queries)


def _build_table(
    queries: pd.DataFrame, variant: str, token_log_probs: Sequence[Sequence[float]]
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "variant": variant,
            "replicate": "",
            "query_id": queries["query_id"].to_numpy(),
            "rank": 1,
            "prediction": queries["answers"].str[0].to_numpy(),
            "score": [sum(row) / len(row) for row in token_log_probs],
            "tokens": [len(row) for row in token_log_probs],
            "perplexity": [perplexity(row) for row in token_log_probs],
        }
    )


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
