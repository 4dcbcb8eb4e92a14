"""A small project with a stage of each kind, run once for all test files."""

from pathlib import Path
from typing import Any

from helpers import tiny
from helpers.project import SMALL, Project

TRAINED = {"kind": "masked", "steps": 5, "layers": 1, "hidden": 64, "vocabulary": 300}
# Of each block of dvc.yaml one stage, but for `fetch`, which asks the hub, and `train-continued`,
# which leaves what `train` leaves.
EVERY_STAGE: dict[str, Any] = {
    **SMALL,
    "train": {name: {"corpus": name, **TRAINED} for name in ("taught", "untaught")},
    "folders": {"given": "checkpoints/given"},
    "models": {**SMALL["models"], "causal": {"given": {}}},
    "sweeps": {"models": {"taught": None}, "sets": {"set-0": None}, "temperature": {"0.05": None}},
    "benchmarks": {**SMALL["benchmarks"], "diskne": {"diskne": {"negatives": 4}}},
    "methods": {
        "masked": {
            "mask_average": {"medlama": {}},
            "contrastive": {
                "medlama": {"sets": ["set-0"], "sweeps": {"temperature": {"0.05": None}}}
            },
            "classifier": {
                "diskne": {
                    "variants": ["", "always-true"],
                    "seeds": [0],
                    "epochs": 1,
                    "diseases": {"": 2},
                }
            },
        },
        "causal": {},
    },
}


def run_project(folder: Path) -> None:
    """Make the project and run it."""
    project = Project(folder)
    tiny.model("gpt2", folder / "checkpoints/given")
    project.replace(**EVERY_STAGE)
    project.works("medprobe", "sample")
    for path in (folder / "data/sample").glob("cases-*.txt"):  # of which each model reads pieces
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:300]))
    project.works("dvc", "add", "data", "checkpoints/given", "--quiet")
    project.commit("Before the first run")
    project.works("dvc", "repro")
    project.commit("The first numbers")
