"""A project over files as they were released, without the sample world."""

import json
from pathlib import Path

from helpers.project import NEEDED_SECTIONS, Project


def begun(folder: Path, **sections: object) -> Project:
    """A project with these benchmarks or sentence sets, and nothing else."""
    project = Project(folder)
    params = project.params()
    kept_sections = {name: params[name] for name in NEEDED_SECTIONS}
    project.write_params(kept_sections | sections)
    return project


def gate_rows(project: Project, **warnings: int) -> tuple[int, int]:
    """Build the benchmark `real`, which passes its gate: its rows of queries and of candidates.

    `warnings` are the expectations that fail, and how many rows each names.
    """
    project.works("medprobe", "build", "--benchmark", "real")
    project.works("medprobe", "validate", "--benchmark", "real")
    result = project.folder / "outputs/validation/real/result.json"
    tables = {table["table"]: table for table in json.loads(result.read_text())["tables"]}
    checks = [check for table in tables.values() for check in table["checks"]]
    assert len(checks) > 20
    failing = {check["type"]: check["failing"] for check in checks if not check["success"]}
    assert failing == warnings
    return tables["queries"]["rows"], tables["candidates"]["rows"]
