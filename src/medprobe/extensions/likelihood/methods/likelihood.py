"""Likelihood: a candidate is scored by the log-likelihood of the prompt filled with it.

Causal models read what is before the slot once for all candidates. Encoder-decoder models read
the prompt once and are scored by what their decoder writes (`engine.seq2seq`). Masked models are
scored by pseudo-log-likelihood (Salazar et al., ACL 2020; `engine.masked`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from medprobe.backends import finder
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.core.settings import Section
from medprobe.core.tables import AHEAD, BenchmarkTables
from medprobe.engine import masked, ranking
from medprobe.engine.configuration import Head
from medprobe.engine.load import Model, load
from medprobe.engine.slots import no_tokens_error, split_prompt, too_long_error
from medprobe.extensions.likelihood.likeliest import ranker_of
from medprobe.extensions.likelihood.rankers import VARIANTS, Ranker, Ranking, rank_by_scores
from medprobe.methods import Method, Task
from medprobe.metrics.clusters import subject_clusters
from medprobe.metrics.shuffled import draw_others, shuffled_name

WRITERS: Final[tuple[Literal["causal", "seq2seq"], ...]] = ("causal", "seq2seq")
BLOCK: Final = 512  # queries that are searched together, and that a stop loses
OTHERS: Final = "others"  # column: answers of other queries, which the prompt is asked about too
DRAWS: Final = 4  # such queries: their own answers are one of five draws then
NamedScores = tuple[list[str], dict[str, np.ndarray]]  # names; variant → a score for each name


class Likelihood(Method):
    """Ranks candidates by log-likelihood.

    Variants: "" is the total, "per_token" on request its mean over tokens. Masked models also have
    "whole_word" (each word masked as a whole) and "within_word_l2r" (a token with the later ones).
    """

    KINDS = ("causal", "seq2seq", "masked", "chat")
    ASK_PRIORITY = MappingProxyType({"rank": 1})
    NEEDS = frozenset({"echo"})

    class Settings(Section):
        """What is searched for, and how masked models are scored.

        Names are ranked by the total; with `per_token` by the mean as well, which costs more.

        Under causal and encoder-decoder models, whether an answer is among the k best is proved by
        the names ahead of it, and exact. The rows of a query are then its best names up to its best
        answer; or one row without a name, where k are ahead of that. Each prompt is also asked
        about the answers of four other queries, of other clusters of names, the control `shuffled`.
        With `lists` the rows are the k best names, which costs some twenty times more.

        With `ranks`, each row also has `answer_rank`: the rank of the query's best answer among all
        candidates, or the first one after them. The best names are then listed, too.

        Each score of a masked model takes a pass per token, so only the names that mask average
        ranks among the best `shortlist` are scored; 0 means all names.
        """

        per_token: bool = False
        """Rank by the mean log-probability per token too. The sum alone reads a tenth to a
        hundredth of the tokens if the model knows the names."""
        lists: bool = False
        """Causal and encoder-decoder models: list the ten best names of each query. Otherwise only
        the names that decide whether an answer is among them. Consistency and experts' ratings
        need lists; accuracy is the same, and takes a twentieth of the tokens."""
        ranks: bool = False
        """Record the best answer's rank among all candidates (`answer_rank`)."""
        shortlist: int = Field(50, ge=0)
        """Masked models: score only the best names by mask average. 0: all names."""
        masked: Literal["answer", "prompt"] = "prompt"
        """Masked models: mask the tokens of the `answer` or of the whole `prompt`."""
        whole_word: bool = True
        """Masked models: score words masked as a whole, too."""
        within_word_l2r: bool = False
        """Masked models: also mask each token with the later tokens of its word (Kauf and Ivanova
        2023)."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        kinds = finder.find_kinds(checkpoint)
        self.kind: Head = next((kind for kind in WRITERS if kind in kinds), "masked")
        if self.kind == "masked" and settings.ranks and settings.shortlist:
            problem = "ranks of answers need the scores of all names"
            raise BadInput("likelihood", problem, "set shortlist: 0, or leave ranks out")
        self.settings, self.seed = settings, seed
        if self.kind == "masked":
            self.model = load(checkpoint, self.kind, engine)
        else:
            self.backend = finder.find(checkpoint, self.kind, engine)

    @cached_property
    def ranker(self) -> Ranker:
        """What ranks names under a model that writes from left to right."""
        return ranker_of(self.backend)

    @property
    def is_pooled(self) -> bool:
        """Whether queries of all relations share batches, as those of a search do."""
        return self.kind != "masked" and isinstance(self.backend, finder.Transformers)

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """Blocks of queries that rank the same names; a task per relation where none are pooled."""
        tasks = super().tasks(tables, k)
        if self.kind == "masked":
            return tasks
        by_names: dict[frozenset[str], list[Task]] = {}
        for place, task in enumerate(tasks):
            donors = draw_others(subject_clusters(task.queries), DRAWS, self.seed).T.tolist()
            answers = task.queries["answers"]
            others = [[answers[place] for place in places] for places in donors]
            tasks[place] = replace(task, queries=task.queries.assign(**{OTHERS: others}))
            by_names.setdefault(frozenset(task.candidates["name"]), []).append(tasks[place])
        if not self.is_pooled:  # to begin a block again would cost a server all its requests
            return tasks
        blocks: list[Task] = []
        for same in by_names.values():
            queries = pd.concat([task.queries for task in same], ignore_index=True)
            for start in range(0, len(queries), BLOCK):
                block = queries[start : start + BLOCK].reset_index(drop=True)
                blocks.append(replace(same[0], name=f"block {len(blocks) + 1}", queries=block))
        return blocks

    def batch_key(self, task: Task) -> str:
        """Each block is a job of its own."""
        return task.name if self.is_pooled else super().batch_key(task)

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """The k best names of each query and variant, or those up to its best answer.

        Raises BadInput for a prompt without exactly one slot, a name that tokenises to nothing, a
        name that does not fit into the model's window.
        """
        names = sorted(set(task.benchmark_candidates["name"]))
        rows = (
            self._score_by_mask(task, names) if self.kind == "masked" else self._search(task, names)
        )
        return pd.DataFrame(rows)

    def requests(self, task: Task, pass_: str) -> int:
        """One for each prompt and name."""
        return len(task.label_by_prompt) * task.benchmark_candidates["name"].nunique()

    def _lists(self, task: Task) -> bool:
        """Whether the best names are listed, or what decides about the answers."""
        settings = self.settings
        return self.kind == "masked" or settings.lists or settings.ranks or task.keep_best

    def _search(self, task: Task, names: list[str]) -> Iterator[dict[str, Any]]:
        """Rows under a model that writes from left to right."""
        own = self._answer_indices(task, names, task.queries["answers"])
        asked = [(place, "", tuple(answers)) for place, answers in enumerate(own)]
        if not self._lists(task) and OTHERS in task.queries:
            places = [
                (place, str(draw), answers)
                for place, others in enumerate(task.queries[OTHERS])
                for draw, answers in enumerate(others)
            ]
            indices = self._answer_indices(task, names, [answers for *_, answers in places])
            asked += [(*place[:2], tuple(i)) for place, i in zip(places, indices, strict=True)]
        prompts, query_ids = (task.queries[name].tolist() for name in ("prompt", "query_id"))
        keys = [(prompts[place], answers) for place, _, answers in asked]
        label_by_key: dict[tuple[str, tuple[int, ...]], str] = {}
        for key, (place, *_) in zip(keys, asked, strict=True):
            label_by_key.setdefault(key, task.query_labels[place])
        labels = [*label_by_key.values()]
        aim = Ranking(
            names,
            task.k,
            answers=[answer_indices for _, answer_indices in label_by_key],
            variants=len(VARIANTS) if self.settings.per_token else 1,
            ahead=not self._lists(task),
        )
        inputs = self.ranker.tokenize([prompt for prompt, _ in label_by_key], labels)
        rankings = self.ranker.find_likeliest(inputs, labels, aim)
        rankings_by_key = dict(zip(label_by_key, rankings, strict=True))
        for (place, draw, answers), key in zip(asked, keys, strict=True):
            for variant, result in zip(VARIANTS, rankings_by_key[key], strict=False):
                rank_columns = self._rank_columns(result.rank, names)
                ranked = result.up_to_answer if aim.ahead else result.names
                named_scores = [(names[i], score) for i, score in ranked]
                if aim.ahead:
                    rank_columns[AHEAD] = True
                    named_scores = named_scores or [("", 0.0)]
                right = {names[i] for i in answers}
                name = shuffled_name(variant) if draw else variant
                for row in ranking.prediction_rows(query_ids[place], named_scores, name):
                    if aim.ahead:
                        rank_columns["hit"] = row["prediction"] in right
                    yield {**row, "replicate": draw, **rank_columns}

    def _score_by_mask(self, task: Task, names: list[str]) -> Iterator[dict[str, Any]]:
        answers_by_query = self._answer_indices(task, names, task.queries["answers"])
        label_by_prompt = task.label_by_prompt
        prompts, labels = [*label_by_prompt], [*label_by_prompt.values()]
        scores = self._masked_scores(prompts, labels, names)
        scores_by_prompt = dict(zip(prompts, scores, strict=True))
        columns = (task.queries[name] for name in ("query_id", "prompt"))
        for query_id, prompt, answer_indices in zip(*columns, answers_by_query, strict=True):
            scored_names, variants = scores_by_prompt[prompt]
            for variant, name_scores in variants.items():
                found = rank_by_scores(name_scores, task.k, answer_indices)
                best = [(scored_names[i], score) for i, score in found.names]
                for row in ranking.prediction_rows(query_id, best, variant):
                    yield {**row, **self._rank_columns(found.rank, names)}

    def _rank_columns(self, rank: int | None, names: list[str]) -> dict[str, Any]:
        return {"answer_rank": rank or len(names) + 1} if self.settings.ranks else {}

    def _answer_indices(
        self, task: Task, names: list[str], answers_by_query: Iterable[Iterable[str]]
    ) -> list[list[int]]:
        """For each query the indices of its answers among the names, where these are needed."""
        if self._lists(task) and not self.settings.ranks:
            return [[] for _ in answers_by_query]
        indices_by_text: dict[str, list[int]] = {}
        for i, name in enumerate(names):
            indices_by_text.setdefault(task.normalise(name), []).append(i)
        rows = []
        for answers in answers_by_query:
            texts = {task.normalise(answer) for answer in answers}
            rows.append(sorted(i for text in texts for i in indices_by_text.get(text, [])))
        return rows

    def _masked_scores(
        self, prompts: list[str], labels: list[str], names: list[str]
    ) -> Iterator[NamedScores]:
        """Scores under a masked model, prompt by prompt."""
        maskings: list[masked.Masking] = ["token"]
        if self.settings.whole_word:
            maskings.append("whole_word")
        if self.settings.within_word_l2r:
            maskings.append("within_word_l2r")
        for prompt, label in zip(prompts, labels, strict=True):
            scored_names = self._shortlist(prompt, label, names)
            rows, positions = _fill_and_locate(
                self.model, prompt, label, scored_names, self.settings.masked
            )
            words = [masked.group_by_word(row) for row in positions]
            log_probs = masked.token_log_probs(self.model, rows, words, maskings)
            scores: dict[str, np.ndarray] = {}
            for masking, name_log_probs in log_probs.items():
                variant = "" if masking == "token" else masking
                totals = np.array([sum(row) for row in name_log_probs])
                scores[variant] = totals
                if self.settings.per_token:
                    counts = np.array([len(row) for row in name_log_probs])
                    scores[f"{variant}_per_token".lstrip("_")] = totals / counts
            yield scored_names, scores

    def _shortlist(self, prompt: str, label: str, names: list[str]) -> list[str]:
        """The names to score, by name."""
        if not self.settings.shortlist:
            return names
        (averages,) = masked.mean_log_probs(self.model, [prompt], [label], names)
        return [names[i] for i in sorted(ranking.best_indices(averages, self.settings.shortlist))]


def _fill_and_locate(
    model: Model, prompt: str, label: str, names: Sequence[str], scope: str
) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
    """Fill the prompt with each name, and find the tokens to score."""
    before, after = split_prompt(prompt, label)
    texts = [before + name + after for name in names]
    encoded = model.tokenizer(texts, return_offsets_mapping=True, verbose=False)
    positions = []
    for i, name in enumerate(names):
        ids, spans = encoded["input_ids"][i], encoded["offset_mapping"][i]
        if len(ids) > model.max_length:
            raise too_long_error(label, name, len(ids), model.max_length)
        low, high = len(before.rstrip()), len(before) + len(name)
        words = enumerate(encoded.word_ids(i))
        word_tokens = [(position, word) for position, word in words if word is not None]
        answer_tokens = [
            (p, word) for p, word in word_tokens if spans[p][1] > low and spans[p][0] < high
        ]
        if not answer_tokens:
            raise no_tokens_error(name)
        positions.append(answer_tokens if scope == "answer" else word_tokens)
    return encoded["input_ids"], positions
