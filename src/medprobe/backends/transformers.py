"""The backend of a checkpoint that runs in this process."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from medprobe.backends import ABILITIES
from medprobe.core.params import EngineParams
from medprobe.engine import load, texts
from medprobe.engine.inspection import Head


@dataclass
class Transformers:
    """A causal or an encoder-decoder model of transformers."""

    model: load.Model
    head: Head
    abilities = ABILITIES

    @classmethod
    def load(cls, folder: Path, head: Head, engine: EngineParams) -> "Transformers":
        """Load a checkpoint."""
        return cls(load.load(folder, head, engine), head)

    def text_log_probs(
        self, sentences: Sequence[str], where: Sequence[str], answers_first: Sequence[bool] = ()
    ) -> list[list[float]]:
        """By `engine.texts`."""
        return texts.causal_log_probs(self.model, sentences, where, answers_first)
