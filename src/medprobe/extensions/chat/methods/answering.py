"""Answering: a model is asked in words, and writes the answer (Brown et al. 2020, section 3.3).

Causal models go on with the prompt's own text, encoder-decoder models tuned to follow instructions
(Flan-T5) are put a question, chat models as well, by the tokenizer's own template. Facts of the
same relation may come before. See `prompt_texts`, and `writing` for free answers.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import cached_property
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

import pandas as pd
from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from medprobe.backends import Ability, finder
from medprobe.core import answers
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.core.settings import Section
from medprobe.core.tables import BLANK, SLOT, BenchmarkTables
from medprobe.engine import ranking
from medprobe.engine.configuration import Head
from medprobe.extensions.chat import extraction, prompt_texts, writing
from medprobe.extensions.chat.prompt_texts import Chat, Prompt
from medprobe.extensions.chat.writer import writer_of
from medprobe.extensions.likelihood.likeliest import ranker_of
from medprobe.extensions.likelihood.rankers import VARIANTS, Ranker, Ranking
from medprobe.methods import Method, Task

PROMPT: Final = "[P]"  # in the wording of a question: the prompt with a blank
TRAIN: Final = "train"  # a benchmark's table of facts that are never asked

Template = Literal["none", "chat"]
Form = Literal["constrained", "free"]
FORM_NEEDS: Final[dict[Form, Ability]] = {"constrained": "echo", "free": "write"}


def _check_pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise PydanticCustomError("pattern", f"not a pattern: {error}") from None
    return value


class Thinking(Section):
    """Thoughts before an answer."""

    budget: int | None = Field(None, ge=0)
    """Tokens for thoughts. Empty: 2048 where the model is known to think, else 0."""


class Answering(Method):
    """Ranks candidates by what the model would write, or takes what it writes.

    Form `constrained` ranks the candidates, form `free` takes the model's own text. There is a
    variant for each template, number of shots and form, such as `chat-3-shot-free`.
    """

    KINDS = ("chat", "causal", "seq2seq")
    WRITES_WITH = MappingProxyType({"forms": ["free"]})
    ASK_PRIORITY = MappingProxyType({"write": 1})
    NEEDS = frozenset(FORM_NEEDS.values())
    ONLY_SELECTS = frozenset({"templates", "shots", "forms"})

    class Settings(Section):
        """How a model is asked, all combinations, and how free answers are written.

        Shots are drawn for each prompt by the seed, from the benchmark's table `train`, of the same
        relation and subset, without the subjects that are asked about.
        """

        templates: tuple[Template, ...] = ()
        """With the tokenizer's chat template (`chat`), without (`none`), or both. Empty: all that
        the model has."""
        shots: tuple[Annotated[int, Field(ge=0)], ...] = (0,)
        """Numbers of example facts that precede a prompt. They are drawn from the benchmark's table
        `train`."""
        forms: tuple[Form, ...] = ("constrained", "free")
        """`constrained` ranks the candidates; `free` lets the model write."""
        question: Annotated[str, StringConstraints(pattern=r"\[P\]")] = (
            f"Fill in the blank with a name and nothing else: {PROMPT}"
        )
        """The question, with `[P]` for the prompt."""
        system: str = ""
        """The system prompt of a chat, such as `Answer with the name alone.`"""
        separator: str = Field("\n", min_length=1)
        """Text between sentences where no chat template is used."""
        today: date = prompt_texts.DATE
        """The date for a chat template that asks for one. A server has a clock of its own."""
        beams: int = Field(10, gt=1)
        """`free`: texts that beam search writes."""
        samples: int = Field(0, ge=0)
        """`free`: texts that are sampled, in place of beams."""
        temperature: float | None = Field(None, gt=0)
        """Temperature of sampling. Empty: the checkpoint's, or 1."""
        own_settings: bool = False
        """`free`: use the checkpoint's generation settings."""
        spare: int = Field(32, ge=0)
        """`free`: tokens beyond the longest candidate."""
        thinking: Thinking = Thinking()
        """`free`: room for thoughts before the answer of a chat."""
        think_end: str = answers.THINK_END
        """`free`: what ends thoughts; `</think>` stands for the marks of other models too. Empty:
        nothing is taken off."""
        extract: Annotated[str, StringConstraints(min_length=1), AfterValidator(_check_pattern)] = (
            extraction.NAMES
        )
        """`free`: what of a text is the answer. `names` is the one name of the benchmark that is
        in it, `first_line` and `last_line` a line, anything else a pattern (its first group)."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        kinds = finder.find_kinds(checkpoint)
        self.head: Head = "seq2seq" if "seq2seq" in kinds else "causal"
        self.backend = finder.find(checkpoint, self.head, engine)
        self.writer = writer_of(self.backend)
        self.settings = settings
        self.seed = seed

    @cached_property
    def ranker(self) -> Ranker:
        """What ranks names under the model."""
        return ranker_of(self.backend)

    def passes(self) -> list[str]:
        """A pass a variant, of the forms that the backend is able to give."""
        settings, writer = self.settings, self.writer
        templates: list[Template] = ["chat"] if writer.has_template else []
        if writer.has_completion:
            templates.append("none")
        forms = [form for form in settings.forms if FORM_NEEDS[form] in self.backend.abilities]
        choices = product(settings.templates or templates, settings.shots, forms)
        return [f"{template}-{shots}-shot-{form}" for template, shots, form in choices]

    @classmethod
    def needs_tables(cls, settings: Settings) -> tuple[str, ...]:
        """Facts to show, where any are shown."""
        return (TRAIN,) if any(settings.shots) else ()

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """A task a relation and subset, with the facts that may be shown."""
        tasks = super().tasks(tables, k)
        facts = tables.others.get(TRAIN)
        if facts is None or not any(self.settings.shots):
            return tasks
        return [replace(task, tables={TRAIN: _exclude_subjects(task, facts)}) for task in tasks]

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """Return the k best answers of each query.

        The score is the log-likelihood of the text that the answer ends (`constrained`), or the
        score of `writing.write` (`free`). `extraction` says which answer a free text
        is; one that is none has the prediction "". Columns `text` and `unanswered` say what was
        written, and why it is no answer. Free answers are compared by the benchmark's rule and by
        that of BioLAMA's evaluator, which ignores case, punctuation and articles.
        """
        template, shots, _, form = pass_.split("-")
        prompts = self._prompts(task, template == "chat", int(shots))
        names = sorted(set(task.benchmark_candidates["name"]))
        if form == "free":
            texts = self._write_texts(task, prompts, names, is_chat=template == "chat")
            return self._read_texts(task, texts, pass_, goes_on=template != "chat")
        rows = []
        ranked = self._rank_candidates(task, prompts, names)
        for query, ranked_names in zip(task.queries.itertuples(), ranked, strict=True):
            right_answers = set(map(task.normalise, query.answers))
            for row in ranking.prediction_rows(str(query.query_id), ranked_names, pass_):
                rows.append({**row, "hit": task.normalise(row["prediction"]) in right_answers})
        return pd.DataFrame(rows)

    def requests(self, task: Task, pass_: str) -> int:
        """One for each query and name (`constrained`) or text (`free`)."""
        if pass_.endswith("free"):
            return len(task.queries) * (self.settings.samples or 1)
        return len(task.queries) * task.benchmark_candidates["name"].nunique()

    def _rank_candidates(
        self, task: Task, prompts: list[Prompt], names: list[str]
    ) -> Iterator[list[tuple[str, float]]]:
        """The likeliest candidates, each with what ends it."""
        labels = task.query_labels
        inputs = self.writer.tokenize(prompts, labels, self.settings.separator)
        aim = Ranking(names, task.k, variants=len(VARIANTS))
        for total, *_ in self.ranker.find_likeliest(inputs, labels, aim):
            yield [(names[i], score) for i, score in total.names]

    def _write_texts(
        self, task: Task, prompts: list[Prompt], names: list[str], *, is_chat: bool
    ) -> list[list[writing.Text]]:
        settings, budget = self.settings, self.settings.thinking.budget
        if budget is None:
            budget = answers.THOUGHTS if self.writer.thinks else 0
        generation = writing.WritingSettings(
            beams=settings.beams,
            samples=settings.samples,
            temperature=settings.temperature,
            cap=self.writer.answer_length(names) + settings.spare,
            own_settings=settings.own_settings,
            seed=self.seed,
            one_line=not is_chat,
            thoughts=budget if is_chat else 0,
        )
        written = self.writer.write(prompts, task.query_labels, generation, settings.separator)
        return [[writing.Text(*text) for text in texts] for texts in written]

    def _read_texts(
        self,
        task: Task,
        texts_by_query: list[list[writing.Text]],
        pass_: str,
        *,
        goes_on: bool,
    ) -> pd.DataFrame:
        """The answers that texts are; texts of one answer are one prediction.

        A text that goes on with its prompt counts up to the end of its sentence.
        """
        settings, rule = self.settings, answers.loose(task.normalise)
        adds = settings.samples > 0
        reading = extraction.Extraction(settings.extract, settings.think_end)
        names = extraction.Names.of_tables(task.queries, task.benchmark_candidates)
        rows = []
        for query, texts in zip(task.queries.itertuples(), texts_by_query, strict=True):
            right_answers = set(map(rule, query.answers))
            written = (
                (*extraction.first_sentence(text, is_cut=is_cut), score)
                if goes_on
                else (text, is_cut, score)
                for text, score, is_cut in texts
            )
            best = extraction.rank_answers(written, names, query, reading, add=adds)[: task.k]
            pairs = [(answer.name, answer.score) for answer in best]
            predictions = ranking.prediction_rows(str(query.query_id), pairs, pass_)
            for row, answer in zip(predictions, best, strict=True):
                hit = answer.name != "" and rule(answer.name) in right_answers
                further = {"text": answer.text, "unanswered": answer.unanswered}
                rows.append({**row, "hit": hit, **further})
        return pd.DataFrame(rows)

    def _prompts(self, task: Task, chat: bool, shots: int) -> list[Prompt]:
        """Return each query as the model is asked, the shots before it."""
        if shots:
            _check_shots(task, shots)
        return [self._prompt(row, task, chat, shots) for row in task.queries.itertuples()]

    def _prompt(self, query: Any, task: Task, chat: bool, shots: int) -> Prompt:
        draw = random.Random(f"{self.seed} {query.prompt}")
        facts_to_state = task.tables[TRAIN].to_dict("records") if shots else []
        facts = [
            (fact["prompt"], fact["answers"][0]) for fact in draw.sample(facts_to_state, shots)
        ]
        separator = self.settings.separator
        if self.head == "causal" and not chat:
            sentences = [prompt.replace(SLOT, answer) for prompt, answer in facts]
            return prompt_texts.completion(query.prompt, sentences, separator)
        turns = [(self._word_question(prompt), answer) for prompt, answer in facts]
        question = self._word_question(query.prompt)
        if chat:
            return Chat(tuple(turns), question, self.settings.today, self.settings.system)
        return prompt_texts.turns(turns, question, separator)

    def _word_question(self, prompt: str) -> str:
        return self.settings.question.replace(PROMPT, prompt.replace(SLOT, BLANK))


def _exclude_subjects(task: Task, facts: pd.DataFrame) -> pd.DataFrame:
    """Facts of the task's relation and subset about subjects that it does not ask of."""
    query = task.queries.iloc[0]
    same_relation = (facts["relation"] == query["relation"]) & (facts["subset"] == query["subset"])
    same_subject = facts["subject_id"].isin(task.queries["subject_id"])
    return facts[same_relation & ~same_subject].reset_index(drop=True)


def _check_shots(task: Task, shots: int) -> None:
    place = f"{task.queries['benchmark'].iloc[0]}: {task.name}"
    if TRAIN not in task.tables:
        remedy = "give the table train or keep_out, or set shots: [0]"
        raise BadInput(place, f"no table {TRAIN}, so no facts to tell", remedy)
    if (count := len(task.tables[TRAIN])) < shots:
        problem = f"{count} facts that are never asked, {shots} are to be shown"
        raise BadInput(place, problem, "set fewer shots")
