"""LAMA's files as they were really released, where these are there."""

from collections.abc import Callable
from pathlib import Path

from helpers.project import Project
from helpers.released_project import begun, gate_rows


def test_the_gate_has_no_false_alarm_on_released_files(
    tmp_path: Path, released_data: Callable[[str], Path]
) -> None:
    settings = {"sets": ["google-re", "t-rex", "squad"]}
    project: Project = begun(tmp_path / "project", benchmarks={"lama": {"real": settings}})
    project.works("medprobe", "import", "lama", str(released_data("lama")))
    assert gate_rows(project) == (34_618, 2_805)
