"""`medprobe moved`: compare the recorded numbers with those of a commit.

Two machines that compute in float32 get slightly different weights, and some slightly different
numbers. `git diff metrics` shows all of these; here small differences are tolerated.
"""

import json
import math
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from medprobe.core import places
from medprobe.core.errors import BadInput

TOLERANCE: Final = 0.01  # the relative change to tolerate
NEAR_ZERO: Final = 0.1  # smaller numbers may change as much as this one
ROUNDING: Final = 1e-6  # of recorded numbers
LISTED: Final = 10  # differences of each kind

Place = tuple[str, ...]  # the names that lead to a number
Numbers = dict[Place, float]


class Changes(NamedTuple):
    """The numbers of one kind: how many, how many moved too far, and a line for all that differ."""

    numbers: int
    moved: int
    lines: list[str]  # the largest difference first, in units of the tolerance


def compare_with(since: str) -> tuple[Changes, Changes]:
    """Compare the numbers on disk with those of a commit: the headlines, and all numbers.

    A number can change by `TOLERANCE`, and a headline that is a mean over n queries by one answer,
    1/n, too. The headlines are in `metrics/summary.json`, all numbers in `metrics/scores`.

    Raises:
        BadInput: without numbers on disk or in the commit, and for an unknown commit.
    """
    paths = [path for path in (places.SUMMARY, *places.SCORES.glob("*/*.json")) if path.is_file()]
    if len(paths) < 2:
        raise BadInput(places.SCORES, "no numbers in this folder", "run `medprobe repro`")
    now = {path: path.read_text(encoding="utf-8") for path in paths}
    headlines, scores = _numbers(now)
    headlines_before, scores_before = _numbers(_committed(since))
    limits = {
        place: max(TOLERANCE * abs(value), _one_answer(scores_before, place, value))
        for place, value in headlines_before.items()
    }
    return _compare(headlines_before, headlines, limits), _compare(scores_before, scores, {})


def describe(path: Path, changes: Changes) -> str:
    """Format how many numbers of a file or folder differ, and the largest differences."""
    count = f"{len(changes.lines):,} of {changes.numbers:,} numbers differ"
    head = f"{path}: {count}, {changes.moved:,} by more than the tolerance"
    return "\n".join([head, *changes.lines[:LISTED]])


def _compare(old: Numbers, new: Numbers, limits: Mapping[Place, float]) -> Changes:
    """Compare numbers with their limits; the default is a share of the number."""
    changes = []
    for place in sorted({*old, *new}):
        before, after = old.get(place), new.get(place)
        if before != after:
            limit = limits.get(place, TOLERANCE * max(abs(before or 0.0), NEAR_ZERO))
            known = before is not None and after is not None
            size = abs(before - after) / (limit + ROUNDING) if known else math.inf  # type: ignore[operator]
            values = " -> ".join("none" if x is None else f"{x:.6g}" for x in (before, after))
            changes.append((size, f"  {' '.join(place)}: {values}, tolerance {limit:.2g}"))
    changes.sort(key=lambda change: -change[0])
    moved = sum(size > 1 for size, _ in changes)
    return Changes(len({*old, *new}), moved, [line for _, line in changes])


def _one_answer(scores: Numbers, headline: Place, value: float) -> float:
    """1/n, if a headline is a mean over n queries; the largest n of equal means."""
    benchmark, *system = headline
    sizes = [
        scores[(*place[:-1], "n")]
        for place, number in scores.items()
        if place[:3] == (*system, benchmark)
        and (place[-3], place[-1]) == ("macro", "value")
        and number == value
    ]
    return 1 / max(sizes, default=math.inf)


def _committed(since: str) -> dict[Path, str]:
    """Read the files of numbers in a commit. Raises BadInput if git fails or there are none."""

    def git(*words: str) -> str:
        process = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        if process.returncode:
            problem = (process.stderr.strip() or "refused").splitlines()[0]
            raise BadInput("git", problem, "give an existing commit, branch or tag")
        return process.stdout

    names = ("ls-tree", "-r", "--name-only", since, "--", f"{places.SUMMARY}", f"{places.SCORES}")
    files = [Path(name) for name in git(*names).splitlines() if name.endswith(".json")]
    if not files:
        remedy = "commit metrics/ and dvc.lock, or give a commit that has them"
        raise BadInput(places.METRICS, f"no numbers in {since}", remedy)
    return {path: git("show", f"{since}:./{path}") for path in files}


def _numbers(files: Mapping[Path, str]) -> tuple[Numbers, Numbers]:
    """Split the numbers of all files into headlines and scores."""
    headlines, scores = Numbers(), Numbers()
    for path, text in files.items():
        if path == places.SUMMARY:
            headlines.update(_flatten(json.loads(text), ()))
        else:
            scores.update(_flatten(json.loads(text), (path.parent.name, path.stem)))
    return headlines, scores


def _flatten(content: Any, place: Place) -> Iterator[tuple[Place, float]]:
    """List all numbers of a nested mapping, with the keys that lead to each."""
    if isinstance(content, dict):
        for name, inner in content.items():
            yield from _flatten(inner, (*place, name))
    elif isinstance(content, int | float):
        yield place, float(content)
