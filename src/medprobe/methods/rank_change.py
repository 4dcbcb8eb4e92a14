"""Rank change: how entities' ranks among all candidates move from step to step of a context.

Source: the paper on context variance, Methods, "Rank-change Calculation". A prediction table of
this method has no top k. It has a row for each entity that a query *tracks* (without such a list:
for each answer), with its rank among all candidates of the query's relation.

The variant `copy` is a control, the same for all models: it ranks whatever the prompt mentions
before whatever it does not, and draws the order within both anew at each prompt. It knows nothing,
so the numbers that it gets are the numbers of copying alone.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pandas as pd

from medprobe.engine import causal
from medprobe.engine import load as checkpoints
from medprobe.engine.load import Model
from medprobe.engine.slots import answer_ids, check_window, text_slots
from medprobe.methods import mask_average
from medprobe.params import EngineParams, Section

PROMPTS_AT_ONCE: Final = 512
COPY: Final = "copy"


class RankChange:
    """Ranks by mean log-probability: of masked models as mask average, of causal ones as
    likelihood."""

    KINDS = ("masked", "causal")

    class Settings(Section):
        """Which of the two are run."""

        copy_control: bool = True

    def __init__(
        self, model: str, folder: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.folder, self.engine = folder, engine
        self.settings, self.seed = settings, seed

    def inputs(self) -> list[Path]:
        """The files that results depend on."""
        return [self.folder, Path(mask_average.__file__)]

    def passes(self) -> list[str]:
        """The model, then the control."""
        return ["", COPY] if self.settings.copy_control else [""]

    def rank(
        self, queries: pd.DataFrame, candidates: pd.DataFrame, k: int, which: str
    ) -> pd.DataFrame:
        """The ranks of the entities that each query tracks, whatever `k`.

        Candidates whose `type` is the queries' relation are ranked, all where there are none.
        Equal prompts are scored once. Raises BadInput for a prompt without exactly one slot, and
        for one that does not fit into the model's window.
        """
        own = candidates[candidates["type"].isin(queries["relation"])]
        names = sorted(set((own if len(own) else candidates)["name"]))
        place = {name: number for number, name in enumerate(names)}
        tracked = queries["tracked"] if "tracked" in queries else queries["answers"]
        parts = []
        for rows, scores in self._scored(queries, names, which):
            for row in rows:
                at = np.array(sorted({place[name] for name in tracked.iloc[row]}), dtype=int)
                parts.append((queries["query_id"].iloc[row], at, ranks(scores, at), scores[at]))
        return pd.DataFrame(
            {
                "variant": which,
                "replicate": "",
                "query_id": np.repeat([part[0] for part in parts], [len(p[1]) for p in parts]),
                "rank": np.concatenate([part[2] for part in parts]),
                "prediction": [names[at] for part in parts for at in part[1]],
                "score": np.concatenate([part[3] for part in parts]).astype(np.float32),
            }
        )

    def _scored(
        self, queries: pd.DataFrame, names: list[str], which: str
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For each distinct prompt: the numbers of its rows, and the score of every name."""
        of_prompt = queries.groupby("prompt", sort=False).indices
        prompts = sorted(of_prompt, key=lambda prompt: (-len(prompt), prompt))
        for start in range(0, len(prompts), PROMPTS_AT_ONCE):
            chunk = prompts[start : start + PROMPTS_AT_ONCE]
            rows = [of_prompt[prompt] for prompt in chunk]
            one_each = queries.iloc[[some[0] for some in rows]]
            score = self._copied if which == COPY else self._scores
            yield from zip(rows, score(one_each, names), strict=True)

    @cached_property
    def kind(self) -> Literal["masked", "causal"]:
        """Which of the kinds the checkpoint serves."""
        return "masked" if "masked" in checkpoints.inspect(self.folder).kinds else "causal"

    @cached_property
    def model(self) -> Model:
        """The model, loaded when a pass first needs it."""
        return checkpoints.load(self.folder, self.kind, self.engine)

    def _scores(self, queries: pd.DataFrame, names: list[str]) -> np.ndarray:
        prompts = queries["prompt"].tolist()
        where = [f"query {query}" for query in queries["query_id"]]
        score = mask_average.mean_log_probs if self.kind == "masked" else mean_log_probs
        return score(self.model, prompts, where, names, self.model.token_budget)

    def _copied(self, queries: pd.DataFrame, names: list[str]) -> np.ndarray:
        """1 for what a query's context holds, 0 for all else, and a draw below 1 on top."""
        place = {name: number for number, name in enumerate(names)}
        scores = np.empty((len(queries), len(names)))
        for number, row in enumerate(queries.itertuples()):
            digest = hashlib.sha256(f"{self.seed} {row.prompt}".encode()).digest()
            draw = np.random.default_rng(list(digest))
            scores[number] = draw.random(len(names))
            scores[number, [place[name] for name in row.shown]] += 1
        return scores


def ranks(scores: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The ranks of the scores at places `at` among all of them, by counting: 1 is the highest.
    Equal scores rank in the order of their places.

    >>> ranks(np.array([0.5, 0.9, 0.5, 0.1]), np.array([0, 2]))
    array([2, 3])
    """
    own = scores[at][:, None]
    before = np.arange(len(scores)) < at[:, None]
    found: np.ndarray = 1 + (scores > own).sum(axis=1) + ((scores == own) & before).sum(axis=1)
    return found


def mean_log_probs(
    model: Model, prompts: Sequence[str], where: Sequence[str], names: Sequence[str], budget: int
) -> np.ndarray:
    """Under a causal model, for each prompt and name, the mean log-probability of the name's tokens
    and of what follows them; what stands before is read once for all names."""
    slots = text_slots(model.tokenizer, prompts, where, causal.start_ids(model))
    ids = {left: answer_ids(model.tokenizer, names, left) for left in {s.left for s in slots}}
    found = np.empty((len(slots), len(names)))
    for number, (slot, query) in enumerate(zip(slots, where, strict=True)):
        check_window(slot, ids[slot.left], model.max_length, query, names)
        rests = [[*answer, *slot.after] for answer in ids[slot.left]]
        _, scores = causal.continuations(model, slot.before, rests, budget)
        found[number] = [sum(score) / len(score) for score in scores]
    return found
