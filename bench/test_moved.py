"""Numbers are held against a commit's; of the headlines none may be off."""

import json
import subprocess
from pathlib import Path

import pytest

from bench import moved
from medprobe.core.plugins import ROOT

SCORES = Path("metrics/scores/taught/fill_mask.json")
SUMMARY = Path("metrics/summary.json")


def write(accuracy: float, mrr: float = 0.5) -> None:
    scores = {"acc": {"value": accuracy, "n": 20}, "mrr": {"value": mrr, "n": 20}}
    SCORES.parent.mkdir(parents=True, exist_ok=True)
    SCORES.write_text(json.dumps({"lama": {"default": {"full": {"macro": scores}}}}))
    SUMMARY.write_text(json.dumps({"lama": {"taught": {"fill_mask": accuracy}}}))


def commit() -> None:
    who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "numbers")):
        subprocess.run(["git", *who, *words], check=True)


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ((0.4, 0.5), (0.4, 0.5), 0),
        ((0.4, 0.5), (0.45, 0.5), 0),  # by one answer of twenty
        ((0.4, 0.5), (0.46, 0.5), 1),
        ((0.4, 0.5), (0.4, 0.6), 1),
        ((46.9, 0.5), (47.3, 0.5), 0),  # a perplexity, by a share of itself
        ((46.9, 0.5), (47.5, 0.5), 1),
    ],
)
def test_what_moved_too_far_fails(
    before: tuple[float, float],
    after: tuple[float, float],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["moved"])
    monkeypatch.setattr(moved, "SHARE", 0.25 if before[1] == after[1] else 0.0)
    write(*before)
    commit()
    write(*after)
    assert moved.main() == status
    SUMMARY.write_text(json.dumps({"lama": {"taught": {"xfactr": 0.4}}}))
    assert moved.main() == 1, "new and gone results have moved"


@pytest.mark.parametrize("is_raised", [True, False])
def test_a_method_whose_number_moved_and_whose_version_did_not_is_named(
    is_raised: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["moved"])
    file = Path("src/medprobe/methods/fill_mask.py")
    file.parent.mkdir(parents=True)
    old = "    VERSION = 0\n" if is_raised else ""
    file.write_text(old + (ROOT / "methods/fill_mask.py").read_text())
    write(0.4)
    commit()
    write(0.6)
    assert moved.main() == 1
    line = f"numbers of fill_mask ({file}) moved: if the code did it, raise its VERSION"
    assert (line not in capsys.readouterr().out) == is_raised
