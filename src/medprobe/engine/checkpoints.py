"""The checkpoints that rewiring leaves on its way: folders `step-<n>`."""

from pathlib import Path


def checkpoints(folder: Path) -> dict[int, Path]:
    """The checkpoints in a folder by their steps, in order; none where there is no such folder."""
    by_step = {int(path.name.removeprefix("step-")): path for path in folder.glob("step-*")}
    return dict(sorted(by_step.items()))
