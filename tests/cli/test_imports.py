"""What people have is found where it lies, and never put over a file of theirs."""

import gzip
import os
import zipfile
from pathlib import Path

import pytest

from medprobe.core.errors import BadInput
from medprobe.core.plugins import find_plugins
from medprobe.sources.releases import import_files

RELEASES = [*find_plugins("imports")]
PLUGIN = """
from medprobe.sources.releases import Release

RELEASE = Release("texts", ("*.txt", "more/*.csv"), "use them")
"""


@pytest.fixture
def home(working_folder: Path) -> Path:
    """A project with a plugin that imports `texts`."""
    Path("params.yaml").write_text("seed: 1")
    Path("plugins/imports").mkdir(parents=True)
    Path("plugins/imports/texts.py").write_text(PLUGIN)
    return working_folder


def test_files_are_found_below_a_folder_and_copied(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = home / "archive/inner"
    place.mkdir(parents=True)
    for name in ("part_1.txt", "part_2.txt", "README.md"):
        (place / name).write_text(name)
    copies = import_files("texts", home / "archive", home / "data")
    assert {path.name for path in copies} == {"part_1.txt", "part_2.txt"}
    assert {*(home / "data/texts").iterdir()} == {*copies}
    output = capsys.readouterr().out
    assert f"copied 2 files of {place}" in output and "next: use them" in output
    assert "not there: more/*.csv" in output
    (home / "archive/other").mkdir()
    (home / "archive/other/part_1.txt").write_text("of a copy")
    with pytest.raises(BadInput, match=r"inner: it and .*other both contain \*\.txt; give one"):
        import_files("texts", home / "archive", home / "data")
    with pytest.raises(BadInput, match=r"unknown release \(did you mean 'texts'\?\)"):
        import_files("text", home / "archive", home / "data")


def test_a_file_of_ones_own_is_replaced_only_by_force(home: Path) -> None:
    source, data = home / "archive", home / "data"
    source.mkdir()
    (source / "part_1.txt").write_text("released")
    import_files("texts", source, data)
    import_files("texts", source, data)  # the same files: nothing to lose
    own_file = data / "texts/part_1.txt"
    own_file.write_text("mine")
    (data / "texts/notes.txt").write_text("mine")
    with pytest.raises(BadInput, match=r"part_1\.txt: exists and differs; --force"):
        import_files("texts", source, data)
    assert own_file.read_text() == "mine"
    import_files("texts", source, data, force=True)
    assert own_file.read_text() == "released"
    assert (data / "texts/notes.txt").read_text() == "mine"


def test_a_link_into_a_cache_is_not_written_through(home: Path) -> None:
    data, cached = home / "data/texts", home / "cached"
    data.mkdir(parents=True)
    cached.write_text("as it was\n")
    (data / "mine.txt").symlink_to(cached)
    (home / "mine.txt").write_text("a sentence .\n")
    import_files("texts", home / "mine.txt", home / "data", force=True)
    assert cached.read_text() == "as it was\n"
    assert (data / "mine.txt").read_text() == "a sentence .\n"


def test_a_link_out_of_an_archive_brings_nothing(home: Path) -> None:
    secret = home / "secret.txt"
    secret.write_text("a key .\n")
    archive = home / "archive"
    archive.mkdir()
    (archive / "first.txt").write_text("velotrine is given .\n")
    (archive / "again.txt").symlink_to(archive / "first.txt")
    import_files("texts", archive, home / "data")
    (archive / "second.txt").symlink_to(secret)
    (archive / "loop").symlink_to(archive)
    with pytest.raises(BadInput, match=r"second\.txt: a link to a file outside of the folder"):
        import_files("texts", archive, home / "other")
    assert not (home / "other").exists()
    link = home / "link.txt"  # what the user names is the user's choice
    link.symlink_to(secret)
    import_files("texts", link, home / "other")


def test_what_is_no_file_is_not_waited_for(home: Path) -> None:
    os.mkfifo(home / "pipe")
    with pytest.raises(BadInput, match="no such file or folder"):
        import_files("texts", home / "pipe", home / "data")


@pytest.mark.parametrize("what", RELEASES)
def test_no_release_waits_for_what_is_no_file(tmp_path: Path, what: str) -> None:
    (tmp_path / "archive").mkdir()
    os.mkfifo(tmp_path / "archive/pipe.txt")
    with pytest.raises(BadInput, match="archive"):
        import_files(what, tmp_path / "archive", tmp_path / "data")


@pytest.mark.parametrize("what", RELEASES)
def test_a_folder_without_it_is_named(tmp_path: Path, what: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="empty: "):
        import_files(what, tmp_path / "empty", tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("what", RELEASES)
def test_an_archive_is_refused(tmp_path: Path, what: str) -> None:
    with zipfile.ZipFile(tmp_path / "release.zip", "w") as packed:
        packed.writestr("../outside.csv", "a")
    (tmp_path / "release.gz").write_bytes(gzip.compress(bytes(70_000_000), 1))
    for name in ("release.zip", "release.gz"):
        with pytest.raises(BadInput, match=rf"{name}.*; "):
            import_files(what, tmp_path / name, tmp_path / "data")
    assert {path.name for path in tmp_path.iterdir()} == {"release.zip", "release.gz"}
