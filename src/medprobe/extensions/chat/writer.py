"""Networks that are asked in words, in this process or by a backend from outside."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

from medprobe.backends.finder import Backend, Transformers
from medprobe.core.tables import SLOT
from medprobe.engine import causal
from medprobe.engine.configuration import Head
from medprobe.engine.load import Model
from medprobe.engine.slots import Slot, WritingPrompt, answer_ids, check_window
from medprobe.extensions.chat import extraction, prompt_texts, writing
from medprobe.extensions.chat.prompt_texts import Chat, Prompt, answer_slots, text_of


class Writer(Protocol):
    """What is asked in words. `where` names each prompt in errors."""

    @property
    def has_template(self) -> bool:
        """Whether it takes a `Chat`."""
        ...

    @property
    def has_completion(self) -> bool:
        """Whether it goes on with a text as it is."""
        ...

    @property
    def thinks(self) -> bool:
        """Whether it is known to write thoughts before its answer to a `Chat`."""
        ...

    def answer_length(self, names: Sequence[str]) -> int:
        """Return the tokens of the longest name, or an upper bound."""
        ...

    def write(
        self,
        prompts: Sequence[Prompt],
        where: Sequence[str],
        settings: writing.WritingSettings,
        separator: str,
    ) -> list[list[writing.Text]]:
        """Write answers; `separator` follows the answer in a text without words after its slot."""
        ...

    def word_log_probs(
        self, prompts: Sequence[Prompt], where: Sequence[str], words: Sequence[str], separator: str
    ) -> list[list[float]]:
        """Return for each prompt the log-probability of each word as the answer."""
        ...

    def tokenize(
        self, prompts: Sequence[Prompt], where: Sequence[str], separator: str
    ) -> list[WritingPrompt]:
        """Return the slots of prompts, each with what ends its answer."""
        ...


def writer_of(backend: Backend) -> Writer:
    """Return what is asked in words under a backend: one from outside is itself."""
    if isinstance(backend, Transformers):
        return CheckpointWriter(backend.model, backend.head)
    return cast("Writer", backend)  # `finder` checks that it defines what its abilities need


@dataclass
class CheckpointWriter:
    """A causal or an encoder-decoder model in this process."""

    model: Model
    head: Head
    has_completion = True

    @property
    def has_template(self) -> bool:
        """Whether the tokenizer has a template for chats."""
        return prompt_texts.has_template(self.model)

    @property
    def thinks(self) -> bool:
        """Whether the template knows of thoughts."""
        return extraction.ends_thoughts(str(self.model.tokenizer.chat_template or ""))

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
        """By beam search or draws (`writing`); with thoughts, the likeliest token each time.

        Thoughts and their answer end where the checkpoint ends a text. Where the template begins
        the thoughts, its mark stands before the text.
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
        written = writing.write(self.model, slots, where, settings)
        marks = [extraction.opened_thoughts(text.removesuffix(SLOT)) for text in texts]
        return [
            [found._replace(text=mark + found.text) for found in of_prompt]
            for mark, of_prompt in zip(marks, written, strict=True)
        ]

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

    def tokenize(
        self, prompts: Sequence[Prompt], where: Sequence[str], separator: str
    ) -> list[WritingPrompt]:
        """Slots, and what an encoder reads."""
        model = self.model
        if self.head == "causal":
            return [(slot, ()) for slot in answer_slots(model, prompts, where, separator)]
        begin = Slot(prompt_texts.decoder_start(model), (model.tokenizer.eos_token_id,), "")
        heads = [text_of(model, prompt).partition(SLOT)[0].rstrip() for prompt in prompts]
        is_chat = any(not isinstance(prompt, str) for prompt in prompts)
        encoded = model.tokenizer(heads, add_special_tokens=not is_chat, verbose=False)
        return [(begin, tuple(source)) for source in encoded["input_ids"]]
