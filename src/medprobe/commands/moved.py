"""`medprobe moved`: which recorded numbers are others than at a commit, by more than last bits.

Two machines that compute in float32 differ in the last bits of a model's weights, hence in the hash
of all that is made from it, and a little in some numbers. `git diff metrics` and `dvc metrics diff`
show each of these; here they count as the same.
"""

import json
import math
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from medprobe.core import places
from medprobe.core.errors import BadInput

NEAR_ZERO: Final = 0.1  # of the tolerance: what two numbers may differ by, however small they are
SHOWN: Final = 20

Place = tuple[str, ...]  # the names that lead to a number
Numbers = dict[Place, float]


class Moved(NamedTuple):
    """The difference between two records."""

    numbers: int  # in either
    differing: int  # by however little
    most: float  # the largest difference within the tolerance, as a share of the larger number
    moved: list[tuple[Place, float | None, float | None]]  # where, before, now


def moved(since: str, tolerance: float) -> Moved:
    """How the numbers below metrics/scores differ from those of a commit, by more than `tolerance`,
    a share of the larger of two numbers.

    Raises BadInput where there are none, and where git knows no such commit or has none there.
    """
    before, now = _committed(since), _present()
    if not now:
        raise BadInput(places.SCORES, "no numbers there", "run medprobe repro")
    return compared(before, now, tolerance)


def compared(before: Numbers, now: Numbers, tolerance: float) -> Moved:
    """The difference, the largest first; what stands in one record alone has moved.

    >>> before, now = {("acc@1",): 0.25, ("rank",): 7.0}, {("acc@1",): 0.2501, ("rank",): 8.0}
    >>> compared(before, now, 0.01)
    Moved(numbers=2, differing=2, most=0.0004, moved=[(('rank',), 7.0, 8.0)])
    """
    pairs = [(place, before.get(place), now.get(place)) for place in sorted({*before, *now})]
    differing = [pair for pair in pairs if pair[1] != pair[2]]
    found, most = [], 0.0
    for place, old, new in differing:
        share = _share(old, new)
        if share <= tolerance:
            most = max(most, share)
        elif old is None or new is None or abs(old - new) > NEAR_ZERO * tolerance:
            found.append((place, old, new))
    found.sort(key=lambda one: -_share(one[1], one[2]))
    return Moved(len(pairs), len(differing), round(most, 6), found)


def _share(old: float | None, new: float | None) -> float:
    if old is None or new is None:
        return math.inf
    return abs(old - new) / max(abs(old), abs(new))


def told(found: Moved, since: str) -> str:
    """The difference in words."""
    files, numbers = places.SCORES, f"{found.numbers:,} numbers"
    if not found.differing:
        return f"{files}: all {numbers} are those of {since}"
    if not found.moved:
        return (
            f"{files}: {found.differing:,} of {numbers} differ from those of {since}, none"
            f" by more than {found.most:.2%}, or near 0 by more than a tenth of the tolerance:"
            " last bits, as between two machines"
        )
    head = f"{files}: {len(found.moved):,} of {numbers} moved since {since}"
    lines = [f"  {' '.join(at)}: {_said(old)} -> {_said(new)}" for at, old, new in found.moved]
    more = [f"  and {len(lines) - SHOWN:,} more"] if len(lines) > SHOWN else []
    return "\n".join([head, *lines[:SHOWN], *more])


def _said(number: float | None) -> str:
    return "none" if number is None else f"{number:.6g}"


def _present() -> Numbers:
    return {
        place: number
        for path in sorted(places.SCORES.glob("*/*.json"))
        for place, number in _numbers(path, path.read_text(encoding="utf-8"))
    }


def _committed(since: str) -> Numbers:
    listed = git("ls-tree", "-r", "--name-only", "-z", since, "--", f"{places.SCORES}")
    if not listed:
        problem = f"{since} has no numbers there"
        raise BadInput(places.SCORES, problem, "commit metrics/ and dvc.lock, or name a commit")
    return {
        place: number
        for path in filter(None, listed.split("\0"))
        for place, number in _numbers(Path(path), git("show", f"{since}:./{path}"))
    }


def _numbers(path: Path, text: str) -> Iterator[tuple[Place, float]]:
    """All numbers of a file of scores, with the names that lead to each."""
    yield from _within(json.loads(text), path.relative_to(places.SCORES).with_suffix("").parts)


def _within(content: Any, place: Place) -> Iterator[tuple[Place, float]]:
    if isinstance(content, dict):
        for name, inner in content.items():
            yield from _within(inner, (*place, name))
    elif isinstance(content, int | float):
        yield place, float(content)


def git(*words: str) -> str:
    """What git says. Raises BadInput where it fails."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    except OSError:
        raise BadInput("git", "cannot be run", "install git, which DVC works with") from None
    if done.returncode:
        problem = (done.stderr.strip() or "refused").splitlines()[0]
        raise BadInput("git", problem, "name a commit that git has")
    return done.stdout
