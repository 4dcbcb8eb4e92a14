"""The numbers in metrics/ against those in git; `make verify` runs it.

    python -m bench.moved [COMMIT]

Two machines that compute in float32 get slightly different weights, and some slightly different
numbers. A headline may move by one per cent or by one answer, and one number in two hundred further
than one per cent.

A method of which more moved is named, unless its VERSION is another one than when the numbers were
committed: results in projects with an installed package are made again by this number alone.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from medprobe.core.code import SOURCES
from medprobe.core.dvc_records import flat
from medprobe.core.places import METRICS, SCORES, SUMMARY
from medprobe.core.plugins import ROOT, find_plugins

TOLERANCE, NEAR_ZERO, ROUNDING, SHARE, LISTED = 0.01, 0.1, 1e-6, 0.005, 20
VERSION = re.compile(r"^    VERSION\b.*= (\d+)", re.MULTILINE)
Numbers = dict[str, float]


def numbers(texts: dict[Path, str]) -> tuple[Numbers, Numbers]:
    """The headlines, and all numbers, by the names that lead to each."""
    both: tuple[Numbers, Numbers] = {}, {}
    for path, text in texts.items():
        content: dict[str, Any] = flat(json.loads(text), "" if path == SUMMARY else path.stem)
        prefix = "" if path == SUMMARY else f"{path.parent.name}."
        found = {f"{prefix}{name}": value for name, value in content.items()}
        kept = {name: float(n) for name, n in found.items() if isinstance(n, int | float)}
        both[path != SUMMARY].update(kept)
    return both


def git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def committed(commit: str) -> dict[Path, str]:
    """The files of numbers in a commit."""
    listed = git("ls-tree", "-r", "--name-only", commit, "--", f"{SUMMARY}", f"{SCORES}").split()
    return {Path(name): git("show", f"{commit}:./{name}") for name in listed}


def one_answer(scores: Numbers, headline: str, value: float) -> float:
    """1/n, if a headline is a mean over n queries."""
    benchmark, *system = headline.split(".")
    begin = f"{'.'.join(system)}.{benchmark}."
    means = [name for name, n in scores.items() if name.endswith(".value") and n == value]
    sizes = [
        scores.get(f"{name.removesuffix('value')}n", 1.0)
        for name in means
        if name.startswith(begin) and ".macro." in name
    ]
    return 1 / max(sizes) if sizes else 0.0


def differing(old: Numbers, new: Numbers, scores: Numbers | None = None) -> list[str]:
    """A line for each number that moved too far; `scores` are those of headlines."""
    lines = []
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        limit = TOLERANCE * max(abs(before or 0.0), 0.0 if scores else NEAR_ZERO)
        if scores and before is not None:
            limit = max(limit, one_answer(scores, name, before))
        if before is None or after is None or abs(before - after) > limit + ROUNDING:
            lines.append(f"  {name}: {before} -> {after}, tolerance {limit:.2g}")
    return lines


def same_version(names: set[str], commit: str) -> list[str]:
    """Those of these methods whose VERSION is as it was when the commit's numbers were made."""
    made = git("log", "-1", "--format=%H", commit, "--", f"{METRICS}").strip()
    found = []
    for name in sorted(names):
        path = find_plugins("methods")[name].path
        file = SOURCES / path.relative_to(ROOT)
        if git("ls-tree", "--name-only", made, "--", f"{file}"):
            old = VERSION.findall(git("show", f"{made}:./{file}"))
            found += [f"{name} ({file})"] if old == VERSION.findall(path.read_text("utf-8")) else []
    return found


def main() -> int:
    """Print what moved too far; 1 if a headline did, or too many others."""
    paths = [path for path in (SUMMARY, *SCORES.glob("*/*.json")) if path.is_file()]
    headlines, scores = numbers({path: path.read_text(encoding="utf-8") for path in paths})
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    headlines_before, before = numbers(committed(commit))
    if not (scores and before):
        sys.exit(f"{METRICS}: no numbers here, or none in git")
    far = differing(headlines_before, headlines, before), differing(before, scores)
    for path, lines, found in ((SUMMARY, far[0], headlines), (SCORES, far[1], scores)):
        print(f"{path}: {len(lines)} of {len(found):,} numbers differ by more than the tolerance")
        print("\n".join(lines[:LISTED]), end="\n" if lines else "")
    names = {name.split(".")[1] for name in map(str.strip, far[1])} & {*find_plugins("methods")}
    for method in same_version(names, commit):
        print(f"numbers of {method} moved: if the code did it, raise its VERSION")
    return int(bool(far[0]) or len(far[1]) > SHARE * len(scores))


if __name__ == "__main__":
    sys.exit(main())
