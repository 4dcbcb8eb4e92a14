"""Trainings that are stopped at a step continue from their state, to the same bytes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from medprobe.core import places
from medprobe.core.params import Params
from medprobe.engine import training_state
from medprobe.engine.soft_released import Uncorrected
from medprobe.engine.training_state import StateFile, Timer
from medprobe.pipeline.stages.probe import probe
from methods import test_optiprompt
from papers.diskne import test_classifier

FAST = {**test_classifier.FAST, "epochs": 3, "batch": 2, "seeds": [0], "diseases": 1}
RECIPE = {"gradients": "kept", "optimiser": "adam", "schedule": "linear", "tested": "last"}
SOFT = {"epochs": 3, "batch": 2, "masks": 2, "seeds": 1}
TRAININGS: dict[str, tuple[str, dict[str, Any], type[torch.optim.Optimizer]]] = {
    "fine-tuning": ("classifier", {**FAST, "variants": [""]}, torch.optim.AdamW),
    "with gradients kept": ("classifier", {**FAST, **RECIPE, "variants": [""]}, torch.optim.Adam),
    "from the probe": ("classifier", {**FAST, "variants": ["lp-ft"]}, torch.optim.AdamW),
    "soft prompts": ("optiprompt", SOFT, torch.optim.Adam),
    "soft prompts as released": (
        "optiprompt",
        {**SOFT, "recipe": "released"},
        Uncorrected,
    ),
}


class Stopped(Exception):
    """Stands for a kill."""


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[[str], Path]
) -> Iterator[Path]:
    """A project with a model and a benchmark for each kind of training."""
    monkeypatch.chdir(tmp_path)
    test_classifier.tables().write(places.BENCHMARKS / "classifier")
    prompts = test_optiprompt.tables(test_optiprompt.table(2))
    prompts.write(places.BENCHMARKS / "optiprompt")
    places.MODELS.mkdir(parents=True)
    (places.MODELS / "tiny").symlink_to(tiny_model("bert"))
    yield tmp_path


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


@pytest.mark.parametrize(
    ("name", "step"),
    [
        *((name, 3) for name in TRAININGS),
        *((name, step) for name in ("with gradients kept", "soft prompts") for step in (2, 4)),
    ],
)
def test_a_stopped_training_continues_to_the_same_bytes(
    name: str, step: int, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped within an epoch, at its end and in the next one, with every step kept."""
    method, settings, optimiser = TRAININGS[name]
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


def test_a_state_is_due_after_some_minutes(tmp_path: Path) -> None:
    now = [0.0]
    file = StateFile(tmp_path / "training.pt")
    file.timer = Timer(lambda: now[0])
    written = []
    for now[0] in (100.0, 180.0, 181.0, 300.0, 361.5, 362.0):
        file.write_if_due(lambda: {"at": written.append(now[0])})
    assert written == [181.0, 361.5]


def test_a_training_without_a_file_keeps_nothing() -> None:
    file = StateFile(None)
    file.timer = Timer(iter([0.0, 1e9]).__next__)
    file.write_if_due(lambda: pytest.fail("a state was made"))
    assert file.read() is None


def test_a_stop_while_validating_takes_no_step_twice(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The epoch's last step is kept, and its validation follows."""
    method, settings, _ = TRAININGS["fine-tuning"]
    whole = run(method, settings)
    forget()
    monkeypatch.setattr(training_state, "KEEP_SECONDS", -1)
    from medprobe.papers.diskne.fine_tuning import TextClassifier

    def stop(*_: object) -> float:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(TextClassifier, "_loss", stop)
        with pytest.raises(Stopped):
            run(method, settings)
    assert run(method, settings) == whole
