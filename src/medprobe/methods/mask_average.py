"""Mask average (Kassner et al., EACL 2021): a candidate of n tokens is scored by the mean
log-probability of its tokens at n masks in the slot (`engine.masked.mean_log_probs`).
"""

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from medprobe.core.params import EngineParams, RankingSettings
from medprobe.engine import masked, ranking
from medprobe.engine.load import load
from medprobe.methods import Method, Task


class MaskAverage(Method):
    """Ranks all candidates (variant "") and the relation's own answers (variant "relation").

    Where a subset has distractors, "" is without them, and a variant "distractors" with them: one
    pass serves all.
    """

    KINDS = ("masked",)

    class Settings(RankingSettings):
        """The script that MedLAMA released scores by `engine.masked.one_mask_scores`, and its
        relations have their subjects among their candidates."""

        script: Literal["ours", "released"] = "ours"
        """`ours`, or as the script that MedLAMA `released`: raw scores at one mask, and subjects
        among the candidates."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        self.model = load(checkpoint, "masked", engine)
        self.released = settings.script == "released"
        self.known, self.counted = ranking.Remembered(), ranking.Remembered()

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """The k best names of each query, in each variant.

        Raises BadInput for a prompt without exactly one slot, a name that tokenises to nothing, a
        name that does not fit into the model's window.
        """
        names = sorted(set(task.candidates["name"]))
        answers = {name for row in task.queries["answers"] for name in row}
        answers.update(task.queries["subject"] if self.released else ())
        own = set(task.benchmark_candidates["name"])
        variants = {
            "": np.array([i for i, name in enumerate(names) if name in own], dtype=int),
            "relation": np.array([i for i, name in enumerate(names) if name in answers], dtype=int),
        }
        if len(own) < len(names):
            variants["distractors"] = np.arange(len(names))
        prompts, where = [*task.label_by_prompt], [*task.label_by_prompt.values()]
        score = masked.one_mask_scores if self.released else masked.mean_log_probs
        scored = self.known.scores(prompts, names, lambda: score(self.model, prompts, where, names))
        of_prompt = dict(zip(prompts, scored, strict=True))
        rows = []
        for query, prompt in zip(task.queries["query_id"], task.queries["prompt"], strict=True):
            scores = of_prompt[prompt]
            for variant, among in variants.items():
                order = among[ranking.best(scores[among], task.k, ranking.TIES)]
                rows += ranking.rows(query, [(names[i], scores[i]) for i in order], variant)
        return pd.DataFrame(rows)

    def reads(self, task: Task, pass_: str) -> list[int]:
        """Each prompt with as many masks as names have tokens, or one, those of several subsets
        once."""
        names = sorted(set(task.candidates["name"]))
        prompts, where = [*task.label_by_prompt], [*task.label_by_prompt.values()]
        filled = [self.model.tokenizer.mask_token] if self.released else names
        lengths: list[int] = []

        def count() -> list[np.ndarray]:
            lengths.extend(masked.lengths_read(self.model, prompts, where, filled))
            return [np.empty(len(names), dtype=bool) for _ in prompts]

        self.counted.scores(prompts, names, count)
        return lengths
