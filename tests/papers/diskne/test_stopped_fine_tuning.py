"""Fine-tunings that are stopped at a step continue from their state, to the same bytes."""

from pathlib import Path
from typing import Any

import pytest
import torch

from helpers import FolderOf
from helpers.stopped_training import (
    Stopped,
    Training,
    check_continuation,
    forget,
    run,
    write_project,
)
from medprobe.engine import training_state
from medprobe.papers.diskne.fine_tuning import TextClassifier
from papers.diskne import test_classifier

FAST: dict[str, Any] = {
    **test_classifier.FAST,
    **{"epochs": 3, "batch": 2, "seeds": [0], "diseases": 1},
}
RECIPE = {"gradients": "kept", "optimiser": "adam", "schedule": "linear", "tested": "last"}
TRAININGS: dict[str, Training] = {
    "fine-tuning": ("classifier", {**FAST, "variants": [""]}, torch.optim.AdamW),
    "with gradients kept": ("classifier", {**FAST, **RECIPE, "variants": [""]}, torch.optim.Adam),
    "from the probe": ("classifier", {**FAST, "variants": ["lp-ft"]}, torch.optim.AdamW),
}


@pytest.fixture
def project(working_folder: Path, tiny_model: FolderOf) -> None:
    """A project with a model and a benchmark."""
    write_project(test_classifier.tables(), "classifier", tiny_model("bert"))


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("name", "step"),
    [*((name, 3) for name in TRAININGS), ("with gradients kept", 2), ("with gradients kept", 4)],
)
def test_a_stopped_training_continues_to_the_same_bytes(
    name: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped within an epoch, at its end and in the next one, with every step kept."""
    check_continuation(TRAININGS[name], step, monkeypatch)


@pytest.mark.usefixtures("project")
def test_a_stop_while_validating_takes_no_step_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The epoch's last step is kept, and its validation follows."""
    method, settings, _ = TRAININGS["fine-tuning"]
    whole = run(method, settings)
    forget()
    monkeypatch.setattr(training_state, "KEEP_SECONDS", -1)

    def stop(*_: object) -> float:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(TextClassifier, "_loss", stop)
        with pytest.raises(Stopped):
            run(method, settings)
    assert run(method, settings) == whole
