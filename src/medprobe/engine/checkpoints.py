"""The checkpoints that rewiring writes: folders `step-<n>`."""

from pathlib import Path


def checkpoints(folder: Path) -> dict[int, Path]:
    """Return the checkpoints in a folder by step, in order; none where there is no folder."""
    by_step = {int(path.name.removeprefix("step-")): path for path in folder.glob("step-*")}
    return dict(sorted(by_step.items()))
