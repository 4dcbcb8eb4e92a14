"""What MLflow is told of the rewirings that a result was made from."""

from pathlib import Path
from typing import Any

import pytest

from helpers.tracked_project import PARAMS, SETTINGS, STAGES, make_project, track_project
from medprobe.core import lineage
from medprobe.papers.medlama.rewired import LOSSES, REWIRED
from medprobe.tracking.store import connect
from tracking.test_store import runs

SWEPT = "taught/set-0+mask_ratio-0.1"
SWEEPS = {"mask_ratio": ["0.1"], "layers": {"2": None}}  # as recorded now, and before
REWIRING = SETTINGS | {"sets": ["set-0", "set-1"], "sweeps": SWEEPS}
REWIRED_STAGES = {"rewire@taught": {"outs": [{"path": f"{REWIRED}/taught", "md5": "r1"}]}}


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose results were tracked."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as monkeypatch:
        make_project(folder, monkeypatch, {**STAGES, **REWIRED_STAGES}, [""])
        LOSSES.joinpath("taught").mkdir(parents=True)
        LOSSES.joinpath("taught/set-0.csv").write_text("step,loss\n1,0.9\n2,0.5\n")
        REWIRED.joinpath(SWEPT).mkdir(parents=True)
        REWIRED.joinpath("taught/set-0+layers-2").mkdir()
        LOSSES.joinpath(f"{SWEPT}.csv").write_text("step,loss\n1,0.8\n")
        LOSSES.joinpath("taught/set-9.csv").write_text("step,loss\n1,0.1\n")
        methods = {"masked": {"contrastive": {"made_up": REWIRING}}}
        params = PARAMS.model_copy(update={"methods": methods})
        settings = lineage.probing_settings("contrastive", REWIRING, params)
        track_project(params, settings)
    return folder


@pytest.fixture
def run(tracked: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The run of the model that was rewired."""
    monkeypatch.chdir(tracked)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    [run] = [run for run in runs() if run.data.tags["model"] == "taught"]
    return run


def test_a_run_says_which_rewirings_it_was_made_from(run: Any) -> None:
    assert run.data.tags["dvc.outputs/rewired/taught"] == "r1"


def test_rewirings_are_datasets_with_the_hashes_of_dvc(run: Any) -> None:
    datasets = {entry.dataset.name: entry.dataset.digest for entry in run.inputs.dataset_inputs}
    assert datasets == {
        "data": "d1.dir",
        "outputs/benchmarks/made_up": "b1",
        "outputs/rewired/taught": "r1",
    }


def test_losses_have_their_steps(run: Any) -> None:
    client = connect()

    def series(name: str) -> list[tuple[int, float]]:
        history = client.get_metric_history(run.info.run_id, f"series/rewiring loss/{name}")
        return [(point.step, point.value) for point in history]

    assert series("set-0") == [(1, 0.9), (2, 0.5)]
    assert series("set-0_mask_ratio-0.1") == [(1, 0.8)]
    assert series("set-9") == []
