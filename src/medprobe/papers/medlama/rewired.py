"""Rewired checkpoints on disk: which there are, and what they and their predictions are called."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from medprobe.core.variants import swept_variant

REWIRED: Final = Path("outputs/rewired")  # a folder for each model, in it one for each rewiring
LOSSES: Final = Path("outputs/losses")  # by step, for `dvc plots`
RECORD: Final = "settings.json"  # next to the checkpoints
STEP_LOSSES: Final = "losses.csv"
ORIGINAL: Final = "original"  # the model as it came, not rewired
READ: Final = "read_layers"  # the setting of variants that read a middle layer


@dataclass(frozen=True)
class Pass:
    """A checkpoint to probe: of a rewiring on a sentence set, or without a set as it came.

    In a sweep one setting has another value, written as params.yaml has it. Without a step it is
    that of the main one.
    """

    set: str = ""
    setting: str = ""
    value: str = ""
    step: int | None = None

    @property
    def rewiring(self) -> "Pass":
        """The rewiring that the checkpoint is of."""
        return replace(self, step=None)

    @property
    def variant(self) -> str:
        """The name of its predictions: the set is their replicate.

        >>> Pass("set-0", "learning_rate", "1e-5", 50).variant, Pass("set-0").variant
        ('learning_rate-0.00001-step-50', '')
        """
        if not self.set:
            return ORIGINAL
        settings: dict[str, str | float] = {self.setting: self.value} if self.setting else {}
        return swept_variant(settings | ({"step": self.step} if self.step else {}))

    def __str__(self) -> str:
        """The folder below the model's.

        >>> str(Pass("set-0", "mask_ratio", "0.1", 50)), str(Pass())
        ('set-0+mask_ratio-0.1/step-50', 'original')
        """
        swept = f"+{self.setting}-{self.value}" if self.setting else ""
        return (self.set or ORIGINAL) + swept + (f"/step-{self.step}" if self.step else "")


def rewired_sets(model: str) -> list[str]:
    """Return the sentence sets that a model is rewired on, in alphabetical order."""
    folders = [path for path in (REWIRED / model).glob("*") if path.is_dir()]
    return sorted({path.name.partition("+")[0] for path in folders})


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a rewiring, with its key; none where they are not recorded."""
    path = folder / RECORD
    content: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return content


def checkpoints(folder: Path) -> dict[int, Path]:
    """Return the checkpoints in a folder by step, in order; none where there is no folder."""
    by_step = {int(path.name.removeprefix("step-")): path for path in folder.glob("step-*")}
    return dict(sorted(by_step.items()))
