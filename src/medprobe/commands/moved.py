"""`medprobe moved`: compare the recorded numbers with those of a commit.

Two machines that compute in float32 get slightly different weights, and some slightly different
numbers. `git diff metrics` shows all of these; here small differences are tolerated.
"""

import json
import math
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from medprobe.commands import outputs
from medprobe.core import places
from medprobe.core.errors import BadInput

TOLERANCE: Final = 0.01  # the relative change to tolerate
NEAR_ZERO: Final = 0.1  # smaller numbers may change as much as this one
ROUNDING: Final = 1e-6  # of recorded numbers
LISTED: Final = 10  # differences of each kind

Place = tuple[str, ...]  # the names that lead to a number
Numbers = dict[Place, float]


class Difference(NamedTuple):
    """A number that differs between two records; None if a record lacks it."""

    place: Place
    old: float | None
    new: float | None
    limit: float  # the tolerated change

    @property
    def size(self) -> float:
        """The difference, in units of the limit."""
        if self.old is None or self.new is None:
            return math.inf
        return abs(self.old - self.new) / (self.limit + ROUNDING)

    def __str__(self) -> str:
        old, new = ("none" if x is None else f"{x:.6g}" for x in (self.old, self.new))
        return f"  {' '.join(self.place)}: {old} -> {new}, tolerance {self.limit:.2g}"


class Comparison(NamedTuple):
    """The numbers of two records."""

    path: Path
    numbers: int  # in either record
    differences: list[Difference]  # the largest first

    @property
    def moved(self) -> int:
        """The number of differences above their limit."""
        return sum(difference.size > 1 for difference in self.differences)

    def output(self) -> outputs.Changes:
        """All differences, for `--json`."""
        changes = [
            outputs.Change(place=[*place], old=old, new=new, tolerance=limit)
            for place, old, new, limit in self.differences
        ]
        return outputs.Changes(numbers=self.numbers, moved=self.moved, changes=changes)

    def __str__(self) -> str:
        count = f"{len(self.differences):,} of {self.numbers:,} numbers differ"
        head = f"{self.path}: {count}, {self.moved:,} by more than the tolerance"
        return "\n".join([head, *map(str, self.differences[:LISTED])])


def compare_with(since: str) -> tuple[Comparison, Comparison]:
    """Compare the numbers on disk with those of a commit.

    A number can change by `TOLERANCE`, and a headline that is a mean over n queries by one answer,
    1/n, too.

    Args:
        since: a commit, branch or tag.

    Returns:
        The headlines, which are the main numbers of all results (`metrics/summary.json`), and all
        numbers in `metrics/scores`.

    Raises:
        BadInput: without numbers on disk or in the commit, and for an unknown commit.
    """
    paths = [path for path in (places.SUMMARY, *places.SCORES.glob("*/*.json")) if path.is_file()]
    if len(paths) < 2:
        raise BadInput(places.SCORES, "no numbers in this folder", "run `medprobe repro`")
    headlines, scores = _numbers({path: path.read_text(encoding="utf-8") for path in paths})
    headlines_before, scores_before = _numbers(_committed(since))

    def limit(_: Place, value: float) -> float:
        return TOLERANCE * max(abs(value), NEAR_ZERO)

    def limit_of_headline(place: Place, value: float) -> float:
        return max(TOLERANCE * abs(value), _one_answer(scores_before, place, value))

    return (
        _compare(places.SUMMARY, headlines_before, headlines, limit_of_headline),
        _compare(places.SCORES, scores_before, scores, limit),
    )


def _compare(
    path: Path, old: Numbers, new: Numbers, limit: Callable[[Place, float], float]
) -> Comparison:
    names = {*old, *new}
    differences = [
        Difference(name, old.get(name), new.get(name), limit(name, old.get(name, 0.0)))
        for name in sorted(names)
        if old.get(name) != new.get(name)
    ]
    return Comparison(path, len(names), sorted(differences, key=lambda item: -item.size))


def _one_answer(scores: Numbers, headline: Place, value: float) -> float:
    """1/n, if a headline is a mean over n queries; the largest n of equal means."""
    benchmark, model, method = headline
    sizes = [
        scores[(*place[:-1], "n")]
        for place, number in scores.items()
        if place[:3] == (model, method, benchmark)
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

    recorded = (f"{places.SUMMARY}", f"{places.SCORES}")
    paths = git("ls-tree", "-r", "--name-only", since, "--", *recorded).splitlines()
    files = [Path(path) for path in paths if path.endswith(".json")]
    if not files:
        problem = f"no numbers in {since}"
        remedy = "commit metrics/ and dvc.lock, or give a commit that has them"
        raise BadInput(places.METRICS, problem, remedy)
    return {path: git("show", f"{since}:./{path}") for path in files}


def _numbers(files: dict[Path, str]) -> tuple[Numbers, Numbers]:
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
