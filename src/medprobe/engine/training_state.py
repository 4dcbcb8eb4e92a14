"""The state of a training on disk, from which a stopped training continues to the same result."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch

from medprobe.core.files import replacing
from medprobe.core.parts import read_whole

CPU: Final = torch.device("cpu")
KEEP_SECONDS = 180.0  # of training that a stop can lose


class Timer:
    """Measures how long ago a training's state was written, or the training began."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.restart()

    def restart(self) -> None:
        """Measure from now on."""
        self.start = self.clock()

    @property
    def is_due(self) -> bool:
        """Whether the state must be written again."""
        return self.clock() - self.start > KEEP_SECONDS


class StateFile:
    """The file of one training's state, with the state of torch's random generators.

    Without a path nothing is kept.
    """

    def __init__(self, path: Path | None) -> None:
        self.path, self.timer = path, Timer()

    def write_if_due(self, make_state: Callable[[], dict[str, Any]]) -> None:
        """Write the state if the last one is older than `KEEP_SECONDS`."""
        if self.path is None or not self.timer.is_due:
            return
        with replacing(self.path) as path:
            write_state({"draws": random_states(_device()), **make_state()}, path)
        self.timer.restart()

    def read(self) -> dict[str, Any] | None:
        """Return the stored state, if there is one, and restore torch's random generators."""
        state: dict[str, Any] | None = None
        if self.path and (state := read_whole(self.path, partial(read_state, device=CPU))):
            restore_random_states(state.pop("draws"), _device())
        return state


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def random_states(device: torch.device) -> list[torch.Tensor]:
    """Return the states of the random generators from which training on a device draws."""
    on_device = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *on_device]


def restore_random_states(states: list[torch.Tensor], device: torch.device) -> None:
    """Set the random generators to what `random_states` returned."""
    torch.set_rng_state(states[0])
    for state in states[1:]:
        torch.cuda.set_rng_state(state, device)


def write_state(state: dict[str, Any], path: Path) -> None:
    """Write a state; an error of a full disk is an OSError, which torch hides if it has a path."""
    with path.open("wb") as stream:
        torch.save(state, stream)


def read_state(path: Path, device: torch.device) -> dict[str, Any]:
    """Read a state without running any code of the file."""
    state: dict[str, Any] = torch.load(path, weights_only=True, map_location=device)
    return state
