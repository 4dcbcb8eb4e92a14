"""The checkpoints that rewiring writes, folders `step-<n>`, and the settings it had."""

import json
from pathlib import Path
from typing import Any, Final

from medprobe.core.files import replacing

REWIRED: Final = Path("outputs/rewired")  # a folder for each model, in it one for each rewiring
LOSSES: Final = Path("outputs/losses")  # by step
NONE: Final = ".none"  # an empty folder of a model's; no set has this name
SETTINGS: Final = "settings.json"  # next to the checkpoints


def make_folder(model: str) -> None:
    """Make a model's folder, for a model that is rewired on no set: `contrastive` depends on it."""
    with replacing(REWIRED / model / NONE) as path:
        path.mkdir()


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a rewiring, none where they are not recorded."""
    path = folder / SETTINGS
    content: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return content


def checkpoints(folder: Path) -> dict[int, Path]:
    """Return the checkpoints in a folder by step, in order; none where there is no folder."""
    by_step = {int(path.name.removeprefix("step-")): path for path in folder.glob("step-*")}
    return dict(sorted(by_step.items()))
