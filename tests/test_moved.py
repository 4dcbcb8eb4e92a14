"""`medprobe moved`: numbers are held against a commit's, and last bits count as the same."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from medprobe.cli import main

SCORES = Path("metrics/scores/taught/perplexity.json")


def write(path: Path = SCORES, **values: float) -> None:
    scores = {name: {"value": value, "n": 20} for name, value in values.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"lama": {"default": {"full": {"micro": scores}}}}))


def git(*words: str) -> None:
    who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


@pytest.fixture(autouse=True)
def _recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project below the root of its repository, with two numbers in git."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    write(perplexity=13.467953, share=0.4)
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "numbers")


def moved(*options: str) -> Result:
    return CliRunner().invoke(main, ["moved", *options])


def test_numbers_as_they_were() -> None:
    found = moved()
    assert (found.exit_code, found.output) == (
        0,
        "metrics/scores: all 4 numbers are those of HEAD\n",
    )


def test_last_bits_are_counted_and_are_no_move() -> None:
    write(perplexity=13.467989, share=0.4)  # as measured on another machine
    found = moved()
    assert found.exit_code == 0
    assert "1 of 4 numbers differ from those of HEAD, none by more than 0.00%" in found.output
    assert moved("--tolerance", "0.000001").exit_code == 1


def test_what_moved_is_named_with_both_numbers_the_largest_first() -> None:
    write(perplexity=13.7, share=0.2)
    found = moved()
    assert found.exit_code == 1
    head, *lines = found.output.splitlines()
    assert head == "metrics/scores: 2 of 4 numbers moved since HEAD"
    assert lines == [
        "  taught perplexity lama default full micro share value: 0.4 -> 0.2",
        "  taught perplexity lama default full micro perplexity value: 13.468 -> 13.7",
    ]


def test_a_share_of_the_numbers_may_be_allowed_to_move() -> None:
    write(perplexity=13.467953, share=0.2)
    assert moved("--allow", "0.25").exit_code == 0
    assert moved("--allow", "0.24").exit_code == 1
    assert "1 of 4 numbers moved" in moved("--allow", "0.25").output


def test_shares_near_zero_may_differ_by_a_thousandth() -> None:
    write(perplexity=13.467953, share=0.0)
    git("commit", "--quiet", "--all", "--message", "none right")
    write(perplexity=13.467953, share=0.0009)
    assert moved().exit_code == 0
    write(perplexity=13.467953, share=0.0011)
    assert moved().exit_code == 1


def test_results_that_are_new_or_gone_have_moved() -> None:
    write(SCORES.with_name("fill_mask.json"), share=0.1)
    SCORES.unlink()
    found = moved()
    assert found.exit_code == 1
    assert "taught fill_mask lama default full micro share value: none -> 0.1" in found.output
    assert "taught perplexity lama default full micro share n: 20 -> none" in found.output


def test_a_project_without_numbers_is_told_what_to_do() -> None:
    SCORES.unlink()
    found = moved()
    assert found.exit_code == 2
    assert found.output == "Error: metrics/scores: no numbers there; run medprobe repro\n"


def test_other_commits_can_be_named() -> None:
    write(perplexity=20.0, share=0.4)
    git("commit", "--quiet", "--all", "--message", "another model")
    assert moved().exit_code == 0
    assert moved("--since", "HEAD~1").exit_code == 1


@pytest.mark.parametrize("since", ["no-such-branch", "HEAD"])
def test_what_git_does_not_have_is_said_in_one_line(since: str) -> None:
    if since == "HEAD":
        git("rm", "--quiet", "-r", "--cached", "metrics")
        git("commit", "--quiet", "--message", "without numbers")
    found = moved("--since", since)
    assert found.exit_code == 2
    assert len(found.output.splitlines()) == 1 and "commit" in found.output
