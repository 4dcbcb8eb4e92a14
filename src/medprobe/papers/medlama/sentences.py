"""Sentence sets: text files with one sentence per line."""

from pathlib import Path
from typing import Final

from medprobe.core.errors import BadInput, nearest
from medprobe.sources.records import read_lines

SENTENCES: Final = Path("data/sentences")


def read_sentences(path: Path) -> dict[int, str]:
    """Read the sentences of a set by line number. Blank lines are left out.

    Raises:
        BadInput: the file is missing or is not UTF-8.
    """
    if not path.is_file():
        names = sorted(file.stem for file in path.parent.glob("*.txt"))
        remedy = f"there are: {', '.join(names)}" if names else "put one sentence per line there"
        raise BadInput(path, f"no such sentence set{nearest(path.stem, names)}", remedy)
    return read_numbered_lines(path)


def fill_gaps(sentences: dict[int, str]) -> list[str]:
    """Return the lines of a set, from its sentences by line number: a blank one is empty."""
    return [sentences.get(number, "") for number in range(1, max(sentences, default=0) + 1)]


def read_numbered_lines(path: Path) -> dict[int, str]:
    """Read the nonblank lines of a file by line number. Raises BadInput for bad UTF-8."""
    numbered = enumerate(read_lines(path, "put one sentence per line there"), 1)
    return {number: line.removesuffix("\n") for number, (_, line) in numbered if line.strip()}
