"""A small project of which all is known that MLflow is told."""

from pathlib import Path

import pytest
import yaml

from helpers.toy_project import project
from medprobe.core import lineage
from medprobe.core.params import HubModel, ModelParams, Models, Params, ScoreParams
from medprobe.core.places import PREDICTIONS, RUNS
from medprobe.pipeline.stages.significance import significance
from medprobe.pipeline.stages.track import track, track_one

REWIRED, LOSSES = Path("outputs/rewired"), Path("outputs/losses")
SETS = ["set-0", "set-1"]
SETTINGS = {"layer": 12, "sets": SETS, "sweeps": {"mask_ratio": {"0.1": None}}}
PARAMS = Params(
    score=ScoreParams(bootstrap=20),
    models=Models(masked={"taught": ModelParams(), "untaught": ModelParams()}),
    fetch={"untaught": HubModel(hub="someone/untaught", revision="abc")},
    benchmarks={"medlama": {"made_up": {}}},
    methods={"masked": {"contrastive": {"made_up": SETTINGS}}},
)
TABLE = PREDICTIONS / "taught/contrastive/made_up.parquet"
LOCK = {
    "stages": {
        "build@made_up": {"outs": [{"path": "outputs/benchmarks/made_up", "md5": "b1"}]},
        "train@taught": {"outs": [{"path": "outputs/models/taught", "md5": "m1"}]},
        "rewire@taught-set-0": {"outs": [{"path": "outputs/rewired/taught/set-0", "md5": "r1"}]},
        "rewire-mask_ratio@taught-set-0-0.1": {
            "outs": [{"path": "outputs/rewired/taught/set-0+mask_ratio-0.1", "md5": "r2"}]
        },
        "rewire@taught-set-9": {"outs": [{"path": "outputs/rewired/taught/set-9", "md5": "r9"}]},
        "probe-contrastive@taught-made_up": {
            "cmd": "medprobe probe --method contrastive --model taught --benchmark made_up",
            "params": {
                "params.yaml": {
                    "seed": 5,
                    "methods.masked.contrastive.made_up": SETTINGS | {"layer": 7},
                }
            },
            "outs": [{"path": TABLE.as_posix(), "md5": "p1", "size": 1}],
        },
    }
}
ABOUT = {"device": "cpu", "tokens": 1000}


def track_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the project in `folder` and track it: one result when it was made, then all, twice."""
    project(folder, monkeypatch)
    Path("dvc.lock").write_text(yaml.safe_dump(LOCK, sort_keys=False))
    statistics = Path("outputs/benchmarks/made_up/statistics.csv")
    statistics.write_text("subset,relation,queries\nfull,all,20\n")
    Path("data.dvc").write_text("outs:\n- {md5: d1.dir, path: data}\n")
    LOSSES.joinpath("taught").mkdir(parents=True)
    LOSSES.joinpath("taught/set-0.csv").write_text("step,loss\n1,0.9\n2,0.5\n")
    swept = "taught/set-0+mask_ratio-0.1"
    REWIRED.joinpath(swept).mkdir(parents=True)
    LOSSES.joinpath(f"{swept}.csv").write_text("step,loss\n1,0.8\n")
    LOSSES.joinpath("taught/set-9.csv").write_text("step,loss\n1,0.1\n")
    curves = ["variant,epoch,train,validation", ",1,0.8,0.9", ",1,0.6,0.7", ",2,0.4,0.5"]
    TABLE.with_name("made_up-curves.csv").write_text("\n".join(curves))
    with lineage.recorded(RUNS / "taught/contrastive/made_up.json", TABLE, ABOUT):
        pass
    track_one("taught", "contrastive", "made_up", PARAMS)
    significance(PARAMS)
    track(PARAMS)
    track(PARAMS)
