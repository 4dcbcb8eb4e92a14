"""`medprobe moved`: numbers are held against a commit's; of the headlines none may be off."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from medprobe.cli import main

SCORES = Path("metrics/scores/taught/fill_mask.json")
SUMMARY = Path("metrics/summary.json")
QUERIES = 20


def write(accuracy: float = 0.4, others: dict[str, float] | None = None) -> None:
    """Scores of one result, whose accuracy is the headline."""
    values = {"acc": accuracy, **(others or {"mrr": 0.5})}
    scores = {name: {"value": value, "n": QUERIES} for name, value in values.items()}
    SCORES.parent.mkdir(parents=True, exist_ok=True)
    SCORES.write_text(json.dumps({"lama": {"default": {"full": {"macro": scores}}}}))
    SUMMARY.write_text(json.dumps({"lama": {"taught": {"fill_mask": accuracy}}}))


def git(*words: str) -> None:
    who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


@pytest.fixture(autouse=True)
def _recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project below the root of its repository, with numbers in git."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    write()
    Path("metrics/above_control.json").write_text('{"a": 1.0}')  # which is not compared
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "numbers")


def moved(*options: str) -> Result:
    return CliRunner().invoke(main, ["moved", *options])


def test_numbers_as_they_were() -> None:
    changes = moved()
    assert changes.exit_code == 0
    assert changes.output.splitlines() == [
        "metrics/summary.json: 0 of 1 numbers differ, 0 by more than the tolerance",
        "metrics/scores: 0 of 4 numbers differ, 0 by more than the tolerance",
    ]


@pytest.mark.parametrize(("accuracy", "status"), [(0.35, 0), (0.45, 0), (0.34, 1), (0.46, 1)])
def test_a_headline_may_move_by_one_answer(accuracy: float, status: int) -> None:
    write(accuracy)
    assert moved("--allow", "1").exit_code == status


def test_a_large_headline_may_move_by_a_share_of_itself() -> None:
    write(46.9)
    git("commit", "--quiet", "--all", "--message", "a perplexity")
    for perplexity, status in ((47.3, 0), (47.4, 1), (4.69, 1)):
        write(perplexity)
        assert moved("--allow", "1").exit_code == status


def test_no_headline_is_off_whatever_share_is_allowed() -> None:
    SUMMARY.write_text(json.dumps({"lama": {"taught": {"fill_mask": 3 * 0.4 + 0.123}}}))
    changes = moved("--allow", "1")
    assert changes.exit_code == 1
    assert changes.output.splitlines()[:2] == [
        "metrics/summary.json: 1 of 1 numbers differ, 1 by more than the tolerance",
        "  lama taught fill_mask: 0.4 -> 1.323, tolerance 0.05",
    ]


def test_a_share_of_the_other_numbers_may_move_and_the_largest_is_shown_first() -> None:
    write(others={"mrr": 0.6})
    assert moved("--allow", "0.25").exit_code == 0
    assert moved("--allow", "0.24").exit_code == 1
    git("commit", "--quiet", "--all", "--message", "another")
    write(others={"mrr": 0.601, "auc": 0.9})
    _, head, *lines = moved().output.splitlines()
    assert head == "metrics/scores: 3 of 6 numbers differ, 2 by more than the tolerance"
    at = "taught fill_mask lama default full macro"
    assert f"  {at} auc value: none -> 0.9, tolerance 0.001" in lines[:2]
    assert lines[-1] == f"  {at} mrr value: 0.6 -> 0.601, tolerance 0.006"


def test_shares_near_zero_may_move_by_a_thousandth() -> None:
    write(others={"mrr": 0.0})
    git("commit", "--quiet", "--all", "--message", "none right")
    for value, status in ((0.0009, 0), (0.0011, 1)):
        write(others={"mrr": value})
        assert moved("--allow", "0").exit_code == status


def test_results_that_are_new_or_gone_have_moved() -> None:
    SUMMARY.write_text(json.dumps({"lama": {"taught": {"xfactr": 0.4}}}))
    changes = moved()
    assert changes.exit_code == 1
    assert "lama taught xfactr: none -> 0.4" in changes.output
    assert "lama taught fill_mask: 0.4 -> none" in changes.output


def test_a_project_without_numbers_gets_a_remedy() -> None:
    SCORES.unlink()
    changes = moved()
    assert changes.exit_code == 2
    assert (
        changes.output == "Error: metrics/scores: no numbers in this folder; run `medprobe repro`\n"
    )


def test_other_commits_can_be_named() -> None:
    write(0.8)
    git("commit", "--quiet", "--all", "--message", "another model")
    assert moved().exit_code == 0
    assert moved("--since", "HEAD~1").exit_code == 1


@pytest.mark.parametrize("since", ["no-such-branch", "HEAD"])
def test_what_git_does_not_have_is_said_in_one_line(since: str) -> None:
    if since == "HEAD":
        git("rm", "--quiet", "-r", "--cached", "metrics")
        git("commit", "--quiet", "--message", "without numbers")
    changes = moved("--since", since)
    assert changes.exit_code == 2
    assert len(changes.output.splitlines()) == 1 and "commit" in changes.output
