"""Section `rewire` of `params.yaml`: how models are rewired (Contrastive-Probe).

Rewiring writes checkpoints, folders `step-<n>`, with the settings it had.
"""

from typing import Any, Final, Literal

from pydantic import Field

from medprobe.core.params import Params, Settings
from medprobe.core.settings import Section, check_settings

Cut = Literal["released", "tail", "sentence"]


class RewireSettings(Section):
    """The paper's choice; its first version had a temperature of 0.03 and probed step 150."""

    max_sentences: int = Field(10_000, gt=1)
    """Lines of each set that are used, at most."""
    layers: int | None = Field(None, gt=0)
    """Rewire only the first so many layers. Empty: all layers."""
    mask_ratio: float = Field(0.5, ge=0, le=1)
    """Share of a sentence that is cut off at its end. `released` and `tail` draw the number of
    words, and cut at most one word more."""
    cut: Cut = "released"
    """Where a sentence is cut: one word early (`released`), before the last words (`tail`), or
    without the full stop (`sentence`, the paper's example)."""
    blank: Literal["dropped", "kept"] = "dropped"
    """Pairs without a query or an answer are `dropped` or `kept`."""
    max_length: int = Field(48, gt=2)
    """Longest text, in tokens."""
    learning_rate: float = Field(2e-5, gt=0)
    """Learning rate."""
    weight_decay: float = Field(0.01, ge=0)
    """Weight decay."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout while rewiring."""
    temperature: float = Field(0.04, gt=0)
    """Temperature of the contrastive loss. The paper's first version had 0.03."""
    batch: int = Field(192, gt=1)
    """Pairs per step."""
    steps: int = Field(200, gt=0)
    """Training steps. The paper's first version probed step 150."""
    checkpoint_every: int = Field(50, gt=0)
    """Steps between checkpoints."""


def checkpoint_steps(settings: RewireSettings) -> list[int]:
    """Return the steps whose checkpoints are stored: every `checkpoint_every`, and the last."""
    every = range(settings.checkpoint_every, settings.steps, settings.checkpoint_every)
    return [*every, settings.steps]


def _check(params: Params) -> None:
    check_settings(RewireSettings, REWIRE.of(params), "rewire")


REWIRE: Final = Settings("rewire", dict[str, Any], check=_check)
SETTINGS: Final = REWIRE
