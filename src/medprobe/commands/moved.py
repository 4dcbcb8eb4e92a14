"""`medprobe moved`: how far the recorded numbers are from those of a commit.

Two machines that compute in float32 differ in the last bits of a model's weights, and a little in
some numbers. `git diff metrics` shows each of these. Here a small difference is tolerated.
"""

import json
import math
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from medprobe.core import places
from medprobe.core.errors import BadInput

NEAR_ZERO: Final = 0.1  # a smaller number may move as far as this one
ROUNDING: Final = 1e-6  # of recorded numbers
SHOWN: Final = 10  # differences of each kind

Place = tuple[str, ...]  # the names that lead to a number
Numbers = dict[Place, float]


class Difference(NamedTuple):
    """A number that is not the same in two records; None where a record lacks it."""

    place: Place
    before: float | None
    now: float | None
    limit: float  # how far the number may move

    @property
    def size(self) -> float:
        """The difference, in units of the limit."""
        if self.before is None or self.now is None:
            return math.inf
        return abs(self.before - self.now) / (self.limit + ROUNDING)

    def __str__(self) -> str:
        before, now = ("none" if x is None else f"{x:.6g}" for x in (self.before, self.now))
        return f"  {' '.join(self.place)}: {before} -> {now}, may move by {self.limit:.2g}"


class Comparison(NamedTuple):
    """The numbers of two records."""

    path: Path  # where they stand
    numbers: int  # in either record
    differences: list[Difference]  # the largest first

    @property
    def moved(self) -> int:
        """How many moved further than they may."""
        return sum(one.size > 1 for one in self.differences)

    def __str__(self) -> str:
        differing = f"{len(self.differences):,} of {self.numbers:,} numbers differ"
        head = f"{self.path}: {differing}, {self.moved:,} by more than they may"
        return "\n".join([head, *map(str, self.differences[:SHOWN])])


def moved(since: str, tolerance: float) -> tuple[Comparison, Comparison]:
    """Compare the numbers on disk with those of a commit: the headlines, which are the main numbers
    of all results (`metrics/summary.json`), and all that stand in `metrics/scores`.

    A number may move by `tolerance`, a share of itself; a headline also by one answer, which is 1/n
    where it is a mean over n queries.

    Raises BadInput where there are no numbers, and where git has no such commit, or none in it.
    """
    paths = [path for path in (places.SUMMARY, *places.SCORES.glob("*/*.json")) if path.is_file()]
    if len(paths) < 2:
        raise BadInput(places.SCORES, "no numbers there", "run medprobe repro")
    headlines, scores = _numbers({path: path.read_text(encoding="utf-8") for path in paths})
    headlines_before, scores_before = _numbers(_committed(since))

    def limit(_: Place, value: float) -> float:
        return tolerance * max(abs(value), NEAR_ZERO)

    def limit_of_headline(place: Place, value: float) -> float:
        return max(tolerance * abs(value), _one_answer(scores_before, place, value))

    return (
        _compare(places.SUMMARY, headlines_before, headlines, limit_of_headline),
        _compare(places.SCORES, scores_before, scores, limit),
    )


def _compare(
    path: Path, before: Numbers, now: Numbers, limit: Callable[[Place, float], float]
) -> Comparison:
    names = {*before, *now}
    differences = [
        Difference(name, before.get(name), now.get(name), limit(name, before.get(name, 0.0)))
        for name in sorted(names)
        if before.get(name) != now.get(name)
    ]
    return Comparison(path, len(names), sorted(differences, key=lambda one: -one.size))


def _one_answer(scores: Numbers, headline: Place, value: float) -> float:
    """1/n of the mean over n queries that a headline is; of equal means, that over the most."""
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
    """The files of numbers of a commit. Raises BadInput where git fails, or has none there."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            problem = (done.stderr.strip() or "refused").splitlines()[0]
            raise BadInput("git", problem, "name a commit that git has")
        return done.stdout

    listed = git("ls-tree", "-r", "--name-only", since, "--", f"{places.METRICS}").splitlines()
    files = [Path(path) for path in listed if path.endswith(".json")]
    if not files:
        problem = f"{since} has no numbers there"
        raise BadInput(places.METRICS, problem, "commit metrics/ and dvc.lock, or name a commit")
    return {path: git("show", f"{since}:./{path}") for path in files}


def _numbers(files: dict[Path, str]) -> tuple[Numbers, Numbers]:
    """The headlines, and all numbers of the scores."""
    headlines, scores = Numbers(), Numbers()
    for path, text in files.items():
        if path == places.SUMMARY:
            headlines.update(_within(json.loads(text), ()))
        else:
            scores.update(_within(json.loads(text), (path.parent.name, path.stem)))
    return headlines, scores


def _within(content: Any, place: Place) -> Iterator[tuple[Place, float]]:
    """All numbers of a map, with the names that lead to each."""
    if isinstance(content, dict):
        for name, inner in content.items():
            yield from _within(inner, (*place, name))
    elif isinstance(content, int | float):
        yield place, float(content)
