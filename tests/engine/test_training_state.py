"""Trainings that are stopped at a step continue from their state, to the same bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers import FolderOf
from helpers.stopped_training import Training, check_continuation, write_project
from medprobe.engine.soft_released import Uncorrected
from medprobe.engine.training_state import StateFile, Timer
from methods.test_optiprompt import table, tables

SOFT: dict[str, Any] = {"epochs": 3, "batch": 2, "masks": 2, "seeds": 1}
TRAININGS: dict[str, Training] = {
    "soft prompts": ("optiprompt", SOFT, torch.optim.Adam),
    "soft prompts as released": ("optiprompt", {**SOFT, "recipe": "released"}, Uncorrected),
}


@pytest.mark.parametrize(
    ("name", "step"), [*((name, 3) for name in TRAININGS), ("soft prompts", 2), ("soft prompts", 4)]
)
def test_a_stopped_training_continues_to_the_same_bytes(
    name: str,
    step: int,
    working_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    tiny_model: FolderOf,
) -> None:
    """Stopped within an epoch, at its end and in the next one, with every step kept."""
    write_project(tables(table(2)), "optiprompt", tiny_model("bert"))
    check_continuation(TRAININGS[name], step, monkeypatch)


def test_a_state_is_due_after_some_minutes(tmp_path: Path) -> None:
    now = [0.0]
    file = StateFile(tmp_path / "training.pt")
    file.timer = Timer(lambda: now[0])
    written = []
    for now[0] in (100.0, 180.0, 181.0, 300.0, 361.5, 362.0):
        file.write_if_due(lambda: {"at": written.append(now[0])})
    assert written == [181.0, 361.5]


@pytest.mark.parametrize("damage", [lambda text: text[:500], lambda text: b"noise" * 100])
def test_a_training_with_a_damaged_state_begins_again(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    file = StateFile(tmp_path / "training.pt")
    file.timer = Timer(iter([0.0, 1e9, 1e9]).__next__)
    file.write_if_due(lambda: {"step": 3})
    assert file.read() == {"step": 3}
    (tmp_path / "training.pt").write_bytes(damage((tmp_path / "training.pt").read_bytes()))
    assert file.read() is None


def test_a_training_without_a_file_keeps_nothing() -> None:
    file = StateFile(None)
    file.timer = Timer(iter([0.0, 1e9]).__next__)
    file.write_if_due(lambda: pytest.fail("a state was made"))
    assert file.read() is None
