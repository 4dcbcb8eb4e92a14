"""Files appear whole or not at all; finished parts are kept."""

import errno
from pathlib import Path

import pytest

from medprobe.core.files import replacing
from medprobe.core.parts import fingerprint


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(OSError), replacing(target) as path:
        path.write_text("half")
        raise OSError(28, "No space left on device")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_is_of_the_file_that_is_written(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught, replacing(tmp_path / "copy"):
        raise OSError(errno.ENOSPC, "No space left on device", "source")
    assert caught.value.filename == str(tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_takes_the_place_of_a_folder(tmp_path: Path) -> None:
    target = tmp_path / "model"
    for content in ("first", "second"):
        with replacing(target) as path:
            path.mkdir()
            (path / content).touch()
    assert [file.name for file in target.iterdir()] == ["second"]
    assert list(tmp_path.iterdir()) == [target]


def test_a_fingerprint_sees_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    before = fingerprint([tmp_path])
    (tmp_path / "a").rename(tmp_path / "b")
    renamed = fingerprint([tmp_path])
    (tmp_path / "b").write_text("y")
    assert len({before, renamed, fingerprint([tmp_path])}) == 3
