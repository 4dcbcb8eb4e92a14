"""Where results come from: what is read of dvc.lock, records and git, and what is not."""

import re
import subprocess
from pathlib import Path

import pytest

from medprobe.tracking import lineage


def test_lineage_of_nothing_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nowhere = tmp_path / "none"
    assert lineage.hashes(lock=nowhere) == {}
    assert lineage.recorded_params(Path("outputs"), nowhere) is None
    assert lineage.record(nowhere, nowhere) == {}
    assert lineage.inputs("m", "b", [])["data"] == "not pinned by data.dvc"
    assert lineage.flat({"a": {"b": 1, "c": {}}, "d": [1]}) == {"a.b": 1, "d": [1]}


@pytest.mark.parametrize(
    "content",
    ["", "stages:\n  cut", "stages:\n", "stages: {}\n", "\x00", "[\n", "<<<<<<< HEAD\n"],
)
def test_lineage_fails_nothing(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "dvc.lock"
    (tmp_path / "data").mkdir()
    for file in (path, lineage.DATA, tmp_path / "data/umls.dvc"):
        file.write_text(content)
    assert lineage.hashes(lock=path) == {}
    assert lineage.recorded_params(Path("outputs"), path) is None


def test_a_record_of_another_result_is_not_taken(tmp_path: Path) -> None:
    path, table = tmp_path / "record.json", tmp_path / "table"
    table.write_text("numbers")
    with lineage.recorded(path, table, {"device": "cpu"}):
        pass
    assert lineage.record(path, table)["device"] == "cpu"
    table.write_text("other numbers")
    assert lineage.record(path, table) == {}


def test_a_commit_of_results_moves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert lineage.followed() == ""

    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], check=True, capture_output=True)

    git("init")
    for name in ("params.yaml", "dvc.lock"):
        Path(name).write_text("1")
        git("add", name)
        git("commit", "-m", name)
    first = lineage.followed()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d, commit [0-9a-f]{10}", first)
    assert first[-10:] != lineage.commit()[:10]
    Path("params.yaml").write_text("2")
    assert lineage.followed() == f"{first} with changes"
