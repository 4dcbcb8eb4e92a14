"""Section `sentence_sets` of `params.yaml`.

Its keys are files of `data/sentences` without `.txt`. Each is a replicate of Contrastive-Probe.
"""

from typing import Final

from pydantic import Field

from medprobe.core.settings import Choices, Name, Section, Settings


class SentenceSet(Section):
    """A file of data/sentences, one replicate of Contrastive-Probe."""

    models: tuple[Name, ...] | None = None
    """The models that are rewired on this set. Empty: all masked models and encoders."""
    without: tuple[Name, ...] = ()
    """Models that are not rewired on this set."""
    rewire: Choices = Field({})
    """Settings that differ from the section `rewire`."""

    def is_for(self, model: str) -> bool:
        """Return whether a model is rewired on this set.

        >>> SentenceSet(without=("bert",)).is_for("biobert")
        True
        """
        return model not in self.without and (self.models is None or model in self.models)


SETTINGS: Final = Settings(dict[Name, SentenceSet], papers=True, gated=True)
