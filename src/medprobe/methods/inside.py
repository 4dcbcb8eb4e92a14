"""Inside: what a linear probe on hidden states knows of facts, next to what the model says.

Sources: Gekhman et al. 2025 (internal against external knowledge, by pairs of answers), Marks and
Tegmark 2023 (probes trained on statements of other topics).

Each query gives a right statement, its prompt filled with its first answer, and wrong ones, filled
with the first answers of other queries of its relation. Queries exchange their answers in twos: a
name is in as many right as wrong statements, and a score that sees the name alone ranks one half
of the pairs right.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from medprobe.core.answers import collect_facts, find_rule, list_wrong_answers
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, Section
from medprobe.core.tables import BenchmarkTables
from medprobe.engine.hidden_states import choose_layers, hidden_states
from medprobe.engine.inspection import inspect
from medprobe.engine.load import load
from medprobe.engine.pair_probe import Array, PairProbes
from medprobe.engine.slots import no_tokens_error, split_prompt
from medprobe.engine.texts import causal_log_probs, check_lengths, pseudo_log_probs
from medprobe.methods import Method, Task

FACTS: Final = "facts"  # a table of the task: all facts of the benchmark
LIKELIHOOD: Final = "likelihood"
SUBJECTS: Final = "subjects"
SHUFFLED: Final = "shuffled"
TOKENS: Final = ("answer-layer", "layer")  # a statement's tokens: its answer's last one, its last
SHUFFLES: Final = 10  # draws of labels
FOLDS: Final = 5  # of a relation's subjects
RELATIONS: Final = 3  # one to test, one to choose the layer by, one to train on


class Inside(Method):
    """Scores right and wrong statements of each query by a linear probe, and by likelihood.

    Variants: "" is the probe that is trained on all other relations, on the token and layer that
    rank most pairs of these relations right, each held out in turn. `subjects` is trained on other
    subjects of the same relation, on the same token and layer. `layer-<n>` reads a layer at the
    statement's last token, `answer-layer-<n>` at the last token of its answer; layer 0 is the
    embeddings, which know the names alone. `likelihood` is the log-likelihood of the statement
    (masked models: the pseudo-log-likelihood). `shuffled` is a control: "" with right and wrong
    exchanged by chance in training, a draw per replicate.
    """

    KINDS = ("masked", "causal", "chat")
    WHY = "it reads hidden states and likelihoods of statements"
    METRIC = "inside"

    class Settings(Section):
        """Which statements are made, and which layers are read."""

        wrong: int = Field(4, ge=1, le=9)
        """The most wrong statements of a query."""
        per_relation: int = Field(200, ge=2)
        """The most queries of a relation and subset, drawn by chance. Memory holds two states of
        each statement in each layer."""
        layers: tuple[int, ...] = ()
        """The layers to read; 0 is the embeddings. Empty: all."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint, self.settings, self.seed = checkpoint, settings, seed
        self.is_masked = "masked" in inspect(checkpoint).kinds
        self.model = load(checkpoint, "masked" if self.is_masked else "causal", engine)
        self.layers = choose_layers(self.model, settings.layers)

    def passes(self) -> list[str]:
        """The probes, then the likelihood."""
        return ["", LIKELIHOOD]

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """A task per subset, since a relation's probe is trained on the others."""
        facts, rule = collect_facts(tables), find_rule(tables.normalise)
        return [
            Task(subset, queries, candidates, k, {FACTS: facts}, rule)
            for subset, queries, candidates in tables.subsets()
        ]

    def shares(self, task: Task) -> str:
        """Subsets share nothing."""
        return task.name

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """Return the statements of each query that has a wrong one, by score.

        A query is left out if no other one of its relation can exchange answers with it.

        Raises:
            BadInput: fewer than three relations have pairs, or a statement does not fit into the
                model's window.
        """
        statements = make_statements(task, self.settings, self.seed)
        query_labels = task.query_labels
        labels = [query_labels[query] for query in statements.queries]
        if pass_ == LIKELIHOOD:
            scores = {LIKELIHOOD: self._log_likelihoods(statements.texts, labels)}
        else:
            scores = self._probe(statements, labels, task.queries)
        tables = [
            statements.table(task, variant, str(draw) if columns.ndim > 1 else "", column)
            for variant, columns in scores.items()
            for draw, column in enumerate(np.atleast_2d(columns.T))
        ]
        return pd.concat(tables, ignore_index=True)

    def _log_likelihoods(self, texts: Sequence[str], labels: list[str]) -> Array:
        """The sum over each text's tokens, [texts]."""
        if self.is_masked:
            log_probs = pseudo_log_probs(self.model, texts, labels, ["token"])["token"]
        else:
            log_probs = causal_log_probs(self.model, texts, labels)
        return np.array([sum(row) for row in log_probs])

    def _probe(
        self, statements: "Statements", labels: list[str], queries: pd.DataFrame
    ) -> dict[str, Array]:
        """The scores of each variant, [statements]; of `shuffled` [statements, draws]."""
        rows, positions = self._tokenize(statements)
        check_lengths(self.model, rows, labels)
        states = hidden_states(self.model, rows, positions, self.layers)
        relations = queries["relation"].to_numpy()[statements.queries]
        probes = PairProbes(
            states.reshape(len(rows), -1, states.shape[-1]),
            statements.pairs,
            np.unique(relations, return_inverse=True)[1],
        )
        by_place, places = probes.across_groups()
        folds = _draw_folds(queries, self.seed)
        fold_of_statement = folds[statements.queries]
        pair_folds = np.stack(
            [fold_of_statement[statements.pairs[:, 0]], folds[statements.partners]], 1
        )
        names = [f"{token}-{layer}" for token in TOKENS for layer in self.layers]
        return {
            "": by_place[np.arange(len(rows)), places[probes.groups]],
            SUBJECTS: probes.within_groups(places, fold_of_statement, pair_folds),
            SHUFFLED: probes.across_groups_shuffled(places, SHUFFLES, self.seed),
            **dict(zip(names, by_place.T, strict=True)),
        }

    def _tokenize(self, statements: "Statements") -> tuple[list[list[int]], list[list[int]]]:
        """The token ids of each statement, and where its answer's last token and its last one are.

        Raises:
            BadInput: an answer tokenises to nothing.
        """
        encoded = self.model.tokenizer(
            list(statements.texts),
            add_special_tokens=self.is_masked,
            return_offsets_mapping=True,
            verbose=False,
        )
        start = self.model.tokenizer.bos_token_id
        first = [] if self.is_masked or start is None else [start]
        rows, positions = [], []
        for ids, spans, name, stop in zip(
            encoded["input_ids"],
            encoded["offset_mapping"],
            statements.names,
            statements.stops,
            strict=True,
        ):
            ends = [(at, span) for at, span in enumerate(spans, len(first)) if span[1] > span[0]]
            answer = [at for at, (low, high) in ends if low < stop and high > stop - len(name)]
            if not answer:
                raise no_tokens_error(name)
            rows.append([*first, *ids])
            positions.append([answer[-1], ends[-1][0]])
        return rows, positions


@dataclass(frozen=True)
class Statements:
    """Filled prompts, and the pairs of a right and a wrong one of a query.

    Attributes:
        texts: the filled prompts.
        names: the answer in each.
        stops: where the answer ends in each.
        queries: of each statement, its row in the task's queries; the right one is the last.
        pairs: the right and the wrong statement of each pair, [pairs, 2].
        partners: of each pair, the query that the wrong answer is taken from.
    """

    texts: list[str]
    names: list[str]
    stops: list[int]
    queries: NDArray[np.int64]
    pairs: NDArray[np.int64]
    partners: NDArray[np.int64]

    def table(self, task: Task, variant: str, replicate: str, scores: Array) -> pd.DataFrame:
        """Return the statements as predictions; of equal scores the right one ranks last."""
        rows = pd.DataFrame(
            {
                "variant": variant,
                "replicate": replicate,
                "query_id": task.queries["query_id"].to_numpy()[self.queries],
                "prediction": self.names,
                "score": scores.astype(np.float32),
                "hit": np.isin(np.arange(len(self.names)), self.pairs[:, 0]),
            }
        )
        ranks = rows.groupby("query_id")["score"].rank(method="first", ascending=False)
        return rows.assign(rank=ranks.astype(int))


def make_statements(task: Task, settings: Inside.Settings, seed: int) -> Statements:
    """Fill the prompts of a task, each with its first answer and with those of its partners.

    Raises:
        BadInput: fewer than three relations have pairs.
    """
    partners: dict[int, list[int]] = {}
    relations = 0
    for relation, rows in task.queries.groupby("relation", sort=True):
        exchanges = _exchange_answers(rows, task, settings, f"{seed} {relation}")
        partners |= exchanges
        relations += bool(exchanges)
    if relations < RELATIONS:
        problem = f"right and wrong answers in {relations} relations, a probe needs {RELATIONS}"
        raise BadInput(f"subset {task.name}", problem, "add relations, or use judgment")
    prompts, answers = task.queries["prompt"], [row[0] for row in task.queries["answers"]]
    labels = task.query_labels
    statements: list[tuple[str, str, int, int]] = []  # text, name, its end, query
    pairs: list[tuple[int, int]] = []
    for query, others in partners.items():
        before, after = split_prompt(prompts.iloc[query], labels[query])
        right = len(statements) + len(others)
        pairs += [(right, wrong) for wrong in range(len(statements), right)]
        for name in (*(answers[other] for other in others), answers[query]):
            statements.append((before + name + after, name, len(before) + len(name), query))
    texts, names, stops, queries = (list(column) for column in zip(*statements, strict=True))
    flat = [other for others in partners.values() for other in others]
    return Statements(texts, names, stops, np.array(queries), np.array(pairs), np.array(flat))


def _exchange_answers(
    queries: pd.DataFrame, task: Task, settings: Inside.Settings, seed: str
) -> dict[int, list[int]]:
    """The partners of each query of a relation that has any, as rows of the task's queries.

    Two queries are partners if the first answer of each is wrong for the other one. Queries are in
    a circle by chance, and the nearest ones become partners first.
    """
    pools = list_wrong_answers(queries, task.tables[FACTS], task.candidates, task.normalise)
    wrong_names = dict(zip(queries.index, map(set, pools), strict=True))
    answers = {row: names[0] for row, names in queries["answers"].items()}
    circle = sorted(queries.index, key=lambda row: queries.at[row, "query_id"])
    random.Random(seed).shuffle(circle)
    circle = circle[: settings.per_relation]
    partners: dict[int, dict[str, int]] = {row: {} for row in circle}  # by the answer
    for distance in range(1, len(circle) // 2 + 1):
        for place, a in enumerate(circle):
            b = circle[(place + distance) % len(circle)]
            if (
                max(len(partners[a]), len(partners[b])) < settings.wrong
                and answers[b] in wrong_names[a] - partners[a].keys()
                and answers[a] in wrong_names[b] - partners[b].keys()
            ):
                partners[a][answers[b]], partners[b][answers[a]] = b, a
    return {row: [*others.values()] for row, others in sorted(partners.items()) if others}


def _draw_folds(queries: pd.DataFrame, seed: int) -> NDArray[np.int64]:
    """The fold of each query; those about one subject are in one fold."""
    subjects, names = pd.factorize(
        queries["subject_id"].where(queries["subject_id"] != "", queries["subject"]), sort=True
    )
    folds = np.arange(len(names)) % FOLDS
    np.random.default_rng(seed).shuffle(folds)
    return folds[subjects]
