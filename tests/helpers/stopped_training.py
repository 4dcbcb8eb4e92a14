"""A training that is stopped at a step, and continues from its state to the same bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from medprobe.core import places
from medprobe.core.params import Params
from medprobe.core.tables import BenchmarkTables
from medprobe.engine import training_state
from medprobe.engine.training_state import StateFile
from medprobe.pipeline.stages.probe import probe

Training = tuple[str, dict[str, Any], type[torch.optim.Optimizer]]  # the method, its settings


class Stopped(Exception):
    """Stands for a kill."""


def write_project(tables: BenchmarkTables, method: str, model: Path) -> None:
    """Write a benchmark of the method's name, and a model, into the working folder."""
    tables.write(places.BENCHMARKS / method)
    places.MODELS.mkdir(parents=True)
    (places.MODELS / "tiny").symlink_to(model)


def run(method: str, settings: dict[str, Any]) -> dict[str, bytes]:
    """Probe from the parts that are there; the contents of all that is written."""
    masked = {"tiny": {}}
    params = Params.model_validate(
        {"models": {"masked": masked}, "methods": {"masked": {method: {method: settings}}}}
    )
    probe("tiny", method, method, params)
    return {path.name: path.read_bytes() for path in places.PREDICTIONS.glob("*/*/*")}


def forget() -> None:
    """Remove all parts and results."""
    for path in [*places.PARTS.glob("*.p*"), *places.PREDICTIONS.glob("*/*/*")]:
        path.unlink()


def stop_at(step: int, optimiser: type[torch.optim.Optimizer], patch: pytest.MonkeyPatch) -> None:
    """Let the first step of this number, counted from 1, stop the process."""
    count, original = [0], optimiser.step

    def killed(self: torch.optim.Optimizer, closure: None = None) -> Any:
        count[0] += 1
        if count[0] == step:
            raise Stopped
        return original(self, closure)

    patch.setattr(optimiser, "step", killed)


def check_continuation(training: Training, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail unless a training that this step stops, with every step kept, ends as a whole one."""
    method, settings, optimiser = training
    steps = 0

    def count(self: object, make: object) -> None:
        nonlocal steps
        steps += 1

    with monkeypatch.context() as patch:
        patch.setattr(StateFile, "write_if_due", count)
        whole = run(method, settings)
    in_all = steps
    forget()
    monkeypatch.setattr(training_state, "KEEP_SECONDS", -1)
    with monkeypatch.context() as patch:
        stop_at(step, optimiser, patch)
        with pytest.raises(Stopped):
            run(method, settings)
    assert list(places.PARTS.glob("*.pt"))
    torch.rand(7)  # whatever ran in between
    write, rest = StateFile.write_if_due, []

    def record(self: StateFile, make: Callable[[], dict[str, Any]]) -> None:
        rest.append(1)
        write(self, make)

    monkeypatch.setattr(StateFile, "write_if_due", record)
    assert run(method, settings) == whole
    assert len(rest) == in_all - (step - 1)
    assert not list(places.PARTS.glob("*.pt")), "nothing is left over"
