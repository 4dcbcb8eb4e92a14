"""git's filter of earlier versions is taken out, and `git status` shows what it hid."""

import subprocess
from pathlib import Path

import pytest

from medprobe.commands.git_filter import remove_filter

HIDES = "sed s/new/old/"


def git(*words: str) -> str:
    who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    return subprocess.run(["git", *who, *words], check=True, capture_output=True, text=True).stdout


def test_what_the_filter_hid_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [Path("dvc.lock"), Path("metrics/scores/taught/xfactr.json")]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old")
    Path(".gitattributes").write_text("/dvc.lock filter=medprobe\n/metrics/** filter=medprobe\n")
    git("init", "--quiet")
    git("config", "filter.medprobe.clean", HIDES)
    git("config", "filter.another.clean", "cat")
    git("add", ".")
    git("commit", "--quiet", "--message", "numbers")
    for path in paths:
        path.write_text("new")
    git("add", "--update")
    assert not git("status", "--porcelain")
    remove_filter()
    assert capsys.readouterr().out.count("\n") == 1
    assert git("status", "--porcelain").splitlines() == [f" M {path}" for path in paths]
    config = Path(".git/config").read_text()
    assert "medprobe" not in config and "another" in config
    remove_filter()
    assert not capsys.readouterr().out
    git("checkout", "--", "dvc.lock", "metrics")
    assert [path.read_text() for path in paths] == ["old", "old"]


def test_a_folder_outside_git_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    remove_filter()
    assert capsys.readouterr() == ("", "")
