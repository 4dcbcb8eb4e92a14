"""A small project of which all is known that MLflow is told."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.store import make_store
from helpers.toy_project import VARIANTS, project, score_once
from medprobe.core import lineage
from medprobe.core.params import HubModel, ModelParams, Models, Params, ScoreParams
from medprobe.core.places import PREDICTIONS, RUNS
from medprobe.pipeline.stages.track import track, track_model

SETTINGS = {"layer": 12}
PARAMS = Params(
    score=ScoreParams(bootstrap=20),
    models=Models(masked={"taught": ModelParams(), "untaught": ModelParams()}),
    fetch={"untaught": HubModel(hub="someone/untaught", revision="abc")},
    benchmarks={"medlama": {"made_up": {}}},
    methods={"masked": {"contrastive": {"made_up": SETTINGS}}},
)
TABLE = PREDICTIONS / "taught/contrastive/made_up.parquet"
STAGES: dict[str, Any] = {  # of dvc.lock
    "build@made_up": {"outs": [{"path": "outputs/benchmarks/made_up", "md5": "b1"}]},
    "train@taught": {"outs": [{"path": "outputs/models/taught", "md5": "m1"}]},
    "probe-masked@taught": {"outs": [{"path": "outputs/predictions/taught", "md5": "p1.dir"}]},
}
MADE_WITH = {"seed": 5, "engine.precision": "float32", "contrastive.layer": 7}
ABOUT = {"device": "cpu", "tokens": 1000, "settings": MADE_WITH}


def make_project(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    stages: Mapping[str, Any],
    variants: Sequence[str] = VARIANTS,
) -> None:
    """Make the project in `folder`, with these stages in its dvc.lock."""
    project(folder, monkeypatch, variants)
    make_store(folder)
    Path("dvc.lock").write_text(yaml.safe_dump({"stages": dict(stages)}, sort_keys=False))
    statistics = Path("outputs/benchmarks/made_up/statistics.csv")
    statistics.write_text("subset,relation,queries\nfull,all,20\n")
    Path("data.dvc").write_text("outs:\n- {md5: d1.dir, path: data}\n")
    curves = ["variant,epoch,train,validation", ",1,0.8,0.9", ",1,0.6,0.7", ",2,0.4,0.5"]
    TABLE.with_name("made_up-curves.csv").write_text("\n".join(curves))


def track_project(params: Params, made_with: Mapping[str, Any] = MADE_WITH) -> None:
    """Track the project that one stands in: one result when it was made, then all, twice."""
    about = ABOUT | {"settings": made_with}
    with lineage.recorded(RUNS / "taught/contrastive/made_up.json", TABLE, about):
        pass
    track_model("taught", params)
    score_once(params)
    track(params)
    track(params)
