"""The backend of a model behind an OpenAI-compatible server.

Free answers are greedy, one text for a query, or draws. Names are ranked one request a name: a
server has no search over their trie.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from medprobe.backends import Ability, find_abilities
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams, ModelKind, load_params
from medprobe.core.parts import fingerprint
from medprobe.core.progress import report_progress
from medprobe.core.tables import SLOT
from medprobe.engine import causal, texts
from medprobe.engine.configuration import read_config
from medprobe.engine.load import Model
from medprobe.engine.slots import WritingPrompt, answer_ids
from medprobe.engine.tokenizer import load_tokenizer
from medprobe.extensions.chat import prompt_texts
from medprobe.extensions.chat.prompt_texts import Chat, Prompt, answer_slots, text_of
from medprobe.extensions.chat.writing import Text, WritingSettings
from medprobe.extensions.likelihood.rankers import Ranking, VariantRanking, rank_by_scores
from medprobe.extensions.servers.client import Body, Client, nested, read_choice
from medprobe.extensions.servers.fingerprint import (
    FETCH_AGAIN,
    FINGERPRINT,
    RECORD,
    check_answers,
    read_record,
)

TOP: Final = 20  # likeliest tokens asked for: the most that OpenAI's interface gives
ENDED: Final = (  # by itself
    *("stop", "eos", "eos_token", "stop_sequence", "end_turn", "complete"),
    *("completed", "done", "end", "finished", "normal"),
)
CUT: Final = ("length", "max_tokens", "model_length")  # all other reasons to finish: no answer
UNLIMITED: Final = 1_000_000_000  # tokens of a window, which the server itself bounds


def open_server(folder: Path) -> "Served":
    """Return the backend of a model's folder; its connection is that of params.yaml."""
    record, servers = read_record(folder), load_params().servers
    if folder.name not in servers:
        raise BadInput("params.yaml", f"servers: no server '{folder.name}'", "add it again")
    client = Client(folder.name, servers[folder.name])
    other = [key for key, value in client.identity.items() if record.get(key) != value]
    if other:
        named = ", ".join(other).replace(".sha256", "")
        problem = f"another {named} than when it was asked what it can do"
        raise BadInput(f"servers.{folder.name}", problem, FETCH_AGAIN.format(folder.name))
    return Served(client, record["kind"], find_abilities(folder), record.get("thinks") is True)


@dataclass(frozen=True)
class Served:
    """A model behind a server."""

    client: Client
    kind: ModelKind  # chat or causal
    abilities: frozenset[Ability]
    thinks: bool = False

    @classmethod
    def open(cls, folder: Path, engine: EngineParams) -> "Served":
        """Open the model of a folder."""
        return open_server(folder)

    @classmethod
    def find_tokenizer(cls, folder: Path) -> Any:
        """Return the tokenizer that params.yaml names for the server; None if it names none."""
        served = open_server(folder)
        return served.text_model.tokenizer if served.client.params.tokenizer else None

    @classmethod
    def describe(cls, folder: Path) -> dict[str, object]:
        """List what is known of the server that computed a result, in place of a device."""
        record, params = read_record(folder), load_params().servers[folder.name]
        return {
            "device": f"server {record['host']}",
            "server.weights": "not hashed: the server does not show them",
            "server.fingerprint.day": record[FINGERPRINT]["day"],
            "server.record.sha256": fingerprint([folder / RECORD]),
            **{f"server.{key}": record[key] for key in ("model", "tokenizer", "thinks")},
            **{f"server.extra.{key}": str(value) for key, value in record["extra"].items()},
            "server.zero_retention": params.zero_retention,
        }

    @classmethod
    def check(cls, folder: Path, *, once: bool = False) -> None:
        """Refuse a server that has another model now, and say how many answers differ."""
        client = open_server(folder).client
        check_answers(replace(client, tries=1) if once else client, read_record(folder))

    @property
    def has_template(self) -> bool:
        """Whether it is asked by turns, which the server puts into its template."""
        return self.kind == "chat"

    @property
    def has_completion(self) -> bool:
        """Whether it is asked by texts to go on with."""
        return self.kind == "causal"

    @cached_property
    def text_model(self) -> Model:
        """The model's tokenizer as a model without a network."""
        folder = self.client.params.tokenizer
        if folder is None:
            problem = "texts are scored by token ids, and nothing says where its tokenizer is"
            raise BadInput(f"servers.{self.client.name}", problem, "set tokenizer: FOLDER")
        tokenizer = load_tokenizer(folder, read_config(folder))
        nowhere = torch.device("meta")
        return Model(
            self.client.name, None, tokenizer, nowhere, torch.float32, UNLIMITED, UNLIMITED
        )

    def answer_length(self, names: Sequence[str]) -> int:
        """Without a tokenizer the bytes of the longest name, of which a token has one at least."""
        if self.client.params.tokenizer is None:
            return max((len(name.encode()) for name in names), default=0)
        return max(map(len, answer_ids(self.text_model.tokenizer, names, " ")), default=0)

    def write(
        self,
        prompts: Sequence[Prompt],
        where: Sequence[str],
        settings: WritingSettings,
        separator: str,
    ) -> list[list[Text]]:
        """The greedy text, or draws. The score is the share of texts that are this one."""
        self.require("write", "free answers")
        count = settings.samples or 1
        options: Body = {"max_tokens": settings.cap + settings.thoughts}
        if not settings.own_settings:
            options |= {"temperature": 1.0 if settings.samples else 0.0, "top_p": 1.0}
        if settings.temperature is not None and settings.samples:
            options["temperature"] = settings.temperature
        bodies: list[Body] = []
        for prompt in prompts:
            for draw in range(count):
                seed = f"{settings.seed} {draw} {prompt}".encode()
                number = int.from_bytes(hashlib.sha256(seed).digest()[:4], "big") // 2
                extra = {"seed": number} if settings.samples else {}
                bodies.append({**self._ask(prompt, separator), **options, **extra})
        answers = []
        for number, answer in enumerate(self.client.post_all(self._path, bodies), 1):
            text, is_cut = read_text(answer, self.kind, f"servers.{self.client.name}")
            answers.append((_first_line(text, separator) if settings.one_line else text, is_cut))
            report_progress(int(number % count == 0), "queries")
        written = []
        for start in range(0, len(answers), count):
            drawn = answers[start : start + count]
            shares = {answer: drawn.count(answer) / count for answer in drawn}
            best = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
            written.append([Text(text, share, is_cut) for (text, is_cut), share in best])
        return written

    def word_log_probs(
        self, prompts: Sequence[Prompt], where: Sequence[str], words: Sequence[str], separator: str
    ) -> list[list[float]]:
        """By the likeliest first tokens, blanks at their ends aside.

        A word that is not among them has the log-probability of the last of them, which is an upper
        bound.
        """
        self.require("top_logprobs", "the probability of a word")
        extra: Body = {"max_tokens": 1, "temperature": 0.0, **top_logprobs_body(self.kind)}
        bodies = [{**self._ask(prompt, separator), **extra} for prompt in prompts]
        rows = []
        answers = self.client.post_all(self._path, bodies)
        for answer, label in zip(answers, where, strict=True):
            listed = read_top(answer, self.kind)
            if not listed:
                raise BadInput(label, f"{self.client.name} leaves out top_logprobs")
            lowest = min(log_prob for _, log_prob in listed)
            scores = [max((s for t, s in listed if t.strip() == w), default=None) for w in words]
            if all(score is None for score in scores):
                problem = f"none of {', '.join(words)} is among its {len(listed)} likeliest tokens"
                raise BadInput(label, problem, "set wordings to words that it answers by")
            rows.append([lowest if score is None else score for score in scores])
        return rows

    def text_log_probs(
        self, sentences: Sequence[str], where: Sequence[str], answers_first: Sequence[bool] = ()
    ) -> list[list[float]]:
        """By echo."""
        self.require("echo", "the probability of a text")
        rows = texts.causal_rows(self.text_model, sentences, where, answers_first)
        log_probs = [scores[1:] for scores in self.echo(rows, where)]
        return texts.drop_start(self.text_model, log_probs)

    def tokenize(
        self, prompts: Sequence[Prompt], where: Sequence[str], separator: str | None = None
    ) -> list[WritingPrompt]:
        """Slots under the model's tokenizer."""
        model = self.text_model
        if separator is not None:
            return [(slot, ()) for slot in answer_slots(model, prompts, where, separator)]
        plain = [text_of(model, prompt) for prompt in prompts]
        return [(slot, ()) for slot in causal.prompt_slots(model, plain, where)]

    def find_likeliest(
        self, prompts: Sequence[WritingPrompt], where: Sequence[str], ranking: Ranking
    ) -> list[list[VariantRanking]]:
        """By the echo of filled prompts, one for each name."""
        self.require("echo", "the ranking of names")
        rankings: list[list[VariantRanking]] = []
        for i, ((slot, _), label) in enumerate(zip(prompts, where, strict=True)):
            ids = answer_ids(self.text_model.tokenizer, ranking.names, slot.preceding)
            rows = [slot.fill(name_ids) for name_ids in ids]
            right = ranking.answers[i] if ranking.answers else ()
            log_probs = [scores[slot.forced :] for scores in self.echo(rows, [label] * len(rows))]
            totals = [sum(scores) for scores in log_probs]
            means = [sum(scores) / len(scores) for scores in log_probs]
            by_variant = (totals, means)[: ranking.variants]
            rankings.append([rank_by_scores(s, ranking.k, right) for s in by_variant])
            report_progress(1, "queries")
        return rankings

    def echo(self, rows: Sequence[Sequence[int]], where: Sequence[str]) -> Iterator[list[float]]:
        """Yield for each row of token ids the log-probability of each; of the first it is 0."""
        bodies = [echo_body(row) for row in rows]
        answers = self.client.post_all("completions", bodies)
        for row, answer, label in zip(rows, answers, where, strict=True):
            scores = read_echo(answer, len(row))
            if scores is None:
                raise BadInput(label, f"{self.client.name} leaves out echoed log-probabilities")
            yield scores

    def require(self, ability: Ability, purpose: str) -> None:
        """Raise BadInput where the server lacks an ability."""
        if ability not in self.abilities:
            problem = f"it gives no {ability}, which is needed for {purpose}"
            raise BadInput(f"servers.{self.client.name}", problem, "`medprobe doctor` shows why")

    @property
    def _path(self) -> str:
        return "chat/completions" if self.kind == "chat" else "completions"

    def _ask(self, prompt: Prompt, separator: str) -> Body:
        """The part of a request that has the prompt."""
        if isinstance(prompt, Chat):
            turns, question, _, system = prompt
            return {"messages": prompt_texts.chat_messages(turns, question, system)}
        return {"prompt": prompt.partition(SLOT)[0].rstrip(" "), "stop": [separator]}


def echo_body(row: Sequence[int]) -> Body:
    """Return the request for the log-probabilities of a row of token ids."""
    options = {"max_tokens": 1, "temperature": 0.0, "echo": True, "logprobs": 1}
    return {"prompt": list(row), **options}


def read_echo(answer: Body, count: int) -> list[float] | None:
    """Return the log-probabilities of the first `count` tokens, or None where any is left out."""
    listed = nested(answer, "choices", 0, "logprobs", "token_logprobs")
    if not isinstance(listed, list) or len(listed) < count or count < 2:
        return None
    first, *others = listed[:count]
    are_numbers = all(map(is_log_prob, others))
    return [0.0, *map(float, others)] if first is None and are_numbers else None


def top_logprobs_body(kind: ModelKind) -> Body:
    """Return what asks for the likeliest tokens."""
    return {"logprobs": True, "top_logprobs": TOP} if kind == "chat" else {"logprobs": TOP}


def read_top(answer: Body, kind: ModelKind) -> list[tuple[str, float]]:
    """Return the likeliest first tokens with their log-probabilities.

    Empty where they are left out, or where one is not a log-probability.
    """
    if kind == "chat":
        listed = nested(answer, "choices", 0, "logprobs", "content", 0, "top_logprobs")
        tokens = listed if isinstance(listed, list) else []
        pairs = [(nested(token, "token"), nested(token, "logprob")) for token in tokens]
    else:
        top = nested(answer, "choices", 0, "logprobs", "top_logprobs", 0)
        pairs = [*top.items()] if isinstance(top, dict) else []
    if not all(isinstance(token, str) and is_log_prob(score) for token, score in pairs):
        return []
    return [(token, float(score)) for token, score in pairs]


def is_log_prob(value: object) -> bool:
    """Return whether foreign JSON holds a log-probability: a number up to 0."""
    return isinstance(value, int | float) and -np.inf < value <= 0


def read_text(answer: Body, kind: ModelKind, where: str) -> tuple[str, bool]:
    """Return the text of an answer, and whether it is cut.

    It is "" where the server refuses to answer or fails in the midst of it, and where it parts
    thoughts from an answer that they leave no room for.
    """
    choice = nested(answer, "choices", 0)
    text = read_choice(choice)[1]
    if text is None or (kind == "chat") != isinstance(nested(choice, "message"), dict):
        raise BadInput(where, "its answer has no text", "is it a server of this kind of model?")
    reason = nested(choice, "finish_reason")
    ending = str(nested(reason, "type") or reason or "stop").lower()  # an object, as of SGLang
    is_answer = ending in (*ENDED, *CUT) and not nested(choice, "message", "refusal")
    return text if is_answer else "", ending in CUT


def _first_line(text: str, separator: str) -> str:
    """Return an answer up to its end or that of its first line.

    >>> _first_line(" acute  pain . So", " .")
    'acute pain'
    """
    text = text.strip().partition(separator)[0] if separator.strip() else text.strip()
    return " ".join(text.partition("\n")[0].split())
