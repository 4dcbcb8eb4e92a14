"""Judgment: does a model call a filled prompt true?

Source: Li et al. 2025, Medical Knowledge Judgment.

Each query gives two statements, one with its first answer, one with a wrong one. Causal and chat
models are asked in words, and P(true) is the probability of the word for true among the two words
they may answer by (Kadavath et al. 2022, section 3). Further variants, the only ones of masked
models, compare the likelihoods of the two statements.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.special import expit

from medprobe.backends import finder
from medprobe.core.answers import collect_facts
from medprobe.core.params import EngineParams
from medprobe.core.progress import print_above
from medprobe.core.settings import Section
from medprobe.core.tables import SLOT, BenchmarkTables
from medprobe.engine import texts
from medprobe.engine.load import load
from medprobe.engine.masked import Masking
from medprobe.engine.slots import is_answer_first
from medprobe.extensions.chat import prompt_texts
from medprobe.extensions.chat.prompt_texts import Chat, Prompt
from medprobe.extensions.chat.writer import writer_of
from medprobe.methods import Method, Task

FACTS: Final = "facts"  # a table of the task: all facts of its relation
LIKELIHOOD: Final = "likelihood"
COLUMNS: Final = {  # of a prediction table, and their types
    **dict.fromkeys(("variant", "replicate", "query_id", "prediction"), "str"),
    **{"score": "float", "hit": "bool", "rank": "int"},
}
WITHIN_WORD_L2R: Final = "within_word_l2r"
FIRST, SECOND = "[1]", "[2]"  # where the two words stand in a question

Wording = tuple[str, str, str]  # a question with both words' places, the word for true, for false
WORDINGS: Final[tuple[Wording, ...]] = (
    ("Is this statement [1] or [2]?", "true", "false"),
    ("Is this right, [1] or [2]?", "yes", "no"),
)


class Judgment(Method):
    """Scores a true and a wrong statement of each query by P(true).

    Variants: `none` and `chat` ask the model in words, without and with its chat template;
    `likelihood` compares the likelihoods of the two statements. Masked models also have
    `within_word_l2r`: it compares likelihoods where a token is masked with the later tokens of its
    word.
    """

    KINDS = ("chat", "causal", "masked")
    NEEDS = frozenset({"top_logprobs", "echo"})
    METRIC = "judgment"
    ONLY_SELECTS = frozenset({WITHIN_WORD_L2R})

    class Settings(Section):
        """How it is asked in words: P(true) is the mean over wordings and both orders of words."""

        wordings: tuple[Wording, ...] = Field(WORDINGS, min_length=1)
        """Questions with the places `[1]` and `[2]`, and the words for true and false. P(true) is
        the mean over wordings and both orders of the words."""
        separator: str = Field("\n", min_length=1)
        """Text before and after the question."""
        today: date = prompt_texts.DATE
        """The date for a chat template that asks for one. A server has a clock of its own."""
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
            self.writer = writer_of(self.backend)
        self.settings = settings
        self.seed = seed

    def passes(self) -> list[str]:
        """The variants."""
        if self.is_masked:
            return [LIKELIHOOD, *([WITHIN_WORD_L2R] if self.settings.within_word_l2r else [])]
        abilities, passes = self.backend.abilities, []
        if "top_logprobs" in abilities:
            passes += ["chat"] if self.writer.has_template else []
            passes += ["none"] if self.writer.has_completion else []
        return passes + ([LIKELIHOOD] if "echo" in abilities else [])

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """A task a relation and subset, with all that the benchmark says of the relation."""
        facts = collect_facts(tables)
        return [
            replace(task, tables={FACTS: facts[facts["relation"] == relation]})
            for task in super().tasks(tables, k)
            for relation in task.queries["relation"].head(1)
        ]

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """Return two rows per query: its first answer and a wrong one, with P(true) as `score`.

        The wrong one is the first answer of another query (`exchange_answers`). Queries that no
        other can exchange answers with are left out, and so are relations without any.
        """
        wrong = exchange_answers(task, self.seed)
        if not any(wrong):
            print_above(f"warning: {task.name}: every answer is right for all queries: not judged")
            return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in COLUMNS.items()})
        is_judged = [name is not None for name in wrong]
        task = replace(task, queries=task.queries[is_judged].reset_index(drop=True))
        pairs = [
            (answers[0], name)
            for answers, name in zip(task.queries["answers"], filter(None, wrong), strict=True)
        ]
        prompts = task.queries["prompt"]
        statements = [
            prompt.replace(SLOT, name)
            for prompt, pair in zip(prompts, pairs, strict=True)
            for name in pair
        ]
        labels = [query for query in task.query_labels for _ in range(2)]
        answers_first = [is_answer_first(prompt) for prompt in prompts for _ in range(2)]
        if pass_ == LIKELIHOOD and not self.is_masked:
            log_probs = self.backend.text_log_probs(statements, labels, answers_first)
            probabilities = _compare_likelihoods(log_probs)
        elif pass_ in (LIKELIHOOD, WITHIN_WORD_L2R):
            masking: Masking = "token" if pass_ == LIKELIHOOD else WITHIN_WORD_L2R
            scores = texts.pseudo_log_probs(self.model, statements, labels, [masking])
            probabilities = _compare_likelihoods(scores[masking])
        else:
            probabilities = self._ask_in_words(statements, labels, chat=pass_ == "chat")
        rows = pd.DataFrame(
            {
                "variant": pass_,
                "replicate": "",
                "query_id": task.queries["query_id"].to_numpy().repeat(2),
                "prediction": [name for pair in pairs for name in pair],
                "score": probabilities,
                "hit": [True, False] * len(pairs),
            }
        )
        ranks = rows.groupby("query_id")["score"].rank(method="first", ascending=False)
        return rows.assign(rank=ranks.astype(int))

    def requests(self, task: Task, pass_: str) -> int:
        """One for each statement, and in words one for each wording and order of its words."""
        statements = 2 * len(task.queries)
        return statements * (1 if pass_ == LIKELIHOOD else 2 * len(self.settings.wordings))

    def _ask_in_words(self, statements: list[str], labels: list[str], *, chat: bool) -> list[float]:
        """P(true) of each statement, by the word for true against that for false."""
        separator, probabilities = self.settings.separator, []
        for question, true, false in self.settings.wordings:
            for words in ((true, false), (false, true)):
                ordered_question = question.replace(FIRST, words[0]).replace(SECOND, words[1])
                questions = [
                    f"{statement}{separator}{ordered_question}" for statement in statements
                ]
                prompts: list[Prompt] = [
                    Chat((), text, self.settings.today)
                    if chat
                    else prompt_texts.turns([], text, separator)
                    for text in questions
                ]
                log_probs = self.writer.word_log_probs(prompts, labels, (true, false), separator)
                probabilities.append(expit([first - second for first, second in log_probs]))
        return list(np.mean(probabilities, axis=0))


def _compare_likelihoods(log_probs: Sequence[Sequence[float]]) -> list[float]:
    """The share of each statement in the likelihood, or pseudo-likelihood, of its pair."""
    totals = np.array([sum(row) for row in log_probs])
    true_totals, wrong_totals = totals[::2], totals[1::2]
    return list(
        np.stack(
            [expit(true_totals - wrong_totals), expit(wrong_totals - true_totals)], axis=1
        ).ravel()
    )


def exchange_answers(task: Task, seed: int) -> list[str | None]:
    """Give each query the first answer of another one, which gets its own in return.

    Each answer is wrong as often as it is right. So a judge that does not look at the subject,
    whatever it thinks of the answers, judges exactly one half right. Two queries can exchange
    answers of one type that are wrong for any name of the other's subject; those with the most
    frequent answers choose first, and among their partners the seed draws.
    """
    types = dict(zip(task.candidates["name"], task.candidates["type"], strict=True))
    right = _right_answers(task)
    names = [answers[0] for answers in task.queries["answers"]]
    frequency = Counter(map(task.normalise, names))
    order = [*range(len(names))]
    random.Random(f"{seed} {task.name}").shuffle(order)
    order.sort(key=lambda query: -frequency[task.normalise(names[query])])
    wrong: list[str | None] = [None] * len(names)
    for place, query in enumerate(order):
        if wrong[query] is None:
            for other in reversed(
                order[place + 1 :]
            ):  # rare answers first: frequent ones need them
                if (
                    wrong[other] is None
                    and types.get(names[query]) == types.get(names[other])
                    and task.normalise(names[other]) not in right[query]
                    and task.normalise(names[query]) not in right[other]
                ):
                    wrong[query], wrong[other] = names[other], names[query]
                    break
    return wrong


def _right_answers(task: Task) -> list[set[str]]:
    """For each query the names that any fact says of any name of its subject."""
    facts = task.tables[FACTS]
    right: dict[str, set[str]] = {}
    for subject, identifier, answers in zip(
        facts["subject"], facts["subject_id"], facts["answers"], strict=True
    ):
        for key in {f"name {subject}", f"id {identifier}" if identifier else ""} - {""}:
            right.setdefault(key, set()).update(map(task.normalise, answers))
    return [
        right.get(f"name {row.subject}", set()) | right.get(f"id {row.subject_id}", set())
        for row in task.queries.itertuples()
    ]
