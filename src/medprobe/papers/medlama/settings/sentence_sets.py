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
    rewire: Choices = Field({})
    """Settings that differ from the section `rewire`."""


SETTINGS: Final = Settings(dict[Name, SentenceSet], papers=True, gated=True)
