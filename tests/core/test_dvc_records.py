"""What is read of dvc.lock and of the files that pin the data, and that damage fails nothing."""

from pathlib import Path

import pytest

from medprobe.core import dvc_records
from medprobe.tracking.runs import read_inputs


def test_where_dvc_recorded_nothing_there_is_nothing(working_folder: Path) -> None:
    assert dvc_records.hashes() == {}
    assert read_inputs("m", "b", [])["data"] == "not pinned by data.dvc"
    assert dvc_records.flat({"a": {"b": 1, "c": {}}, "d": [1]}) == {"a.b": 1, "d": [1]}


@pytest.mark.parametrize(
    "content", ["", "stages:\n  cut", "stages:\n", "stages: {}\n", "\x00", "[\n", "<<<<<<< HEAD\n"]
)
def test_a_damaged_file_fails_nothing(
    content: str, working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dvc_records, "TRIES", 1)  # nobody is writing it
    Path("data").mkdir()
    for file in (dvc_records.LOCK, dvc_records.DATA, Path("data/umls.dvc")):
        file.write_text(content)
    assert dvc_records.hashes() == {}
