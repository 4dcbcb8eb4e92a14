"""The protocol of a network that writes from left to right, and how a model's backend is found."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from medprobe.backends import Ability, find_abilities
from medprobe.core.params import EngineParams
from medprobe.engine import prompt_texts
from medprobe.engine.load import Model
from medprobe.engine.slots import Slot
from medprobe.engine.writing import Text, WritingPrompt, WritingSettings


class Chat(NamedTuple):
    """A question, the questions and answers before it, for the chat template of the model.

    `today` is the date for a template that asks for one. A server has a clock of its own. `system`
    comes before all turns.
    """

    turns: tuple[prompt_texts.Turn, ...]
    question: str
    today: date = prompt_texts.DATE
    system: str = ""


Prompt = Chat | str  # or a text with one slot `[Y]`


class Backend(Protocol):
    """A network that writes. `where` names each prompt in errors."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do."""
        ...

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
        settings: WritingSettings,
        separator: str,
    ) -> list[list[Text]]:
        """Write answers; `separator` follows the answer in a text without words after its slot."""
        ...

    def word_log_probs(
        self, prompts: Sequence[Prompt], where: Sequence[str], words: Sequence[str], separator: str
    ) -> list[list[float]]:
        """Return for each prompt the log-probability of each word as the answer."""
        ...

    def text_log_probs(
        self, texts: Sequence[str], where: Sequence[str], answers_first: Sequence[bool] = ()
    ) -> list[list[float]]:
        """Return for each text the log-probability of each token given those before it.

        A first token that nothing precedes has none, except that of an answer with which a text
        begins: `answers_first` gives for each text whether it does.
        """
        ...

    def tokenize(
        self, prompts: Sequence[Prompt], where: Sequence[str], separator: str | None = None
    ) -> list[WritingPrompt]:
        """Return the slots of prompts; without a separator the text after a slot counts whole."""
        ...


class PluginBackend(Backend):
    """What a backend from outside is a subclass of; it defines what its folder's abilities need.

    What `tokenize` returns is read by its own `find_likeliest` alone.

    Args:
        folder: The model's, with its PLUGIN_MODEL.
        engine: Device and precision.
    """

    has_template = False
    has_completion = True
    thinks = False

    def __init__(self, folder: Path, engine: EngineParams) -> None:
        self.folder, self.engine = folder, engine

    @classmethod
    def open(cls, folder: Path, engine: EngineParams) -> Backend:
        """Open the model of a folder."""
        return cls(folder, engine)

    @classmethod
    def find_tokenizer(cls, folder: Path) -> Any:
        """Return the model's tokenizer. Default: None, it is not known here."""
        return None

    @classmethod
    def describe(cls, folder: Path) -> dict[str, object]:
        """Describe the model's origin, for the record of each result. Default: nothing."""
        return {}

    @property
    def abilities(self) -> frozenset[Ability]:
        """What PLUGIN_MODEL says that it can do."""
        return find_abilities(self.folder)


def text_of(model: Model, prompt: Prompt) -> str:
    """Return a prompt as text, a chat by the tokenizer's template."""
    return prompt if isinstance(prompt, str) else prompt_texts.chat(model, *prompt)


def answer_slots(
    model: Model, prompts: Sequence[Prompt], where: Sequence[str], separator: str
) -> list[Slot]:
    """Return the slots of prompts under a tokenizer, each with the one token that ends an answer.

    All prompts are chats, or all are texts.
    """
    has_start = any(isinstance(prompt, Chat) for prompt in prompts)
    texts = [text_of(model, prompt) for prompt in prompts]
    return prompt_texts.slots(model, texts, where, separator, has_start=has_start)
