"""Answering: a model is asked in words, and writes the answer (Brown et al. 2020, section 3.3).

Causal models go on with the prompt's own text, encoder-decoder models tuned to follow instructions
(Flan-T5) are put a question, chat models as well, by the tokenizer's own template. Facts of the
same relation may be told before. See `engine.asking`, and `engine.writing` for free answers.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import pandas as pd
from pydantic import Field, StringConstraints

from medprobe.core import answers
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, Section
from medprobe.core.tables import BLANK, SLOT, BenchmarkTables
from medprobe.engine import asking, ranking, writing
from medprobe.engine.inspection import Head, inspect
from medprobe.engine.likeliest import likeliest
from medprobe.engine.load import load
from medprobe.engine.slots import Slot, answer_ids
from medprobe.methods import Method, Task

PROMPT: Final = "[P]"  # in the wording of a question: the prompt with a blank
TRAIN: Final = "train"  # a benchmark's table of facts that are never asked

Template = Literal["none", "chat"]
Form = Literal["constrained", "free"]


class Answering(Method):
    """Ranks the candidates by what the model would write (`constrained`), or what it writes
    (`free`); a variant for each template, number of shots and form: `chat-3-shot-free`."""

    KINDS = ("chat", "causal", "seq2seq")
    SELECTING = frozenset({"templates", "shots", "forms"})

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
        separator: str = Field("\n", min_length=1)
        """Text between sentences where no chat template is used."""
        beams: int = Field(10, gt=1)
        """`free`: texts that beam search writes."""
        samples: int = Field(0, ge=0)
        """`free`: texts that are sampled, in place of beams."""
        temperature: float | None = Field(None, gt=0)
        """Temperature of sampling. Empty: the checkpoint's, or 1."""
        own_settings: bool = False
        """`free`: use the checkpoint's generation settings."""
        spare: int = Field(4, ge=0)
        """`free`: tokens that may be written beyond the longest candidate."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        self.head: Head = "seq2seq" if "seq2seq" in inspect(checkpoint).kinds else "causal"
        self.model = load(checkpoint, self.head, engine)
        self.settings = settings
        self.seed = seed

    def passes(self) -> list[str]:
        """A pass a variant."""
        settings = self.settings
        able: tuple[Template, ...] = (
            ("chat", "none") if asking.has_template(self.model) else ("none",)
        )
        return [
            f"{template}-{shots}-shot-{form}"
            for template in settings.templates or able
            for shots in settings.shots
            for form in settings.forms
        ]

    def tasks(self, tables: BenchmarkTables, k: int) -> list[Task]:
        """A task a relation and subset, with the facts that may be told."""
        tasks = super().tasks(tables, k)
        facts = tables.others.get(TRAIN)
        if facts is None or not any(self.settings.shots):
            return tasks
        return [replace(task, tables={TRAIN: _unasked(task, facts)}) for task in tasks]

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """The k best answers of each query, with the log-likelihood of the text that they end
        (`constrained`), or as `engine.writing.write` scores them (`free`).

        A free answer is a hit where it equals an answer by the benchmark's rule and that of
        BioLAMA's evaluator: letter case, punctuation and articles aside. Raises BadInput for a
        prompt without exactly one slot, or longer than the model's window; where there are fewer
        facts than are to be told; and where the tokenizer has no template for a chat.
        """
        template, shots, _, form = pass_.split("-")
        asked = self._asked(task, template == "chat", int(shots))
        names = sorted(set(task.benchmark_candidates["name"]))
        best = self._free(task, asked, names) if form == "free" else self._among(task, asked, names)
        rule = _loosely(task) if form == "free" else task.normalise
        rows = []
        for query, of_query in zip(task.queries.itertuples(), best, strict=True):
            right = {rule(answer) for answer in query.answers}
            for row in ranking.rows(str(query.query_id), of_query, pass_):
                rows.append({**row, "hit": rule(row["prediction"]) in right})
        return pd.DataFrame(rows)

    def _among(
        self, task: Task, asked: list[writing.Asked], names: list[str]
    ) -> Iterator[list[writing.Text]]:
        """The likeliest candidates, each with what ends it."""
        slots = [slot for slot, _ in asked]
        sources = [source for _, source in asked if source]
        found = likeliest(self.model, slots, task.query_labels, names, task.k, sources=sources)
        for total, *_ in found:
            yield [(names[i], score) for i, score in total.names]

    def _free(
        self, task: Task, asked: list[writing.Asked], names: list[str]
    ) -> list[list[writing.Text]]:
        longest = max(map(len, answer_ids(self.model.tokenizer, names, " ")))
        chosen = self.settings
        way = writing.Way(
            beams=chosen.beams,
            samples=chosen.samples,
            temperature=chosen.temperature,
            cap=longest + chosen.spare,
            own_settings=chosen.own_settings,
            seed=self.seed,
        )
        written = writing.write(self.model, asked, task.query_labels, way)
        return [of_query[: task.k] for of_query in written]

    def _asked(self, task: Task, chat: bool, shots: int) -> list[writing.Asked]:
        """What each query is to the model: a slot, and what an encoder reads."""
        model, separator = self.model, self.settings.separator
        if shots:
            _check_shots(task, shots)
        texts = [self._text(row, task, chat, shots) for row in task.queries.itertuples()]
        if self.head == "causal":
            slots = asking.slots(model, texts, task.query_labels, separator, begun=chat)
            return [(slot, ()) for slot in slots]
        begin = Slot(asking.decoder_start(model), (model.tokenizer.eos_token_id,), "")
        read = [text.partition(SLOT)[0].rstrip() for text in texts]
        sources = model.tokenizer(read, add_special_tokens=not chat, verbose=False)["input_ids"]
        return [(begin, tuple(source)) for source in sources]

    def _text(self, query: Any, task: Task, chat: bool, shots: int) -> str:
        """The text with a slot that a query is, the shots before it."""
        draw = random.Random(f"{self.seed} {query.prompt}")
        told = task.tables[TRAIN].to_dict("records") if shots else []
        facts = [(fact["prompt"], fact["answers"][0]) for fact in draw.sample(told, shots)]
        if self.head == "causal" and not chat:
            sentences = [prompt.replace(SLOT, answer) for prompt, answer in facts]
            return asking.completion(query.prompt, sentences, self.settings.separator)
        turns = [(self._question(prompt), answer) for prompt, answer in facts]
        if chat:
            return asking.chat(self.model, turns, self._question(query.prompt))
        return asking.turns(turns, self._question(query.prompt), self.settings.separator)

    def _question(self, prompt: str) -> str:
        return self.settings.question.replace(PROMPT, prompt.replace(SLOT, BLANK))


def _loosely(task: Task) -> Callable[[str], str]:
    """The rule by which free answers are equal."""
    return lambda text: answers.biolama(task.normalise(text))


def _unasked(task: Task, facts: pd.DataFrame) -> pd.DataFrame:
    """Facts of the task's relation and subset about subjects that it does not ask of."""
    first = task.queries.iloc[0]
    own = (facts["relation"] == first["relation"]) & (facts["subset"] == first["subset"])
    asked = facts["subject_id"].isin(task.queries["subject_id"])
    return facts[own & ~asked].reset_index(drop=True)


def _check_shots(task: Task, shots: int) -> None:
    where = f"{task.queries['benchmark'].iloc[0]}: {task.name}"
    if TRAIN not in task.tables:
        raise BadInput(where, f"no table {TRAIN}, so no facts to tell", "set shots: [0]")
    if (count := len(task.tables[TRAIN])) < shots:
        problem = f"{count} facts that are never asked, {shots} are to be told"
        raise BadInput(where, problem, "set fewer shots")
