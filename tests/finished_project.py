"""A small project with a stage of each kind, run once for all test files."""

import os
from pathlib import Path
from typing import Any

from medprobe import fork_server
from medprobe.testing import tiny
from medprobe.testing.project import AUDIT, SMALL, Project, environment

TRAINED = {"kind": "masked", "steps": 5, "layers": 1, "hidden": 64, "vocabulary": 300}
# Of each block of dvc.yaml one stage, but for `fetch`, which asks the hub, and `train-continued`,
# which leaves what `train` leaves.
EVERY_STAGE: dict[str, Any] = {
    **SMALL,
    "train": {name: {"corpus": name, **TRAINED} for name in ("taught", "untaught")},
    "folders": {"given": "given"},
    "models": {**SMALL["models"], "causal": {"given": {}}},
    "sweeps": {"models": {"taught": None}, "sets": {"set-0": None}, "temperature": {"0.05": None}},
    "benchmarks": {**SMALL["benchmarks"], "diskne": {"diskne": {"negatives": 4}}},
    "methods": {
        "masked": {
            "mask_average": {"medlama": {"neutral": True}},
            "contrastive": {
                "medlama": {"sets": ["set-0"], "sweeps": {"temperature": {"0.05": None}}},
            },
            "classifier": {
                "diskne": {
                    "variants": ["", "always-true"],
                    "seeds": [0],
                    "epochs": 1,
                    "diseases": {"": 2},
                }
            },
        }
    },
}


def run_project(folder: Path, audit: Path) -> None:
    """Make the project and run it; each `medprobe` process writes into `audit` what it imported."""
    project = Project(folder)
    tiny.model("gpt2", folder / "given")
    project.replace(**EVERY_STAGE)
    project.works("medprobe", "sample")
    project.works("dvc", "add", "data", "--quiet")
    project.commit("Before the first run")
    audit.mkdir()
    (audit / "sitecustomize.py").write_text(AUDIT)
    path = os.pathsep.join([str(audit), os.environ.get("PYTHONPATH", "")])
    audited = {"MEDPROBE_AUDIT": str(audit), "PYTHONPATH": path, fork_server.SOCKET: ""}
    with fork_server.start(environment() | audited) as variables:
        project.works("dvc", "repro", **variables)
    project.commit("The first numbers")
