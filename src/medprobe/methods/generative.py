"""Generation (BART, T5, SciFive): beam search fills the slot.

T5's family writes the answer alone; of what BART's family writes, the prompt's own text is taken
off. See `engine.seq2seq`.
"""

from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import pandas as pd
from pydantic import Field

from medprobe.core import answers
from medprobe.core.params import EngineParams
from medprobe.core.settings import Section
from medprobe.engine import ranking, seq2seq
from medprobe.engine.load import load
from medprobe.engine.slots import answer_ids, check_window, split_prompt
from medprobe.methods import Method, Task

UNKNOWN: Final = 12  # tokens of the longest answer, where no answer is known


class Generative(Method):
    """Ranks generated texts by the mean log-probability of their tokens.

    `rouge_l` is a further column: ROUGE-L's F against the best answer, by the package rouge-score.
    """

    KINDS = ("seq2seq",)
    WRITES_WITH = MappingProxyType({})

    class Settings(Section):
        """The paper's settings: ten beams, of which all are kept.

        Its published numbers were made by `script: released` (`engine.seq2seq_released`).
        """

        beams: int = Field(10, gt=0)
        """Texts that beam search writes."""
        script: Literal["ours", "released"] = "ours"
        """`ours`, or as the `released` script."""
        spare: int = Field(4, ge=0)
        """`ours`: tokens beyond the longest answer."""
        own_settings: bool = False
        """`ours`: use the checkpoint's generation settings."""

    def __init__(
        self, checkpoint: Path, settings: Settings, engine: EngineParams, seed: int
    ) -> None:
        self.checkpoint = checkpoint
        self.model = load(checkpoint, "seq2seq", engine)
        # the limit of tokens, and what was last written for each prompt
        self.last_output: tuple[int, dict[str, Any]] = (0, {})
        self.settings = settings

    def predict(self, task: Task, pass_: str) -> pd.DataFrame:
        """Return the k best texts of each query; candidates are not used.

        A text is a hit if it equals an answer by the benchmark's rule, ignoring case.
        """
        released = self.settings.script == "released"
        texts = self._write_as_released(task) if released else self._write_texts(task)
        same = answers.uncased(task.normalise)
        rows = []
        for query, of_query in zip(task.queries.itertuples(), texts, strict=True):
            right_answers = {same(answer) for answer in query.answers}
            for row in ranking.prediction_rows(str(query.query_id), of_query[: task.k]):
                text = row["prediction"]
                rouge = rouge_l(text, list(query.answers))
                rows.append({**row, "hit": same(text) in right_answers, "rouge_l": rouge})
        return pd.DataFrame(rows)

    def _write_as_released(self, task: Task) -> list[list[tuple[str, float]]]:
        prompts = task.queries["prompt"].tolist()
        if not set(prompts) <= set(self.last_output[1]):
            labels = task.label_by_prompt
            texts = seq2seq.texts(self.model, labels, [*labels.values()], self.settings.beams)
            self.last_output = 0, dict(zip(labels, texts, strict=True))
        return [self.last_output[1][prompt] for prompt in prompts]

    def _write_texts(self, task: Task) -> list[list[tuple[str, float]]]:
        """Each query's distinct texts, best first.

        No text is longer than the longest answer to these queries plus `spare` tokens.
        """
        queries, settings = task.queries, self.settings
        labels = task.label_by_prompt
        frames = seq2seq.frames(self.model, labels, [*labels.values()])
        for frame, query in zip(frames, labels.values(), strict=True):
            check_window(frame.target, [[0]], self.model.max_length, query, ["one token"])
        limit = self._length_limit(
            frames, sorted({name for row in queries["answers"] for name in row})
        )
        prompts = queries["prompt"].tolist()
        if self.last_output[0] != limit or not set(prompts) <= set(self.last_output[1]):
            sequences = seq2seq.generate(
                self.model,
                frames,
                settings.beams,
                limit,
                self.model.token_budget,
                checkpoint_settings=settings.own_settings,
            )
            self.last_output = limit, dict(zip(labels, sequences, strict=True))
        texts = []
        for prompt in prompts:
            scores: dict[str, float] = {}
            for ids, score in self.last_output[1][prompt]:
                text = self._read_answer(ids, prompt)
                scores[text] = max(score, scores.get(text, score))
            texts.append(sorted(scores.items(), key=lambda item: (-item[1], item[0])))
        return texts

    def _length_limit(self, frames: list[seq2seq.Frame], names: list[str]) -> int:
        """The most tokens to write: the longest answer, and what BART's family writes around it."""
        sentence = 0
        if not seq2seq.writes_sentinels(self.model):
            sentence = max(len(f.target.before) + len(f.target.after) for f in frames)
        lengths = [len(ids) for ids in answer_ids(self.model.tokenizer, names, " ")]
        longest = max(lengths, default=UNKNOWN)
        return longest + sentence + self.settings.spare

    def _read_answer(self, ids: list[int], prompt: str) -> str:
        """The text of an answer: what was written, without the prompt's own text."""
        text = " ".join(self.model.tokenizer.decode(ids, skip_special_tokens=True).split())
        if seq2seq.writes_sentinels(self.model):
            return text
        before, after = (" ".join(part.split()) for part in split_prompt(prompt))
        return text.removeprefix(before).removesuffix(after).strip()


def rouge_l(text: str, names: list[str]) -> float:
    """ROUGE-L's F of a text against the answer it is nearest to, NaN where none is known.

    >>> rouge_l("acute renal failure", ["chronic renal failure", "fever"])
    0.6666666666666666
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"])
    scores = [float(scorer.score(name, text)["rougeL"].fmeasure) for name in names]
    return max(scores, default=float("nan"))
