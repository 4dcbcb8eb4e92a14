"""Whether files are as their publishers released them, by each way in which they sign."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers import FolderOf
from medprobe.sources.publishers import compare

CONTENT = b"a|b|\n" * 20


def digest(kind: str) -> str:
    return hashlib.new(kind, CONTENT).hexdigest()


def umls(folder: Path) -> str:
    (folder / "MRFILES.RRF").write_text("MRREL.RRF|Relations|A,B|2|20|100|\nOTHER|x|A|1|1|1|\n")
    (folder / "release.dat").write_text("umls.release.name=2021AA\n")
    return "MRREL.RRF"


def umls_sums(folder: Path) -> str:
    (folder / "2021AA.MD5").write_text(f"MD5 (META/MRREL.RRF) = {digest('md5')}\n")
    return umls(folder)


def physionet(folder: Path) -> str:
    (folder / "SHA256SUMS.txt").write_text(f"{digest('sha256')} note/notes.csv\n")
    return "notes.csv"


def pubmed(folder: Path) -> str:
    (folder / "pubmed1.xml.gz.md5").write_text(f"MD5(pubmed1.xml.gz)= {digest('md5')}\n")
    return "pubmed1.xml.gz"


def md5sum(folder: Path) -> str:
    (folder / "pubmed1.xml.gz.md5").write_text(f"{digest('md5')}  pubmed1.xml.gz\n")
    return "pubmed1.xml.gz"


@pytest.mark.parametrize("sign", [umls, umls_sums, physionet, pubmed, md5sum])
def test_a_signed_file_is_told_from_another_one(
    tmp_path: Path, sign: Callable[[Path], str]
) -> None:
    (folder := tmp_path / "source").mkdir()
    assert compare(tmp_path, ["source"]) == {"source": "unsigned"}
    name = sign(folder)
    (folder / name).write_bytes(CONTENT)
    [verdict] = compare(tmp_path, [f"source/{name}"]).values()
    assert verdict.startswith("as published (") and "unsigned" not in verdict
    (folder / name).write_bytes(CONTENT[:-5])  # cut between rows
    [verdict] = compare(tmp_path, [f"source/{name}"]).values()
    assert verdict.startswith(f"differs: {name} (")
    (folder / name).write_bytes(CONTENT)
    (folder / "below").mkdir()
    (folder / "below/own.csv").write_bytes(b"x")
    [verdict] = compare(tmp_path, ["source"]).values()
    assert verdict.startswith("as published (") and "unsigned: below/own.csv" in verdict


@pytest.mark.parametrize("numbers", ["", "nine|45", "9|", "|"])
def test_a_list_that_says_nothing_of_a_file_signs_nothing(tmp_path: Path, numbers: str) -> None:
    (folder := tmp_path / "source").mkdir()
    (folder / "MRSTY.RRF").write_bytes(CONTENT)
    (folder / "MRFILES.RRF").write_text(f"MRSTY.RRF|Types|CUI,TUI|2|{numbers}\n")
    assert compare(tmp_path, ["source"]) == {"source": "unsigned"}


@pytest.mark.parametrize("sign", [umls, umls_sums, physionet, pubmed, md5sum])
def test_a_list_of_another_editor_is_read(tmp_path: Path, sign: Callable[[Path], str]) -> None:
    (folder := tmp_path / "source").mkdir()
    (folder / sign(folder)).write_bytes(CONTENT)
    for path in folder.iterdir():
        if path.read_bytes() != CONTENT:
            text = path.read_text().replace("\n", "\r\n")
            path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    [verdict] = compare(tmp_path, ["source"]).values()
    assert verdict.startswith("as published (")


@pytest.mark.parametrize("source", ["medlama", "lama", "diskne", "sentences"])
def test_released_files_are_as_published_and_one_other_byte_is_named(
    tmp_path: Path, released_data: FolderOf, source: str
) -> None:
    released = released_data({"medlama": "medlama-released"}.get(source, source))
    folder = tmp_path / source
    shutil.copytree(released, folder, copy_function=shutil.copyfile)
    [verdict] = compare(tmp_path, [source]).values()
    assert verdict.startswith("as published (") and "unsigned" not in verdict
    *_, last = sorted(path for path in folder.rglob("*") if path.is_file())
    content = last.read_bytes()
    last.chmod(0o644)
    last.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    place = last.relative_to(folder).as_posix()
    assert compare(tmp_path, [source]) == {source: f"differs: {place} (other content)"}
    last.write_bytes(content + b"one more row\n")
    assert f"differs: {place} (" in compare(tmp_path, [source])[source]
