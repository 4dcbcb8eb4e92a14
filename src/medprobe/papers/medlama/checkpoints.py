"""The checkpoints that rewiring writes, folders `step-<n>`, and the settings it had."""

import json
from pathlib import Path
from typing import Any, Final

SETTINGS: Final = "settings.json"  # next to the checkpoints


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a rewiring, none where they are not recorded."""
    path = folder / SETTINGS
    content: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return content


def checkpoints(folder: Path) -> dict[int, Path]:
    """Return the checkpoints in a folder by step, in order; none where there is no folder."""
    by_step = {int(path.name.removeprefix("step-")): path for path in folder.glob("step-*")}
    return dict(sorted(by_step.items()))
