"""Likelihood: a candidate is scored by the log-likelihood of the prompt filled with it.

Causal models read what stands before the slot once for all candidates. Encoder-decoder models read
the prompt once and are scored by what their decoder writes (`engine.seq2seq`): T5's family the
answer, BART's the filled prompt. Masked models are scored by pseudo-log-likelihood (Salazar et al.,
ACL 2020), each token masked in turn, and in a variant each whole word.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, RankingSettings
from medprobe.engine import causal, masked, ranking, seq2seq
from medprobe.engine.best_first import VARIANTS
from medprobe.engine.inspection import Head, inspect
from medprobe.engine.likeliest import likeliest
from medprobe.engine.load import Model, load
from medprobe.engine.slots import no_tokens, split_prompt, text_slots, too_long
from medprobe.methods import Method, Task

WRITERS: Final[tuple[Literal["causal", "seq2seq"], ...]] = ("causal", "seq2seq")
Scored = tuple[list[str], dict[str, np.ndarray]]  # names; variant → a score for each name
Groups = list[tuple[int, ...]]  # positions that are masked together


class Likelihood(Method):
    """Ranks candidates by total log-likelihood (variant "") and by its mean over tokens
    ("per_token"); masked models also by whole words ("whole_word", "whole_word_per_token")."""

    KINDS = ("causal", "seq2seq", "masked", "chat")

    class Settings(RankingSettings):
        """What is looked for, and how masked models are scored.

        Without `per_token`, names are ranked by the total alone. A search for the mean too reads
        ten to a hundred times the tokens under a model that knows the names.

        With `ranks`, each row also has `answer_rank`: the place of the query's best answer among
        all candidates, or the first place after them where none is a candidate.

        Causal and encoder-decoder models are searched (`engine.best_first`), a ranking that is
        exact. With `most_nodes` a search ends after so many nodes; each row then says whether it is
        `certain` that nothing unread comes before it, and whether that holds for the answer
        (`answer_rank_certain`), whose rank is else the best possible.

        Each of a masked model's scores takes a pass for every token, so that only names which mask
        average ranks among the best `shortlist` are scored; 0 is all names.
        """

        per_token: bool = True
        """Rank by the mean log-probability per token too. Otherwise by the sum alone, which reads a
        tenth to a hundredth of the tokens if the model knows the names."""
        ranks: bool = False
        """Record the rank of the best answer among all candidates (`answer_rank`)."""
        most_nodes: int = Field(0, ge=0)
        """End the search after this many nodes per query; the table then says what is certain. 0:
        search until the ranking is exact."""
        shortlist: int = Field(50, ge=0)
        """Masked models: score only this many names per query, the best by mask average. 0: all
        names."""
        masked: Literal["answer", "prompt"] = "prompt"
        """Masked models: which tokens are masked in turn, those of the `answer` or of the whole
        `prompt`."""
        whole_word: bool = True
        """Masked models: score words masked as a whole, too."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        able = inspect(checkpoint).kinds
        self.kind: Head = next((kind for kind in WRITERS if kind in able), "masked")
        if self.kind == "masked" and settings.ranks and settings.shortlist:
            problem = "ranks of answers need the scores of all names"
            raise BadInput("likelihood", problem, "set shortlist: 0, or leave ranks out")
        self.model = load(checkpoint, self.kind, engine)
        self.settings = settings

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """The k best names of each query and variant.

        Raises BadInput for a prompt without exactly one slot, a name that tokenises to nothing, a
        name that does not fit into the model's window.
        """
        names = sorted(set(task.benchmark_candidates["name"]))
        rows = self._by_mask(task, names) if self.kind == "masked" else self._written(task, names)
        return pd.DataFrame(rows)

    def _written(self, task: Task, names: list[str]) -> Iterator[dict[str, Any]]:
        """Rows under a model that writes from left to right."""
        alike = list(
            zip(task.queries["prompt"], map(tuple, self._answers(task, names)), strict=True)
        )
        distinct: dict[tuple[str, tuple[int, ...]], str] = {}
        for key, query in zip(alike, task.query_labels, strict=True):
            distinct.setdefault(key, query)
        prompts, where = [prompt for prompt, _ in distinct], [*distinct.values()]
        if self.kind == "seq2seq":
            frames = seq2seq.frames(self.model, prompts, where)
            slots, sources = [frame.target for frame in frames], [frame.source for frame in frames]
        else:
            start = causal.start_ids(self.model)
            slots, sources = text_slots(self.model.tokenizer, prompts, where, start), []
        found = likeliest(
            self.model,
            slots,
            where,
            names,
            task.k,
            sources=sources,
            answers=[right for _, right in distinct],
            most=self.settings.most_nodes,
            variants=len(VARIANTS) if self.settings.per_token else 1,
        )
        of_key = dict(zip(distinct, found, strict=True))
        for query, key in zip(task.queries["query_id"], alike, strict=True):
            for variant, ranked in zip(VARIANTS, of_key[key], strict=False):
                more: dict[str, Any] = {}
                if self.settings.ranks:
                    more["answer_rank"] = ranked.rank or len(names) + 1
                if self.settings.ranks and self.settings.most_nodes:
                    more["answer_rank_certain"] = ranked.rank_certain
                best = [(names[i], score) for i, score in ranked.names]
                rows = ranking.rows(query, best, variant)
                for row, certain in zip(rows, ranked.certain, strict=True):
                    sure = {"certain": certain} if self.settings.most_nodes else {}
                    yield {**row, **more, **sure}

    def _by_mask(self, task: Task, names: list[str]) -> Iterator[dict[str, Any]]:
        """Rows under a masked model."""
        answers = self._answers(task, names)
        where = task.label_by_prompt
        scored = dict(zip(where, self._masked([*where], [*where.values()], names), strict=True))
        columns = (task.queries[name] for name in ("query_id", "prompt"))
        for query, prompt, right in zip(*columns, answers, strict=True):
            among, variants = scored[prompt]
            for variant, scores in variants.items():
                more: dict[str, Any] = {}
                if self.settings.ranks:
                    places = np.flatnonzero(np.isin(ranking.best(scores, len(names)), right))
                    more["answer_rank"] = int(places.min(initial=len(names))) + 1
                order = ranking.best(scores, task.k, ranking.TIES)
                best = [(among[i], scores[i]) for i in order]
                for row in ranking.rows(query, best, variant):
                    yield {**row, **more}

    def _answers(self, task: Task, names: list[str]) -> list[list[int]]:
        """For each query the indices of the names that are right, where their ranks are wanted."""
        if not self.settings.ranks:
            return [[] for _ in task.query_labels]
        alike: dict[str, list[int]] = {}
        for i, name in enumerate(names):
            alike.setdefault(task.normalise(name), []).append(i)
        return [
            sorted({i for answer in answers for i in alike.get(task.normalise(answer), [])})
            for answers in task.queries["answers"]
        ]

    def _masked(self, prompts: list[str], where: list[str], names: list[str]) -> Iterator[Scored]:
        """Scores under a masked model, prompt by prompt."""
        for prompt, query in zip(prompts, where, strict=True):
            among = self._shortlist(prompt, query, names)
            rows, positions = _filled(self.model, prompt, query, among, self.settings.masked)
            tokens: list[Groups] = [[(position,) for position, _ in row] for row in positions]
            variants = {"": tokens}
            if self.settings.whole_word:
                variants["whole_word"] = [_words(row) for row in positions]
            groups = [
                list(dict.fromkeys(group for kind in of_name for group in kind))
                for of_name in zip(*variants.values(), strict=True)
            ]
            budget = self.model.token_budget
            log_probs = masked.pseudo_log_likelihood(self.model, rows, groups, budget)
            counts = np.array([len(row) for row in tokens])
            scores = {}
            for variant, chosen in variants.items():
                totals = np.array(list(map(_total, groups, log_probs, chosen)))
                scores[variant] = totals
                if self.settings.per_token:
                    scores[f"{variant}_per_token".lstrip("_")] = totals / counts
            yield among, scores

    def _shortlist(self, prompt: str, query: str, names: list[str]) -> list[str]:
        """The names to score, by name."""
        if not self.settings.shortlist:
            return names
        (averages,) = masked.mean_log_probs(self.model, [prompt], [query], names)
        return [names[i] for i in sorted(ranking.best(averages, self.settings.shortlist))]


def _filled(
    model: Model, prompt: str, where: str, names: Sequence[str], scope: str
) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
    """The token ids of the prompt filled with each name; and, for each token to score, its
    position and its word. Special tokens are not scored."""
    before, after = split_prompt(prompt, where)
    texts = [before + name + after for name in names]
    encoded = model.tokenizer(texts, return_offsets_mapping=True, verbose=False)
    positions = []
    for i, name in enumerate(names):
        ids, spans = encoded["input_ids"][i], encoded["offset_mapping"][i]
        if len(ids) > model.max_length:
            raise too_long(where, name, len(ids), model.max_length)
        low, high = len(before.rstrip()), len(before) + len(name)
        words = enumerate(encoded.word_ids(i))
        scored = [(position, word) for position, word in words if word is not None]
        inside = [(p, word) for p, word in scored if spans[p][1] > low and spans[p][0] < high]
        if not inside:
            raise no_tokens(name)
        positions.append(inside if scope == "answer" else scored)
    return encoded["input_ids"], positions


def _words(positions: list[tuple[int, int]]) -> Groups:
    """The positions of each word."""
    words: dict[int, list[int]] = {}
    for position, word in positions:
        words.setdefault(word, []).append(position)
    return [tuple(of_word) for of_word in words.values()]


def _total(groups: Groups, scores: list[float], chosen: Groups) -> float:
    """The sum of the scores of the chosen groups; `scores` has one number for each position of each
    group."""
    left = iter(scores)
    total = {group: sum(next(left) for _ in group) for group in groups}
    return sum(total[group] for group in chosen)
