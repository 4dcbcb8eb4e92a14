"""The pipeline end to end, as a user runs it: DVC over a sample world made small."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parent.parent
NEEDED = ["dvc.yaml", "params.yaml", ".dvc/config", ".dvcignore", ".gitignore"]
NEEDED += ["expectations", "src"]

# Small models that learn next to nothing: what is tested is the pipeline, not the figures.
SMALL: dict[str, Any] = {
    "sample": {"queries": 20, "reserve": 8},
    "pretrain": {name: {"corpus": name, "steps": 5} for name in ("taught", "untaught")},
    "models": {
        "masked": {name: {"pretrain": name} for name in ("taught", "untaught")},
        "encoder": {},
        "causal": {},
        "seq2seq": {},
    },
    "probe": {"masked": ["mask_average"], "causal": [], "seq2seq": [], "finetune": []},
    "rewire": {"sets": ["set-0"], "steps": 2, "checkpoint_every": 1, "batch": 16},
    "score": {"bootstrap": 50},
}


class Project:
    """A copy of the project in a folder of its own, and the commands a person types there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in NEEDED:
            source, target = ROOT / name, folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "MLFLOW_TRACKING_URI": ""}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )

    def replace(self, **sections: Any) -> None:
        """Put sections in the place of those that params.yaml has."""
        path = self.folder / "params.yaml"
        params = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump(params | sections, sort_keys=False))

    def changed_stages(self) -> set[str]:
        """The stages that `dvc repro` would run, as far as DVC can tell beforehand."""
        status = self.run("dvc", "status").stdout
        lines = [line for line in status.splitlines() if line and not line[0].isspace()]
        return {line.rstrip(":") for line in lines if line.endswith(":")}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    made = Project(tmp_path_factory.mktemp("project"))
    params = yaml.safe_load((made.folder / "params.yaml").read_text())
    medlama = {"medlama": params["benchmarks"]["medlama"]}
    methods = params["methods"] | {"contrastive": {"benchmarks": ["medlama"], "step": 2}}
    made.replace(**SMALL, benchmarks=medlama, methods=methods)
    sample = made.run("medprobe", "sample")
    assert sample.returncode == 0, sample.stdout
    repro = made.run("medprobe", "repro")
    assert repro.returncode == 0, repro.stdout[-3000:]
    yield made


def test_every_result_is_there(project: Project) -> None:
    for name in ["reports/comparison.csv", "reports/index.html", "metrics/taught/contrastive.json"]:
        assert (project.folder / name).is_file(), name
    table = pd.read_csv(project.folder / "reports/comparison.csv")
    assert {"taught", "untaught"} <= set(table["model"])
    assert {"contrastive", "mask_average"} <= set(table["method"])


def test_no_name_is_in_what_people_share(project: Project) -> None:
    names = (project.folder / "data/sample/names.txt").read_text().splitlines()
    found = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    shared = [
        path
        for place in ("mlruns", "metrics", "reports")
        for path in (project.folder / place).rglob("*")
        if path.suffix in {".csv", ".json", ".html", ".svg"}
    ]
    assert {"top_k.csv", "samples.csv", "index.html"} <= {path.name for path in shared}
    for path in shared:
        assert not (leak := found.search(path.read_text())), f"{path}: {leak}"


def test_a_second_run_does_nothing(project: Project) -> None:
    again = project.run("dvc", "repro")
    assert "Running stage" not in again.stdout
    assert "up to date" in again.stdout


def test_a_rewiring_parameter_reruns_rewiring_and_what_follows(project: Project) -> None:
    project.replace(rewire=SMALL["rewire"] | {"temperature": 0.05})
    again = project.run("dvc", "repro")
    assert again.returncode == 0, again.stdout[-3000:]
    ran = set(re.findall(r"Running stage '(.*)'", again.stdout))
    rewired = {f"rewire@{model}-set-0" for model in ("taught", "untaught")}
    probed = {f"probe-contrastive@{model}" for model in ("taught", "untaught")}
    assert rewired | probed <= ran <= rewired | probed | {"score", "track", "compare"}


def test_a_new_model_and_a_new_method_rerun_nothing_else(project: Project) -> None:
    before = (project.folder / "params.yaml").read_text()
    newcomer = {"newcomer": {"folder": "outputs/models/taught"}}
    masked = SMALL["models"]["masked"] | newcomer
    project.replace(models=SMALL["models"] | {"masked": masked})
    with_model = project.changed_stages()
    (project.folder / "params.yaml").write_text(before)
    project.replace(probe=SMALL["probe"] | {"masked": ["mask_average", "fill_mask"]})
    with_method = project.changed_stages()
    (project.folder / "params.yaml").write_text(before)
    assert "rewire@newcomer-set-0" in with_model
    others = {stage for stage in with_model if "newcomer" not in stage}
    assert others <= {"compare"}  # which follows them, and shows the new model
    assert with_method == {"probe@taught-fill_mask", "probe@untaught-fill_mask"}


def test_a_broken_row_stops_the_pipeline_at_the_gate(project: Project) -> None:
    path = project.folder / "data/umls/MRREL.RRF"
    before = path.read_bytes()
    lines = before.split(b"\n")
    row = next(line for line in lines if b"|may_treat|" in line and b"|MED-RT|" in line)
    broken = b"C12X|" + row.split(b"|", 1)[1]
    path.chmod(0o644)
    path.write_bytes(before.replace(row, broken, 1))
    stopped = project.run("medprobe", "repro")
    path.write_bytes(before)
    assert stopped.returncode == 2
    assert "failed to reproduce 'build@medlama'" in stopped.stdout
    assert "a stage failed, as DVC says above; mend it" in stopped.stdout
    assert "C12X" in stopped.stdout
    assert "Running stage 'rewire" not in stopped.stdout
    assert "Running stage 'pretrain" not in stopped.stdout
