"""Mask average: the mean log-probability of a candidate's tokens at masks in the slot.

A candidate of n tokens is scored at n masks (`engine.masked.mean_log_probs`).
Source: Kassner et al., EACL 2021.
"""

from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
import pandas as pd

from medprobe.core.params import EngineParams
from medprobe.core.settings import Section
from medprobe.engine import masked, ranking
from medprobe.engine.load import load
from medprobe.methods import Method, Task


class MaskAverage(Method):
    """Ranks candidates by the mean log-probability of their tokens at masks.

    Variant "" ranks all candidates, "relation" the relation's own answers.

    Where a subset has distractors, "" is without them, and a variant "distractors" with them: one
    pass serves all.
    """

    KINDS = ("masked",)
    ASK_PRIORITY = MappingProxyType({"rank": 3})

    class Settings(Section):
        """The scoring script.

        The script that MedLAMA released scores by `engine.masked.one_mask_scores`, and has the
        subjects of a relation among its candidates.
        """

        script: Literal["ours", "released"] = "ours"
        """`ours`, or as MedLAMA's `released` script."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        self.model = load(checkpoint, "masked", engine)
        self.is_released = settings.script == "released"
        self.scores_cache = ranking.ScoreCache()
        self.names: list[str] = []
        self.tokens: dict[str, masked.ByLength] = {}  # of these names

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """The k best names of each query, in each variant.

        Raises BadInput for a prompt without exactly one slot, a name that tokenises to nothing, a
        name that does not fit into the model's window.
        """
        names = sorted(set(task.candidates["name"]))
        answers = {name for row in task.queries["answers"] for name in row}
        answers.update(task.queries["subject"] if self.is_released else ())
        benchmark_names = set(task.benchmark_candidates["name"])
        variants = {
            "": np.array([i for i, name in enumerate(names) if name in benchmark_names], dtype=int),
            "relation": np.array([i for i, name in enumerate(names) if name in answers], dtype=int),
        }
        if len(benchmark_names) < len(names):
            variants["distractors"] = np.arange(len(names))
        prompts, labels = [*task.label_by_prompt], [*task.label_by_prompt.values()]
        score_rows = self.scores_cache.scores(
            prompts, names, lambda: self._score(prompts, labels, names)
        )
        scores_by_prompt = dict(zip(prompts, score_rows, strict=True))
        rows = []
        for query, prompt in zip(task.queries["query_id"], task.queries["prompt"], strict=True):
            scores = scores_by_prompt[prompt]
            for variant, indices in variants.items():
                order = indices[ranking.best_indices(scores[indices], task.k, ranking.MAX_TIES)]
                rows += ranking.prediction_rows(
                    query, [(names[i], scores[i]) for i in order], variant
                )
        return pd.DataFrame(rows)

    def _score(self, prompts: list[str], labels: list[str], names: list[str]) -> np.ndarray:
        if self.is_released:
            return masked.one_mask_scores(self.model, prompts, labels, names)
        if names != self.names:  # those of another subset
            self.names, self.tokens = names, {}
        return masked.mean_log_probs(self.model, prompts, labels, names, self.tokens)
