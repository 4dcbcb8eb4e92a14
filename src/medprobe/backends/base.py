"""The protocol of a network that writes from left to right, and how a model's backend is found."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from medprobe.backends import Ability, find_abilities
from medprobe.core.params import EngineParams


class Backend(Protocol):
    """A network that writes. `where` names each text in errors."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do."""
        ...

    def text_log_probs(
        self, texts: Sequence[str], where: Sequence[str], answers_first: Sequence[bool] = ()
    ) -> list[list[float]]:
        """Return for each text the log-probability of each token given those before it.

        A first token that nothing precedes has none, except that of an answer with which a text
        begins: `answers_first` gives for each text whether it does.
        """
        ...


class PluginBackend(Backend):
    """What a backend from outside is a subclass of; it defines what its folder's abilities need.

    docs/how-to/extending.md lists the methods of each ability.

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
