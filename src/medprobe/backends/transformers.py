"""The backend of a checkpoint that runs in this process."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medprobe.backends import ABILITIES
from medprobe.backends.base import Chat, Prompt, answer_slots, text_of
from medprobe.core.answers import THINK_END
from medprobe.core.params import EngineParams
from medprobe.core.tables import SLOT
from medprobe.engine import causal, load, prompt_texts, seq2seq, texts, writing
from medprobe.engine.inspection import Head
from medprobe.engine.slots import Slot, answer_ids, check_window
from medprobe.engine.writing import WritingPrompt


@dataclass
class Transformers:
    """A causal or an encoder-decoder model of transformers."""

    model: load.Model
    head: Head
    abilities = ABILITIES
    has_completion = True

    @classmethod
    def load(cls, folder: Path, head: Head, engine: EngineParams) -> "Transformers":
        """Load a checkpoint."""
        return cls(load.load(folder, head, engine), head)

    @property
    def has_template(self) -> bool:
        """Whether the tokenizer has a template for chats."""
        return prompt_texts.has_template(self.model)

    @property
    def thinks(self) -> bool:
        """Whether the template knows of thoughts."""
        return THINK_END in str(self.model.tokenizer.chat_template or "")

    def answer_length(self, names: Sequence[str]) -> int:
        """The tokens of the longest name."""
        return max(map(len, answer_ids(self.model.tokenizer, names, " ")), default=0)

    def write(
        self,
        prompts: Sequence[Prompt],
        where: Sequence[str],
        settings: writing.WritingSettings,
        separator: str,
    ) -> list[list[writing.Text]]:
        """By beam search or draws (`engine.writing`); with thoughts, the likeliest token each time.

        Thoughts and their answer end where the checkpoint ends a text.
        """
        if not settings.thoughts:
            slots = self.tokenize(prompts, where, separator)
            return writing.write(self.model, slots, where, settings)
        texts = [
            prompt_texts.chat(self.model, *prompt, thinks=True)
            for prompt in prompts
            if isinstance(prompt, Chat)
        ]
        slots = [
            (replace(slot, after=()), ())
            for slot in prompt_texts.slots(self.model, texts, where, separator, has_start=True)
        ]
        settings = replace(settings, beams=1, cap=settings.cap + settings.thoughts)
        return writing.write(self.model, slots, where, settings)

    def word_log_probs(
        self, prompts: Sequence[Prompt], where: Sequence[str], words: Sequence[str], separator: str
    ) -> list[list[float]]:
        """All tokens of a word count."""
        model, contexts, continuations = self.model, [], []
        for slot, label in zip(answer_slots(model, prompts, where, separator), where, strict=True):
            ids = answer_ids(model.tokenizer, words, slot.preceding)
            check_window(slot, ids, model.max_length, label, words)
            contexts.append(slot.before)
            continuations.append(ids)
        return causal.endings(model, contexts, continuations, model.token_budget)

    def text_log_probs(
        self, sentences: Sequence[str], where: Sequence[str], answers_first: Sequence[bool] = ()
    ) -> list[list[float]]:
        """By `engine.texts`."""
        return texts.causal_log_probs(self.model, sentences, where, answers_first)

    def tokenize(
        self, prompts: Sequence[Prompt], where: Sequence[str], separator: str | None = None
    ) -> list[WritingPrompt]:
        """Slots, and what an encoder reads."""
        model = self.model
        if separator is None:
            plain = [text_of(model, prompt) for prompt in prompts]
            if self.head == "seq2seq":
                frames = seq2seq.frames(model, plain, where)
                return [(frame.target, tuple(frame.source)) for frame in frames]
            return [(slot, ()) for slot in causal.prompt_slots(model, plain, where)]
        if self.head == "causal":
            return [(slot, ()) for slot in answer_slots(model, prompts, where, separator)]
        begin = Slot(prompt_texts.decoder_start(model), (model.tokenizer.eos_token_id,), "")
        heads = [text_of(model, prompt).partition(SLOT)[0].rstrip() for prompt in prompts]
        is_chat = any(not isinstance(prompt, str) for prompt in prompts)
        encoded = model.tokenizer(heads, add_special_tokens=not is_chat, verbose=False)
        return [(begin, tuple(source)) for source in encoded["input_ids"]]
