"""The report of the made-up project, whose model `taught` has read some facts."""

import shutil
from pathlib import Path

import pytest

from helpers.toy_project import NAMED, project, score_once
from medprobe.core import lineage, places
from medprobe.core.params import ModelParams, Models, Params, ScoreParams
from medprobe.pipeline.stages.compare import compare

MODELS = Models(
    masked={"taught": ModelParams(), "untaught": ModelParams(untaught_twin_of="taught")}
)
PARAMS = Params(score=ScoreParams(bootstrap=100), **NAMED | {"models": MODELS})


def write_report(folder: Path, checkpoint: Path) -> Path:
    """Make the project in `folder`, and its report twice: in the folders `reports` and `again`.

    Returns:
        The folder `reports`.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        project(folder, monkeypatch)
        lines = [
            f"S{i},drug {i},{relation},C{i % 5},x,{i % 3}"
            for relation in ("may_treat", "may_prevent")
            for i in range(10)
        ]
        header = "subject_cui,subject,relation,object_cui,object,times"
        statistics = Path("outputs/benchmarks/made_up/statistics.csv")
        statistics.write_text(
            "subset,relation,queries,answers_per_query,answer_characters\n"
            "full,all,20,1.0,13.2\nfull,may_treat,10,1.0,13.2\n"
        )
        shutil.copytree(checkpoint, places.MODELS / "taught")
        facts = places.MODELS / "taught" / "facts.csv"
        facts.write_text("\n".join([header, *lines]) + "\n")
        score_once(PARAMS)
        table = places.PREDICTIONS / "taught/contrastive/made_up.parquet"
        record = places.RUNS / "taught/contrastive/made_up.json"
        with lineage.recorded(record, table, {"device": "a quick one", "tokens": 1234}):
            pass
        compare(PARAMS)
        compare(PARAMS, Path("again"))
    return folder / "reports"
