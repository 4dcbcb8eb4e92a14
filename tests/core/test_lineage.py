"""How results were made: what is read of records and git, and what is not."""

import re
import subprocess
from pathlib import Path

from medprobe.core import lineage


def test_a_record_of_another_result_is_not_taken(tmp_path: Path) -> None:
    path, table = tmp_path / "record.json", tmp_path / "table"
    assert lineage.record(path, table) == {}
    table.write_text("numbers")
    with lineage.recorded(path, table, {"device": "cpu"}):
        pass
    assert lineage.record(path, table)["device"] == "cpu"
    table.write_text("other numbers")
    assert lineage.record(path, table) == {}


def test_a_commit_of_results_moves_nothing(working_folder: Path) -> None:
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
