"""Rank change: how entities' ranks among all candidates move from step to step of a context.

Source: the paper on context variance, Methods, "Rank-change Calculation". A prediction table of
this method has no top k. It has a row for each entity that a query *tracks* (without such a list:
for each answer), with its rank.

The main variant ranks all candidates of the query's relation by their mean log-probability, as mask
average and likelihood do. The variant `decoding` takes the place of an entity's name among the
texts that BioLAMA's decoder (Sung et al., EMNLP 2021) writes into the slot: the paper has "a
multi-token decoding strategy following" it (Experimental Setup). What is not among these texts
comes after all of them, so that it does not move from a step to the next one where it is in
neither. The paper does not say which rank it has there.

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
from pydantic import Field

from medprobe.core.answers import find_rule, uncased
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.core.progress import report_progress
from medprobe.core.settings import Section
from medprobe.core.tables import DISTRACTOR, BenchmarkTables
from medprobe.engine import causal, masked
from medprobe.engine.decoding import merge_by_rule
from medprobe.engine.filling import Bias, Decoding, fill, text_of
from medprobe.engine.inspection import inspect
from medprobe.engine.load import Model, load
from medprobe.engine.slots import answer_ids, check_window, masked_slots
from medprobe.methods import Method, Task

PROMPTS_AT_ONCE: Final = 512
COPY: Final = "copy"
DECODING: Final = "decoding"
Ranking = Literal["candidates", "decoding"]


class RankChange(Method):
    """Ranks the names in a text as its context grows, and counts how their ranks change.

    One pass a ranking, one the control.
    """

    KINDS = ("masked", "causal", "chat")
    WHY = "it scores a name with what follows it, and T5's family writes the name alone"
    METRIC = "ucm"
    ONLY_SELECTS = frozenset({"rankings", "copy_control"})

    class Settings(Section):
        """How entities are ranked. The decoder's settings are those that BioLAMA released."""

        rankings: tuple[Ranking, ...] = Field(("candidates",), min_length=1)
        """Rank all `candidates` by mean log-probability, or the texts of BioLAMA's `decoding`."""
        copy_control: bool = True
        """Run the control that only copies from the context, too."""
        masks: int = Field(10, gt=0)
        """`decoding`: longest text, in masks."""
        beam: int = Field(5, gt=0)
        """`decoding`: width of the beam."""
        length_normalisation: bool = False
        """`decoding`: compare lengths by the mean log-probability per token, else by the sum."""
        bias: Bias = "subtracted"
        """`decoding`: the head's bias is `kept`, or `subtracted`."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint, self.engine = checkpoint, engine
        self.settings, self.seed = settings, seed

    def passes(self) -> list[str]:
        """The rankings, then the control."""
        names = ["" if name == "candidates" else name for name in self.settings.rankings]
        return [*names, COPY] if self.settings.copy_control else names

    def inputs(self, pass_: str) -> list[Path]:
        """The checkpoint; the control reads none."""
        return [] if pass_ == COPY else [self.checkpoint]

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """Divide a benchmark by subset and relation.

        The candidates of a task are those whose `type` is the relation, or all if there are none.
        """
        if DECODING in self.settings.rankings and self.kind == "causal":
            problem = "decoding fills masks, and this model has none"
            raise BadInput("rank_change", problem, "set rankings: [candidates]")
        if self.settings.copy_control and "shown" not in tables.queries:
            problem = "the queries have no column shown, from which copy_control copies"
            raise BadInput("rank_change", problem, "set copy_control: false")
        tasks, rule = [], find_rule(tables.normalise)
        for subset, subset_queries, candidates in tables.subsets():
            benchmark_candidates = candidates[candidates["type"] != DISTRACTOR]
            for relation, queries in subset_queries.groupby("relation"):
                typed = benchmark_candidates[benchmark_candidates["type"] == relation]
                relation_candidates = typed if len(typed) else benchmark_candidates
                name = f"{subset} {relation}"
                rows = queries.reset_index(drop=True)
                tasks.append(Task(name, rows, relation_candidates, k, normalise=rule))
        return tasks

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """The ranks of the entities that each query tracks, whatever `task.k`.

        Equal prompts are scored once. Raises BadInput for a prompt without exactly one slot, and
        for one that does not fit into the model's window.
        """
        if pass_ == DECODING:
            return self._decode(task)
        queries, names = task.queries, sorted(set(task.candidates["name"]))
        index = {name: i for i, name in enumerate(names)}
        ids = queries["query_id"].tolist()
        tracked = _tracked(queries)
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

    def _decode(self, task: Task) -> pd.DataFrame:
        """The places of tracked entities among the texts that are decoded; equal texts are one."""
        settings, rule = self.settings, uncased(task.normalise)
        decoding = Decoding(
            masks=settings.masks,
            beam=settings.beam,
            steps=settings.masks,
            normalised=settings.length_normalisation,
            bias=settings.bias,
        )
        most = settings.masks * settings.beam
        labels = task.label_by_prompt
        slots = masked_slots(self.model.tokenizer, list(labels), list(labels.values()))
        for slot, label in zip(slots, labels.values(), strict=True):
            masks = [0] * settings.masks
            check_window(slot, [masks], self.model.max_length, label, [f"{len(masks)} masks"])
        prompts, counts, places = [*labels], task.queries["prompt"].value_counts(), {}
        for start in range(0, len(slots), PROMPTS_AT_ONCE):
            part = slice(start, start + PROMPTS_AT_ONCE)
            decoded = fill(self.model, slots[part], decoding, self.model.token_budget, most)
            for prompt, fillings in zip(prompts[part], decoded, strict=True):
                texts = [text_of(self.model, f.tokens).removeprefix("##") for f in fillings]
                scored = [(text, f.score) for text, f in zip(texts, fillings, strict=True)]
                merged = merge_by_rule(scored, (), rule)
                ranked = {rule(text): (rank, s) for rank, (text, s, _) in enumerate(merged, 1)}
                places[prompt] = ranked, (most + 1, merged[-1][1])
            report_progress(int(counts[prompts[part]].sum()), "queries")
        rows = [
            (row.query_id, name, *places[row.prompt][0].get(rule(name), places[row.prompt][1]))
            for row, names in zip(task.queries.itertuples(), _tracked(task.queries), strict=True)
            for name in sorted(set(names))
        ]
        table = pd.DataFrame(rows, columns=["query_id", "prediction", "rank", "score"])
        return table.assign(variant=DECODING, replicate="")

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
            report_progress(sum(map(len, rows)), "queries")

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


def _tracked(queries: pd.DataFrame) -> list[list[str]]:
    tracked: list[list[str]] = queries["tracked" if "tracked" in queries else "answers"].tolist()
    return tracked


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
