"""Rank change: how entities' ranks among all candidates move from step to step of a context.

Source: the paper on context variance, Methods, "Rank-change Calculation". A prediction table of
this method has no top k. It has a row for each entity that a query *tracks* (without such a list:
for each answer), with its rank among all candidates of the query's relation.

The variant `copy` is a control, the same for all models: it ranks whatever the prompt mentions
before whatever it does not, and draws the order within both again at each prompt. It knows nothing,
so the numbers that it gets are the numbers of copying alone.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pandas as pd

from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, Section
from medprobe.core.tables import DISTRACTOR, BenchmarkTables
from medprobe.engine import causal, masked
from medprobe.engine.inspection import inspect
from medprobe.engine.load import Model, load
from medprobe.engine.slots import answer_ids, check_window
from medprobe.methods import Method, Task

PROMPTS_AT_ONCE: Final = 512
COPY: Final = "copy"


class RankChange(Method):
    """Ranks by mean log-probability, as mask average or likelihood do.

    One pass is the model, one the control.
    """

    KINDS = ("masked", "causal", "chat")
    WHY = "it scores a name with what follows it, and T5's family writes the name alone"
    METRIC = "ucm"
    SELECTING = frozenset({"copy_control"})

    class Settings(Section):
        """Which of the two are run."""

        copy_control: bool = True
        """Run the control that only copies from the context, too."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint, self.engine = checkpoint, engine
        self.settings, self.seed = settings, seed

    def passes(self) -> list[str]:
        """The model, then the control."""
        return ["", COPY] if self.settings.copy_control else [""]

    def inputs(self, pass_: str) -> list[Path]:
        """The checkpoint; the control reads none."""
        return [] if pass_ == COPY else [self.checkpoint]

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """Divide a benchmark by subset and relation.

        The candidates of a task are those whose `type` is the relation, or all if there are none.

        Raises:
            BadInput: the control is asked for, and the queries do not say what their context shows.
        """
        if self.settings.copy_control and "shown" not in tables.queries:
            problem = "the queries have no column shown, from which copy_control copies"
            raise BadInput("rank_change", problem, "set copy_control: false")
        tasks = []
        for subset, subset_queries, candidates in tables.subsets():
            benchmark_candidates = candidates[candidates["type"] != DISTRACTOR]
            for relation, queries in subset_queries.groupby("relation"):
                typed = benchmark_candidates[benchmark_candidates["type"] == relation]
                relation_candidates = typed if len(typed) else benchmark_candidates
                name = f"{subset} {relation}"
                tasks.append(Task(name, queries.reset_index(drop=True), relation_candidates, k))
        return tasks

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """The ranks of the entities that each query tracks, whatever `task.k`.

        Equal prompts are scored once. Raises BadInput for a prompt without exactly one slot, and
        for one that does not fit into the model's window.
        """
        queries, names = task.queries, sorted(set(task.candidates["name"]))
        index = {name: i for i, name in enumerate(names)}
        ids = queries["query_id"].tolist()
        tracked = queries["tracked" if "tracked" in queries else "answers"].tolist()
        parts = []
        for rows, scores in self._score_prompts(queries, names, pass_):
            for row in rows:
                indices = np.array(sorted({index[name] for name in tracked[row]}), dtype=int)
                parts.append((ids[row], indices, rank_of(scores, indices), scores[indices]))
        return pd.DataFrame(
            {
                "variant": pass_,
                "replicate": "",
                "query_id": np.repeat([part[0] for part in parts], [len(p[1]) for p in parts]),
                "rank": np.concatenate([part[2] for part in parts]),
                "prediction": [names[i] for part in parts for i in part[1]],
                "score": np.concatenate([part[3] for part in parts]).astype(np.float32),
            }
        )

    def reads(self, task: Task, pass_: str) -> list[int] | None:
        """Of masked models each distinct prompt with as many masks as names have tokens."""
        if pass_ == COPY:
            return []
        if self.kind == "causal":
            return None
        distinct = task.queries.drop_duplicates("prompt")
        prompts, names = distinct["prompt"].tolist(), sorted(set(task.candidates["name"]))
        return masked.row_lengths(self.model, prompts, prompts, names)

    def _score_prompts(
        self, queries: pd.DataFrame, names: list[str], pass_: str
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For each distinct prompt: the numbers of its rows, and the score of every name."""
        rows_by_prompt = queries.groupby("prompt", sort=False).indices
        prompts = sorted(rows_by_prompt, key=lambda prompt: (-len(prompt), prompt))
        for start in range(0, len(prompts), PROMPTS_AT_ONCE):
            chunk = prompts[start : start + PROMPTS_AT_ONCE]
            rows = [rows_by_prompt[prompt] for prompt in chunk]
            first_queries = queries.iloc[[row_numbers[0] for row_numbers in rows]]
            score = self._copy_scores if pass_ == COPY else self._model_scores
            yield from zip(rows, score(first_queries, names), strict=True)

    @cached_property
    def kind(self) -> Literal["masked", "causal"]:
        """Which of the kinds the checkpoint serves."""
        return "masked" if "masked" in inspect(self.checkpoint).kinds else "causal"

    @cached_property
    def model(self) -> Model:
        """The model, loaded when a pass first needs it."""
        return load(self.checkpoint, self.kind, self.engine)

    def _model_scores(self, queries: pd.DataFrame, names: list[str]) -> np.ndarray:
        labels = [f"query {query}" for query in queries["query_id"]]
        score = masked.mean_log_probs if self.kind == "masked" else mean_log_probs
        return score(self.model, queries["prompt"].tolist(), labels, names)

    def _copy_scores(self, queries: pd.DataFrame, names: list[str]) -> np.ndarray:
        """1 for what a query's context holds, 0 for all else, and a draw below 1 on top."""
        index = {name: i for i, name in enumerate(names)}
        scores = np.empty((len(queries), len(names)))
        for i, row in enumerate(queries.itertuples()):
            digest = hashlib.sha256(f"{self.seed} {row.prompt}".encode()).digest()
            draw = np.random.default_rng(list(digest))
            scores[i] = draw.random(len(names))
            scores[i, [index[name] for name in row.shown]] += 1
        return scores


def rank_of(scores: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the ranks of chosen scores among all scores; 1 is the highest.

    Equal scores rank in the order of their indices.

    Args:
        scores: of all candidates, [candidates].
        indices: of the chosen candidates.

    Example:
        >>> rank_of(np.array([0.5, 0.9, 0.5, 0.1]), np.array([0, 2]))
        array([2, 3])
    """
    tracked_scores = scores[indices][:, None]
    is_earlier = np.arange(len(scores)) < indices[:, None]
    tracked_ranks: np.ndarray = (
        1
        + (scores > tracked_scores).sum(axis=1)
        + ((scores == tracked_scores) & is_earlier).sum(axis=1)
    )
    return tracked_ranks


def mean_log_probs(
    model: Model, prompts: Sequence[str], labels: Sequence[str], names: Sequence[str]
) -> np.ndarray:
    """Score names under a causal model.

    The text before the slot is read once for all names.

    Returns:
        For each prompt and name the mean log-probability of the name's tokens and of what follows
        them, [prompts, names].
    """
    slots = causal.prompt_slots(model, prompts, labels)
    ids = {
        preceding: answer_ids(model.tokenizer, names, preceding)
        for preceding in {s.preceding for s in slots}
    }
    means = np.empty((len(slots), len(names)))
    for i, (slot, label) in enumerate(zip(slots, labels, strict=True)):
        check_window(slot, ids[slot.preceding], model.max_length, label, names)
        continuations = [[*answer, *slot.after] for answer in ids[slot.preceding]]
        _, scores = causal.continuations(model, slot.before, continuations, model.token_budget)
        means[i] = [sum(score) / len(score) for score in scores]
    return means
